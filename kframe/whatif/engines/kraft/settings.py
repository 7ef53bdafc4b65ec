"""The settings of the controller of a what-if on a KRaft cluster, from its snapshot and from user settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from uuid import UUID

from kframe.core.kraft.context import SUPPORTED_FEATURES, KraftSettings
from kframe.errors import ConfigError, ParameterError
from kframe.model.config import ControllerConfig
from kframe.model.kafka_uuids import expected_uuid, uuid_of_text
from kframe.model.kraft.ids import METADATA_VERSION, ResourceType
from kframe.model.kraft.levels import INT16_MAX, LEVEL_NAMES, level_name, parse_level
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import RegisterControllerRecord
from kframe.model.kraft.releases import (
    RELEASE_KEY,
    RELEASES,
    Release,
    known_release,
    release_of_level,
    supported_features,
)
from kframe.model.texts import short_repr
from kframe.model.whole_numbers import parse_whole
from kframe.snapshot import KraftFacts, Snapshot
from kframe.whatif.engines.settings import DYNAMIC_KEYS
from kframe.whatif.results.release import ClusterRelease

_MIN_INSYNC: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"
_CLUSTER: Final = (int(ResourceType.BROKER), "")
_KAFKA_UUID_LENGTH: Final = 22
#: No node: a controller whose id is unknown has no configuration of its own.
_NO_NODE: Final = -1


def snapshot_with_features(
    snapshot: Snapshot, config: Mapping[str, object] | None
) -> tuple[Snapshot, dict[str, object]]:
    """The snapshot with the feature levels that ``config`` states, and the other keys of ``config``.

    Raises ConfigError for an invalid level, or if the snapshot has the levels.
    """
    remaining = {key: value for key, value in (config or {}).items() if key != RELEASE_KEY}
    stated = {name: str(remaining.pop(name)) for name in SUPPORTED_FEATURES if name in remaining}
    if not stated:
        return snapshot, remaining
    facts = snapshot.kraft or KraftFacts()
    levels: dict[str, int] = {}
    for name, text in stated.items():
        if facts.features is not None:
            raise ConfigError(f"config key {name}", text, "no level: the snapshot has the levels of its features")
        levels[name] = feature_level(name, text)
    from kframe.snapshot.kraft_assumptions import assumed_features

    features = {name: level for name, level in {**assumed_features(snapshot), **levels}.items() if level}
    return replace(snapshot, kraft=replace(facts, features=features)), remaining


def release_of(snapshot: Snapshot, metadata: ClusterMetadata, stated: Release | None = None) -> ClusterRelease:
    """The release of the controllers: as ``stated``, else by the registrations, else assumed to be the oldest with the
    ``metadata.version``."""
    if stated is not None:
        return ClusterRelease(stated, "stated", stated)
    active = _NO_NODE if snapshot.controller_id is None else snapshot.controller_id
    release = known_release(metadata.controllers, metadata.brokers.registrations.values(), active)
    if release is not None:
        return ClusterRelease(release, "registrations", release)
    release = release_of_level(metadata.metadata_version)
    has_level = snapshot.kraft is not None and snapshot.kraft.features is not None
    return ClusterRelease(release, "assumed", release if has_level else RELEASES[0])


def release_assumptions(release: ClusterRelease) -> tuple[str, ...]:
    """The assumption about a release that neither a user nor a registration tells."""
    if release.source != "assumed":
        return ()
    assumption = f"cluster.release unknown: taken as Kafka {release.release}, that of {METADATA_VERSION}"
    return (f"{assumption} (--config {RELEASE_KEY}=VERSION states it)",)


def level_assumptions(metadata: ClusterMetadata) -> tuple[str, ...]:
    """What is assumed of a ``metadata.version`` that is newer than all levels that kframe knows."""
    if metadata.metadata_version <= len(LEVEL_NAMES):
        return ()
    level = level_name(metadata.metadata_version)
    return (f"{METADATA_VERSION}: {level} is unknown to kframe: decided as {LEVEL_NAMES[-1]}, the last known one",)


def feature_level(name: str, text: str) -> int:
    """The level that a text means: a number, or for ``metadata.version`` also ``4.0-IV3`` or ``4.0``.

    Raises ConfigError.
    """
    level = parse_level(text) if name == METADATA_VERSION else parse_whole(text, INT16_MAX)
    if level is None:
        expected = "a level such as 4.0-IV3" if name == METADATA_VERSION else "the number of a level"
        raise ConfigError(f"level of {name}", text, expected)
    return level


def directory_id(text: str) -> UUID:
    """The id of a log directory, as Kafka prints it or in hex. Raises ParameterError."""
    try:
        return UUID(text) if len(text) > _KAFKA_UUID_LENGTH else uuid_of_text(text)
    except ValueError:
        raise ParameterError(
            "directories", short_repr(text), f"the id of a log directory, {expected_uuid(text)}"
        ) from None


def kraft_settings(
    snapshot: Snapshot,
    metadata: ClusterMetadata,
    config: ControllerConfig,
    stated: Mapping[str, object],
    release: ClusterRelease,
) -> KraftSettings:
    """The static settings. User settings also replace the cluster-wide configurations in ``metadata``."""
    defaults = metadata.configs.get(_CLUSTER)
    for key in DYNAMIC_KEYS:
        if defaults is not None and key in stated:
            defaults[key] = str(stated[key])
    node_id = _NO_NODE if snapshot.controller_id is None else snapshot.controller_id
    return KraftSettings(
        cluster_id=snapshot.cluster_id or "",
        node_id=node_id,
        min_insync_replicas=config[_MIN_INSYNC],
        unclean_leader_election_enable=config[_UNCLEAN],
        default_replication_factor=config["default.replication.factor"],
        num_partitions=config["num.partitions"],
        release=release.release,
        supported_features=_supported_features(metadata.controllers.get(node_id), release),
    )


def _supported_features(
    active: RegisterControllerRecord | None, release: ClusterRelease
) -> Mapping[str, tuple[int, int]]:
    """The levels that the active controller supports: by the stated release, its registration, or its release."""
    if active is not None and release.source != "stated":
        return {
            feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in active.features
        }
    return SUPPORTED_FEATURES if release.source == "assumed" else supported_features(release.release)
