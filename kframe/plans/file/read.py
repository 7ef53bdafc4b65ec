"""A reassignment plan, read from Kafka's JSON without checks beyond its form.

The controller, or ``plan_check``, decides whether the plan is valid for a cluster.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import msgspec
import numpy as np

from kframe.errors import SnapshotError
from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.plan import ANY_DIRECTORY, Plan
from kframe.model.tables import Targets
from kframe.snapshot.assemble import GrowingLists, int32
from kframe.snapshot.assignments import read_assignments
from kframe.snapshot.decode import check_unique_keys, decode
from kframe.snapshot.files import InputFile, read_blocks
from kframe.snapshot.reassignment_text import PROPOSED_HEADING, read_documents

#: Any value that Kafka reads as an int; its range is checked later.
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Stamp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cluster that a plan was made for; null is unknown."""

    cluster_id: str | None
    controller_epoch: int | None
    assignments: str
    """The SHA-256 of the assignments of the plan's own partitions: other partitions may change."""

    def stale(self, now: Stamp) -> str | None:
        """Why a plan with this stamp is not for the cluster as it is ``now``; None if it is."""
        if None not in (self.cluster_id, now.cluster_id) and self.cluster_id != now.cluster_id:
            return f"it was made for cluster {self.cluster_id}, this is {now.cluster_id}"
        if None not in (self.controller_epoch, now.controller_epoch) and self.controller_epoch != now.controller_epoch:
            return f"it was made under controller epoch {self.controller_epoch}, now it is {now.controller_epoch}"
        return "its partitions have been assigned anew since" if self.assignments != now.assignments else None


class PlanEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A partition and its target replicas, the preferred leader first."""

    topic: str
    partition: _Number
    replicas: list[_Number]
    log_dirs: list[str] | None = None
    observers: list[_Number] | None = None
    """Confluent's observers: the last of the replicas, which stay out of the ISR."""


class PlanFile(msgspec.Struct, forbid_unknown_fields=True):
    """A reassignment plan as ``kafka-reassign-partitions`` reads it, with the stamp of ``kframe plan stamp``."""

    partitions: list[PlanEntry]
    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1
    """Kafka's tool reads a plan without a version as one of version 1."""
    kframe: Stamp | None = None


_DOCUMENT: Final = msgspec.json.Decoder(PlanFile)


def load_plan(source: InputFile | str) -> Plan:
    """Read a reassignment: a document, or the proposed one in the output of ``--generate``.

    In the output of ``--execute`` it is the rollback: the former assignment. Raises SnapshotError.
    """
    path = Path(source) if isinstance(source, str) else source
    with suppress(SnapshotError):
        if (plan := _plan_of_blocks(read_blocks(path), str(path), path.name)) is not None:
            return plan
    documents = read_documents(path)
    document = documents.proposed or (documents.current if documents.is_rollback else None)
    if document is None:
        raise SnapshotError(str(path), "the current assignment only", f'a document under "{PROPOSED_HEADING}"')
    return plan_of(*document, path.name)


def plan_of(document: bytes, where: str, name: str) -> Plan:
    """A bare reassignment document as a plan called ``name``. Raises SnapshotError, which names ``where``.

    msgspec decodes a document that is not in the form that tools write, one with log directories, and one with a
    fault, which it locates.
    """
    with suppress(SnapshotError):
        if (plan := _plan_of_blocks([document], where, name)) is not None:
            return plan
    entries = decode(_DOCUMENT, document, where).partitions
    _check_keys(document, len(entries), where)
    numbers: dict[str, int] = {}
    topic, partition, replicas, observers = array("i"), array("i"), GrowingLists(), GrowingLists()
    for entry in entries:
        topic.append(numbers.setdefault(entry.topic, len(numbers)))
        partition.append(entry.partition)
        replicas.append(entry.replicas)
        observers.append(entry.observers or ())
    differ = (entry.log_dirs is not None and len(entry.log_dirs) != len(entry.replicas) for entry in entries)
    log_dirs = tuple(tuple(entry.log_dirs or ()) for entry in entries)
    return _plan(
        name,
        tuple(numbers),
        int32(topic),
        int32(partition),
        replicas.ragged(),
        np.fromiter(differ, np.bool_, len(entries)),
        observers.ragged(),
        log_dirs if any(path != ANY_DIRECTORY for paths in log_dirs for path in paths) else None,
    )


def _plan_of_blocks(blocks: Iterable[bytes], where: str, name: str) -> Plan | None:
    """The plan of a document in blocks; None if it is not in the form that tools write. Raises SnapshotError."""
    entries = read_assignments(blocks)
    if entries is None:
        return None
    decode(_DOCUMENT, entries.outline, where)
    _check_keys(entries.outline, 0, where)
    differ = (entries.log_dirs >= 0) & (entries.log_dirs != entries.replicas.counts)
    return _plan(name, entries.names, entries.topic, entries.partition, entries.replicas, differ)


def _plan(
    name: str,
    names: tuple[str, ...],
    topic: Int32,
    partition: Int32,
    replicas: Ragged,
    log_dirs_differ: Bool,
    observers: Ragged | None = None,
    log_dirs: tuple[tuple[str, ...], ...] | None = None,
) -> Plan:
    known = observers if observers is not None and len(observers.values) else None
    targets = Targets(names, topic, partition, replicas, np.zeros(len(topic), np.bool_))
    return Plan(name, targets, log_dirs_differ, known, log_dirs)


def _check_keys(document: bytes, entries: int, where: str) -> None:
    """Raise SnapshotError for a key that occurs twice in an object."""
    keys = (b"topic", b"partition", b"replicas", b"log_dirs", b"observers")
    check_unique_keys(document, where, {**dict.fromkeys(keys, entries), b"version": 1, b"partitions": 1, b"kframe": 1})
