"""Read the JSON of ``kafka-reassign-partitions``: a file for ``--execute``, or what the tool prints.

``--generate`` prints two documents under headings, the current and the proposed assignment; ``--execute`` the current
one. Both contain assignments only. ``--list`` prints assignments as text.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Final

import msgspec
import numpy as np

from kframe.errors import SnapshotError
from kframe.model.plan import has_observers_last
from kframe.model.texts import short_repr
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.assemble import Assembly
from kframe.snapshot.assignments import ReassignmentColumns, read_assignments
from kframe.snapshot.checks import check_snapshot, check_topic_name
from kframe.snapshot.content import named_brokers
from kframe.snapshot.decode import Count, check_unique_keys, decode, topic_of
from kframe.snapshot.facts import OBSERVERS_NOTE, BrokerFacts, PartitionFacts, Source, TopicFacts, absent_columns
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, read_blocks
from kframe.snapshot.reassignment_text import ListedAssignment, read_documents, read_listed
from kframe.snapshot.snapshot import Snapshot

_PROVENANCE: Final = absent_columns("not in a reassignment")
#: Columns that ``--list`` prints.
_LISTED_COLUMNS: Final = ("partitions.adding_replicas", "partitions.removing_replicas")


class Assignment(msgspec.Struct, frozen=True):
    """One entry of a reassignment: the replicas that a partition is to have, preferred leader first."""

    topic: str
    partition: Count
    replicas: list[Count]
    observers: list[Count] | None = None
    """Confluent's observers, the last of the replicas."""


class _Document(msgspec.Struct):
    partitions: list[Assignment]
    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """The content of a file. ``current`` is None unless a heading marks it. A bare document is the proposed one."""

    current: tuple[Assignment, ...] | None
    proposed: tuple[Assignment, ...] | None


class _PlanOutline(msgspec.Struct):
    """A document whose entries are decoded one by one."""

    partitions: list[msgspec.Raw]
    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1


_DOCUMENT: Final = msgspec.json.Decoder(_Document)
_OUTLINE: Final = msgspec.json.Decoder(_PlanOutline)
_ENTRY_DECODER: Final = msgspec.json.Decoder(Assignment)


def read_reassignment(path: InputFile) -> Reassignment:
    """Read a reassignment, which may cover any partitions of a cluster, each once. Raises SnapshotError."""
    documents = read_documents(path)
    return Reassignment(
        None if documents.current is None else _decoded(*documents.current),
        None if documents.proposed is None else _decoded(*documents.proposed),
    )


def read_reassignment_snapshot(
    path: InputFile, progress: Progress = ignore_progress, faults: Faults = REFUSE
) -> Snapshot:
    """The current assignment, or the only one, as a snapshot; it must cover its topics whole. Raises SnapshotError.

    msgspec decodes a document that is not in the form that tools write, and one with a fault, which it locates.
    """
    with suppress(SnapshotError):
        if (assignments := read_assignments(read_blocks(path, progress))) is not None:
            decode(_DOCUMENT, assignments.outline, str(path))
            _check_keys(assignments.outline, 0, str(path))
            return _snapshot(_assembled(assignments, path), path, REFUSE)
    if (listed := read_listed(path)) is not None:
        return _listed_snapshot(listed, path, faults)
    if faults is REFUSE:
        entries = dict(enumerate(_decoded(*read_documents(path).assignment)))
    else:
        entries = _readable_entries(path, faults)
    assembly = Assembly(lambda number: f"{path} partitions[{number}]", lists=("observers",))
    for number, entry in entries.items():
        assembly.partition(
            assembly.topic_named(entry.topic, number),
            entry.partition,
            number,
            entry.replicas,
            observers=entry.observers or [],
        )
    progress(len(entries), len(entries))
    return _snapshot(assembly, path, faults)


