"""Read the JSON of ``kafka-reassign-partitions``: a file for ``--execute``, or the output of ``--generate``.

That output has two documents under headings, the current and the proposed assignment. Both contain
assignments only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
import numpy as np

from kframe.errors import SnapshotError
from kframe.snapshot.assemble import Assembly
from kframe.snapshot.assignments import ReassignmentColumns, read_assignments
from kframe.snapshot.checks import check_snapshot, check_topic_name
from kframe.snapshot.content import named_brokers
from kframe.snapshot.decode import Count, decode, short_repr
from kframe.snapshot.facts import BrokerFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, Progress, ignore_progress, read_blocks, read_document
from kframe.snapshot.snapshot import Snapshot

CURRENT_HEADING: Final = "Current partition replica assignment"
PROPOSED_HEADING: Final = "Proposed partition reassignment configuration"

_ABSENT: Final = "not in a reassignment"
_ABSENT_COLUMNS: Final = (
    "brokers.registered", "brokers.rack", "brokers.endpoints", "brokers.broker_epoch", "topics.topic_id",
    "topics.deleting", "topics.configs", "partitions.leader", "partitions.isr", "partitions.leader_epoch",
    "partitions.controller_epoch", "partitions.zk_version", "partitions.leader_recovery_state",
    "partitions.adding_replicas", "partitions.removing_replicas", "cluster.cluster_id", "cluster.controller_id",
    "cluster.controller_epoch",
)  # fmt: skip


class Assignment(msgspec.Struct, frozen=True):
    """One entry of a reassignment: the replicas that a partition is to have, preferred leader first."""

    topic: str
    partition: Count
    replicas: list[Count]


class _Document(msgspec.Struct):
    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    partitions: list[Assignment]


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The content of a file. ``current`` is None unless a heading marks it. A bare document is the proposed one."""

    current: tuple[Assignment, ...] | None
    proposed: tuple[Assignment, ...] | None


