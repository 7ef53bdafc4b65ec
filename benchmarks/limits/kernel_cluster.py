"""A cluster as the arguments of kernels, and the bytes that a kernel must touch.

A kernel must touch each of its arrays once: an array beside the rows as a whole, a column by the 64-byte cache lines
of its rows. The count comes from the columns' dtypes. Two things are excluded where ``Call`` states it: columns that
are read for unhealthy rows only, and unused capacity. Tables of brokers and topics stay in the cache and count once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.bench.clusters import whole_cluster
from kframe.model.arrays import Int32
from kframe.model.columns import COLUMNS
from kframe.model.ids import PartitionState, ReplicaState
from verification import reference

LINE_BYTES: Final = 64
PER: Final = {column.name: column.per for column in COLUMNS}

Arguments: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of a kernel. ``expected``: what it returns on a healthy cluster."""

    extra_arguments: Arguments
    """The arguments that are neither columns nor what ``KernelCluster`` has under their names."""
    expected: int
    unread: tuple[str, ...] = ()
    """Columns that are read only for rows that are not healthy."""
    filled: Mapping[str, int] = field(default_factory=dict)
    """Entries of an array that are touched, where that is not all of them."""
    addressed: Mapping[str, str] = field(default_factory=dict)
    """Further arrays that are addressed by row or slot, as columns are."""
    before: Callable[[], None] = lambda: None
    """Puts back what the call changes."""


class KernelCluster:
    """A healthy cluster in the layout of the peers' benchmark, and ``rows`` of it: all, or what one broker hosts."""

    def __init__(self, partitions: int, brokers: int, *, scattered: bool = False) -> None:
        self.cluster = whole_cluster(partitions, brokers)
        p, topics = self.cluster.partitions, self.cluster.topics
        self.p, self.n, self.b = p, len(p), brokers
        p.set_replica_states(slice(None), ReplicaState.ONLINE)
        p.set_states(np.arange(len(p)), PartitionState.ONLINE)
        everything = np.arange(self.n, dtype=np.int32)
        self.rows: Int32 = everything
        if scattered:
            self.rows = np.unique(np.flatnonzero(p.replica == brokers // 2) // 3).astype(np.int32)
        self.k = len(self.rows)
        self.replicas, self.isrs = p.lists("replica", self.rows), p.lists("isr", self.rows)
        self.m = len(self.replicas.values)
        name_offsets, names = topics.wire_names()
        ones = np.ones(brokers, np.uint8)
        self.shared_arguments: Arguments = {
            "rows": self.rows,
            "live": ones,
            "shutting_down": np.zeros(brokers, np.uint8),
            "deleting": topics.deleting,
            "deletion_started": topics.deletion_started,
            "topic_deleting": topics.deleting,
            "registered": ones,
            "old_epoch": p.leader_epoch,
            "old_leader": p.leader,
            "controller_epochs": p.epoch_table.epochs,
            "allowed": ones,
            "chosen": ones,
            "broker_ids": self.cluster.brokers.ids,
            "name_offsets": name_offsets,
            "names": names,
            "topic_ids": topics.ids.reshape(-1),
            "rack": (np.arange(brokers) % 4).astype(np.int32),
            "rack_bit": 1 << np.arange(brokers, dtype=np.int64) % 4,
            "min_insync": np.full(len(topics), 2, np.int32),
            "unclean": np.zeros(len(topics), np.uint8),
            "grouped": True,
            "compact": True,
            "with_topic_ids": True,
        }

    def value(self, name: str, call: Call) -> Any:
        """An argument by its name."""
        value = call.extra_arguments.get(name, self.shared_arguments.get(name))
        return getattr(self.p, name) if value is None else value

    def arguments(self, name: str, call: Call) -> Arguments:
        """All arguments of a kernel, in order."""
        return {parameter: self.value(parameter, call) for parameter in parameters(name)}

    def bytes_of(self, name: str, call: Call) -> int:
        """Bytes that the kernel must touch (see the module)."""
        total = 0
        for parameter, value in self.arguments(name, call).items():
            if isinstance(value, np.ndarray) and parameter not in call.unread:
                per = call.addressed.get(
                    parameter, PER.get(parameter) if parameter not in call.extra_arguments else None
                )
                aliased = {"old_epoch": "row", "old_leader": "row"}
                per = aliased.get(parameter, per)
                total += self._touched(value, per, call.filled.get(parameter))
        return total

    def _touched(self, array: NDArray[Any], per: str | None, filled: int | None) -> int:
        if per is None:
            return int((array.size if filled is None else filled) * array.itemsize)
        if self.k == self.n:
            return int(array.nbytes)
        positions = self.rows if per == "row" else self.p.slots_of(self.rows)
        return len(np.unique(positions.astype(np.int64) * array.itemsize // LINE_BYTES)) * LINE_BYTES


def parameters(name: str) -> list[str]:
    """The names of a kernel's arguments, as in its reference."""
    return list(inspect.signature(getattr(reference, name)).parameters)
