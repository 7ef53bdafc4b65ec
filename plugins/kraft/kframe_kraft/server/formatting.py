"""Formats the directories of a controller, as Kafka's ``kafka-storage format`` does."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from kframe.plugin.kraft import LogError, RecordAndVersion, control, records
from kframe_kraft.disk import CheckpointWriter, MetaProperties, write_properties
from kframe_kraft.disk.atomic import sync_directory
from kframe_kraft.disk.names import BOOTSTRAP_ID, BOOTSTRAP_NAME
from kframe_kraft.disk.properties import FILE_NAME
from kframe_kraft.server.node_config import NodeConfig
from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.uuids import random_uuid


@dataclass(frozen=True, slots=True)
class FormattedDirectory:
    """``is_new``: it was formatted now, and not before."""

    path: Path
    is_new: bool


def format_node(
    config: NodeConfig,
    cluster_id: str,
    levels: Mapping[str, int],
    users: Sequence[records.UserScramCredentialRecord] = (),
    *,
    standalone: bool,
    ignore_formatted: bool = False,
    now: int,
) -> list[FormattedDirectory]:
    """Write the identity of the node into its directories, and the first records of the cluster.

    ``levels`` are those of the features, ``metadata.version`` among them. ``users`` may log in from the start.
    ``standalone``: the log gets this node as the only voter of a dynamic quorum. ``now`` is in milliseconds since the
    epoch. Raises LogError for a directory that is formatted already, unless ``ignore_formatted``, and for one of
    another node or cluster.
    """
    check_cluster_id(cluster_id)
    formatted = [path for path in config.directories if (path / FILE_NAME).exists()]
    if formatted and not ignore_formatted:
        raise LogError(str(formatted[0]), "a formatted directory", "one without meta.properties (--ignore-formatted)")
    first = [*bootstrap_records(levels), *(RecordAndVersion(user, 0) for user in users)]
    results = [FormattedDirectory(path, path not in formatted) for path in config.directories]
    for result in results:
        if result.is_new:
            _format(result.path, config, cluster_id, first, standalone=standalone, now=now)
    return results


def check_cluster_id(text: str) -> None:
    """Raises LogError unless a text is the base64 form of a UUID."""
    try:
        size = len(base64.urlsafe_b64decode(f"{text}=="))
    except (binascii.Error, ValueError):
        size = 0
    if len(text) != 22 or size != 16:
        raise LogError("cluster id", repr(text)[:100], "22 characters of URL-safe base64, as kafka-storage random-uuid")


def _format(
    path: Path,
    config: NodeConfig,
    cluster_id: str,
    first: Sequence[RecordAndVersion],
    *,
    standalone: bool,
    now: int,
) -> None:
    """Format one directory. ``first`` are the first records.

    ``meta.properties`` comes last: without it the directory is not formatted.
    """
    path.mkdir(parents=True, exist_ok=True)
    directory_id = random_uuid()
    if path == config.directory:
        log = path / LOG_DIRECTORY
        log.mkdir(exist_ok=True)
        voters = _only_voter(config, directory_id) if standalone else None
        _write(log / BOOTSTRAP_ID.file_name, first, voters, now)
        _write(path / BOOTSTRAP_NAME, first, None, now)
        sync_directory(path)
    write_properties(path, MetaProperties(cluster_id, config.node_id, directory_id))


def bootstrap_records(levels: Mapping[str, int]) -> Iterable[RecordAndVersion]:
    """The levels of all features above 0: metadata.version first, then by name."""
    for name in sorted(levels, key=lambda name: (name != "metadata.version", name)):
        if levels[name]:
            yield RecordAndVersion(records.FeatureLevelRecord(name=name, feature_level=levels[name]), 0)


def _only_voter(config: NodeConfig, directory_id: UUID) -> control.VotersRecord:
    feature = control.KRaftVersionFeature(max_supported_version=1)
    voter = control.Voter(
        voter_id=config.node_id,
        voter_directory_id=directory_id,
        endpoints=config.settings.endpoints,
        k_raft_version_feature=feature,
    )
    return control.VotersRecord(voters=(voter,))


def _write(path: Path, first: Sequence[RecordAndVersion], voters: control.VotersRecord | None, now: int) -> None:
    level = 0 if voters is None else 1
    with CheckpointWriter(path, BOOTSTRAP_ID, timestamp=0, now=now, kraft_version=level, voters=voters) as writer:
        writer.add_records(first)
        writer.finish()