class _PlanOutline(msgspec.Struct):
    """A document whose entries are decoded one by one."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    partitions: list[msgspec.Raw]


class _TopicName(msgspec.Struct):
    topic: str


_DOCUMENT: Final = msgspec.json.Decoder(_Document)
_OUTLINE: Final = msgspec.json.Decoder(_PlanOutline)
_ENTRY_DECODER: Final = msgspec.json.Decoder(Assignment)
_NAME: Final = msgspec.json.Decoder(_TopicName)


def read_reassignment(path: InputFile) -> Reassignment:
    """Read a reassignment, which may cover any partitions of a cluster, each once. Raises SnapshotError."""
    decoded = {heading: _decoded(raw, where) for heading, (raw, where) in documents(path).items()}
    return Reassignment(decoded.get(CURRENT_HEADING), decoded.get(PROPOSED_HEADING))


def read_reassignment_snapshot(
    path: InputFile, progress: Progress = ignore_progress, faults: Faults = REFUSE
) -> Snapshot:  # fmt: skip
    """The current assignment, or the only one, as a snapshot; it must cover its topics whole. Raises SnapshotError.

    msgspec decodes a document that is not in the form that tools write, and one with a fault, which it locates.
    """
    with suppress(SnapshotError):
        if (assignments := read_assignments(read_blocks(path, progress))) is not None:
            decode(_DOCUMENT, assignments.outline, str(path))
            return _snapshot(_assembled(assignments, path), path, REFUSE)
    if faults is REFUSE:
        reassignment = read_reassignment(path)
        entries = dict(
            enumerate(reassignment.current if reassignment.current is not None else reassignment.proposed or ())
        )
    else:
        entries = _readable_entries(path, faults)
    assembly = _assembly(path)
    for number, entry in entries.items():
        assembly.partition(assembly.topic_named(entry.topic, number), entry.partition, number, entry.replicas)
    progress(len(entries), len(entries))
    return _snapshot(assembly, path, faults)


def _assembly(path: InputFile) -> Assembly:
    return Assembly(lambda number: f"{path} partitions[{number}]")


def _assembled(assignments: ReassignmentColumns, path: InputFile) -> Assembly:
    assembly = _assembly(path)
    for name in assignments.names:
        assembly.topic_named(name, 0)
    replicas = (assignments.replicas.counts, assignments.replicas.values)
    lines = np.arange(len(assignments), dtype=np.int32)
    assembly.partitions(assignments.topic, assignments.partition, lines, {}, {"replicas": replicas})
    return assembly


def _snapshot(assembly: Assembly, path: InputFile, faults: Faults) -> Snapshot:
    assembled = assembly.finish(faults)
    partitions = PartitionFacts(replicas=assembled.replicas)
    snapshot = Snapshot(
        tuple(BrokerFacts(broker_id, None) for broker_id in named_brokers(partitions).tolist()),
        TopicFacts(assembled.topics.names, assembled.topics.partition_counts),
        partitions,
        Source("reassignment", path.name),
        provenance=dict.fromkeys(_ABSENT_COLUMNS, _ABSENT),
    )
    return check_snapshot(snapshot, assembled.locate, faults)


def _readable_entries(path: InputFile, faults: Faults) -> dict[int, Assignment]:
    """The readable entries, by position; the others are faults. Contradictions between entries are checked later."""
    raw_documents = documents(path)
    raw, where = raw_documents.get(CURRENT_HEADING) or raw_documents[PROPOSED_HEADING]
    entries = {}
    for number, raw_entry in enumerate(decode(_OUTLINE, raw, where).partitions):
        entry_path = f"{where} partitions[{number}]"
        try:
            entry = decode(_ENTRY_DECODER, bytes(raw_entry), entry_path)
            check_topic_name(entry.topic, entry_path)
            entries[number] = entry
        except SnapshotError as fault:
            faults(fault, _topic_name(bytes(raw_entry)), 1)
    return entries


def _topic_name(raw: bytes) -> str | None:
    try:
        return _NAME.decode(raw).topic
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def documents(path: InputFile) -> Mapping[str, tuple[bytes, str]]:
    """Each JSON document of a file, not decoded, with its location, by heading; a bare document is the proposed one.

    Raises SnapshotError.
    """
    content = read_document(path)
    if content.lstrip().startswith(b"{"):
        return {PROPOSED_HEADING: (content, str(path))}
    raw_documents: dict[str, tuple[bytes, str]] = {}
    heading = None
    for number, line in enumerate(content.splitlines(), start=1):
        text, where = line.strip(), f"{path}:{number}"
        if text.startswith(b"{") and heading is not None:
            raw_documents[heading] = (text, where)
            heading = None
        elif text:
            heading = _heading(text, where)
    if not raw_documents:
        raise SnapshotError(str(path), "no JSON document", f'one under "{CURRENT_HEADING}"')
    return raw_documents


def _heading(text: bytes, where: str) -> str:
    for heading in (CURRENT_HEADING, PROPOSED_HEADING):
        if re.fullmatch(heading.encode(), text):
            return heading
    raise SnapshotError(
        where, short_repr(text), f'"{CURRENT_HEADING}", "{PROPOSED_HEADING}" or a JSON document under one'
    )


def _decoded(raw: bytes, where: str) -> tuple[Assignment, ...]:
    entries = decode(_DOCUMENT, raw, where).partitions
    seen: set[tuple[str, int]] = set()
    for number, entry in enumerate(entries):
        entry_path = f"{where} partitions[{number}]"
        check_topic_name(entry.topic, entry_path)
        if (entry.topic, entry.partition) in seen:
            raise SnapshotError(entry_path, f"partition {entry.topic}-{entry.partition} again", "each partition once")
        seen.add((entry.topic, entry.partition))
        if not entry.replicas or len(set(entry.replicas)) != len(entry.replicas):
            raise SnapshotError(
                f"{entry_path} field replicas", short_repr(entry.replicas), "different brokers, at least one"
            )
    return tuple(entries)