def _assembled(assignments: ReassignmentColumns, path: InputFile) -> Assembly:
    assembly = Assembly(lambda number: f"{path} partitions[{number}]")
    for name in assignments.names:
        assembly.topic_named(name, 0)
    replicas = (assignments.replicas.counts, assignments.replicas.values)
    lines = np.arange(len(assignments), dtype=np.int32)
    assembly.partitions(assignments.topic, assignments.partition, lines, {}, {"replicas": replicas})
    return assembly


def _snapshot(assembly: Assembly, path: InputFile, faults: Faults) -> Snapshot:
    assembled = assembly.finish(faults)
    if not assembled.topics.names and not faults.topics:
        raise SnapshotError(str(path), "no partition", "an assignment, which a reassignment of an empty cluster lacks")
    observers = assembled.lists.get("observers")
    if observers is not None and not len(observers.values):
        observers = None
    provenance = dict(_PROVENANCE)
    if observers is not None:
        provenance["partitions.observers"] = OBSERVERS_NOTE
    partitions = PartitionFacts(
        observers=observers,
        replicas=assembled.replicas,
        adding_replicas=assembled.lists.get("adding_replicas"),
        removing_replicas=assembled.lists.get("removing_replicas"),
    )
    snapshot = Snapshot(
        tuple(BrokerFacts(broker_id, None) for broker_id in named_brokers(partitions).tolist()),
        TopicFacts(assembled.topics.names, assembled.topics.partition_counts),
        partitions,
        Source("reassignment", path.name),
        provenance=provenance,
    )
    return check_snapshot(snapshot, assembled.locate, faults)


def _listed_snapshot(listed: list[ListedAssignment], path: InputFile, faults: Faults) -> Snapshot:
    """What ``--list`` or ``--verify`` prints."""
    assembly = Assembly(lambda number: f"{path}:{number}", lists=("adding_replicas", "removing_replicas"))
    for entry in listed:
        assembly.partition(
            assembly.topic_named(entry.topic, entry.line),
            entry.partition,
            entry.line,
            entry.replicas,
            adding_replicas=entry.adding,
            removing_replicas=entry.removing,
        )
    snapshot = _snapshot(assembly, path, faults)
    provenance = {name: note for name, note in snapshot.provenance.items() if name not in _LISTED_COLUMNS}
    provenance["topics.partition_count"] = "the tool prints only partitions of a reassignment: others may exist"
    return replace(snapshot, provenance=provenance)


def _readable_entries(path: InputFile, faults: Faults) -> dict[int, Assignment]:
    """The readable entries, by position; the others are faults. Contradictions between entries are checked later."""
    raw, where = read_documents(path).assignment
    entries = {}
    raw_entries = decode(_OUTLINE, raw, where).partitions
    _check_keys(raw, len(raw_entries), where)
    for number, raw_entry in enumerate(raw_entries):
        entry_path = f"{where} partitions[{number}]"
        try:
            entry = decode(_ENTRY_DECODER, bytes(raw_entry), entry_path)
            check_topic_name(entry.topic, entry_path)
            entries[number] = entry
        except SnapshotError as fault:
            faults(fault, topic_of(bytes(raw_entry)), 1)
    return entries


def _check_keys(raw: bytes, entries: int, where: str) -> None:
    """Raise SnapshotError for a key that occurs twice in an object."""
    keys = (b"topic", b"partition", b"replicas", b"log_dirs", b"observers")
    check_unique_keys(raw, where, {**dict.fromkeys(keys, entries), b"version": 1, b"partitions": 1})


def _decoded(raw: bytes, where: str) -> tuple[Assignment, ...]:
    entries = decode(_DOCUMENT, raw, where).partitions
    _check_keys(raw, len(entries), where)
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
        if not has_observers_last(entry.replicas, entry.observers or []):
            raise SnapshotError(
                f"{entry_path} field observers",
                short_repr(entry.observers),
                f"the last of {short_repr(entry.replicas)}",
            )
    return tuple(entries)
