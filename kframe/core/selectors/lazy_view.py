"""The view of an election for selectors of the bulk tier: copies of columns, most of them made on first access.

Reading all fields takes several times as long as electing leaders, and most rules use few. The candidates that may lead
are read at once, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.kernels import _selectors
from kframe.model.arrays import Int16, Int32, Ragged, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind

#: Replicas per partition that are allocated before they are counted, at most.
_REPLICAS_GUESSED: Final = 8


class _Source(NamedTuple):
    """The sources of a batch."""

    cluster: ClusterState
    kind: ElectionKind
    rows: Int32
    allowed: UInt8
    live: UInt8


#: Reads one field and the fields that are read along with it, by name.
_Reader: TypeAlias = Callable[[_Source, ElectionBatch], dict[str, Any]]


class LazyBatch(ElectionBatch):
    """A batch that reads its fields from the columns on first access, during the election."""

    __slots__ = ("_source",)

    def __init__(self, source: _Source, candidates: Ragged, may_lead: UInt8) -> None:
        read = object.__setattr__
        read(self, "_source", source)
        read(self, "kind", source.kind)
        read(self, "candidates", candidates)
        read(self, "may_lead", may_lead)

    def __len__(self) -> int:
        return len(self.candidates)

    def __getattr__(self, name: str) -> Any:
        """Read a field. Raises AttributeError after the election."""
        source = object.__getattribute__(self, "_source")
        if name not in _READ or source is None:
            reason = "; the election is over, and this field was not read before" if name in _READ else ""
            raise AttributeError(f"no {name} in this {ElectionBatch.__name__}{reason}")
        for read, value in _READ[name](source, self).items():
            object.__setattr__(self, read, value)
        return object.__getattribute__(self, name)

    def whole(self) -> ElectionBatch:
        """A complete copy."""
        return ElectionBatch(**{field.name: getattr(self, field.name) for field in fields(self)})

    def close(self) -> None:
        """End the election: nothing more is read from the columns."""
        object.__setattr__(self, "_source", None)


def election_batch(cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> ElectionBatch:
    """A complete batch of ``rows`` (k,), copied from the columns.

    A replica is eligible if its broker is registered and not shutting down and its log directory is online, in every
    kind of election. Cost O(k * r * r), r being the replicas of a partition.
    """
    return lazy_batch(cluster, kind, rows, unclean_allowed, cluster.brokers.live)[0].whole()


def lazy_batch(
    cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8, live: UInt8
) -> tuple[LazyBatch, Int16]:
    """A batch that reads its fields on first access; and (k,) the first eligible candidate of each row, or NO_LEADER.

    ``live`` is the liveness mask of the cluster's brokers.
    """
    p, count = cluster.partitions, len(rows)
    offsets, first = np.empty(count + 1, np.int32), np.empty(count, np.int16)
    capacity = count * min(int(p.replica_count[rows[0]]), _REPLICAS_GUESSED) if count else 0  # usually equal
    candidates = -1
    while candidates < 0:
        values, may_lead = np.empty(capacity, np.int32), np.empty(capacity, np.uint8)
        candidates = _selectors.gather_candidates(
            int(kind), rows, p, live, unclean_allowed, offsets, values, may_lead, first
        )
        capacity = int(p.replica_count[rows].sum()) if candidates < 0 else capacity
    source = _Source(cluster, kind, rows, unclean_allowed, live)
    return LazyBatch(
        source, Ragged(_frozen(offsets), _frozen(values, candidates)), _frozen(may_lead, candidates)
    ), first


def _marks(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    count = len(batch.candidates.values)
    eligible, in_sync = np.empty(count, np.uint8), np.empty(count, np.uint8)
    _selectors.mark_candidates(int(source.kind), source.rows, source.cluster.partitions, source.live, eligible, in_sync)
    return {"eligible": _frozen(eligible), "in_sync": _frozen(in_sync)}


def _isr(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    if source.kind == ElectionKind.INITIAL:
        isr = batch.candidates.keep(batch.eligible != 0)
    else:
        isr = source.cluster.partitions.lists("isr", source.rows)
    return {"isr": Ragged(_frozen(isr.offsets), _frozen(isr.values))}


def _unclean_allowed(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    unclean = np.zeros(len(batch), np.uint8)
    if source.kind == ElectionKind.OFFLINE and source.allowed.any():
        clean = batch.candidates.any((batch.eligible & batch.in_sync) != 0)
        np.greater(source.allowed, clean, out=unclean)
    return {"unclean_allowed": _frozen(unclean)}


def _rows(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    return {"rows": _frozen(source.rows.copy())}


def _column(name: str) -> _Reader:
    def read(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
        column: NDArray[Any] = getattr(source.cluster.partitions, name)
        return {name: _frozen(column[source.rows].astype(np.int32, copy=False))}

    return read


def _of_brokers(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    brokers = source.cluster.brokers
    racks, rack = brokers.racks()
    return {
        "broker_ids": _frozen(brokers.ids.copy()),
        "broker_rack": _frozen(rack.copy()),
        "broker_live": _frozen(source.live.copy()),
        "broker_shutting_down": _frozen(brokers.shutting_down.copy()),
        "racks": racks,
    }


def _topic_names(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    return {"topic_names": source.cluster.topics.all_names()}


def _seed(source: _Source, batch: ElectionBatch) -> dict[str, Any]:
    p = source.cluster.partitions
    return {"seed": _selectors.batch_seed(int(source.kind), source.rows, p.topic, p.partition, p.leader_epoch)}


#: The reader of each field that is read on first access.
_READ: Final[Mapping[str, _Reader]] = {
    "rows": _rows,
    **{name: _column(name) for name in ("topic", "partition", "leader", "leader_epoch")},
    **dict.fromkeys(("eligible", "in_sync"), _marks),
    **dict.fromkeys(("broker_ids", "broker_rack", "broker_live", "broker_shutting_down", "racks"), _of_brokers),
    "isr": _isr,
    "unclean_allowed": _unclean_allowed,
    "topic_names": _topic_names,
    "seed": _seed,
}


def _frozen(array: NDArray[Any], count: int | None = None) -> NDArray[Any]:
    """A read-only view of a read-only array, or of its first ``count`` values. It cannot be made writable again."""
    array.setflags(write=False)
    return array[:count]
