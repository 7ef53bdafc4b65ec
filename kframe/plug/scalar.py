"""The scalar tier: a Python function that chooses for one partition at a time.

Meant for trying a rule out and for rules that are needed seldom: an object is made for every partition, which takes
about two microseconds where the bulk tier takes some nanoseconds. Turn it into a bulk selector once it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import compress
from typing import TypeAlias

import msgspec
import numpy as np

from kframe.model.columns import Int32
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind

#: Written where the function names a broker that the cluster does not know; the safety rules refuse it.
UNKNOWN_BROKER = np.iinfo(np.int32).min


class PartitionElection(msgspec.Struct, frozen=True):
    """One partition that needs a leader. Brokers are ids, as people know them; see ElectionBatch for the fields.

    A struct of msgspec's, because one is made for each partition and a frozen dataclass takes five times as long.
    """

    kind: ElectionKind
    topic: str
    partition: int
    replicas: tuple[int, ...]
    """The candidates, preferred one first."""
    eligible: tuple[int, ...]
    """Those that may lead as far as liveness goes, in the same order."""
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int
    unclean_allowed: bool
    racks: Mapping[int, str | None]
    """Rack by broker id, None where the broker names none; all brokers, one mapping for the whole batch."""
    seed: int


#: Returns the id of the broker to lead, or None for nobody.
ScalarFunction: TypeAlias = Callable[[PartitionElection], int | None]


class ScalarSelector:
    """A function for one partition, as a LeaderSelector."""

    def __init__(self, name: str, function: ScalarFunction) -> None:
        self._name = name
        self._function = function

    @property
    def name(self) -> str:
        """See LeaderSelector."""
        return self._name

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Ask the function for each partition. What it raises names the partition; then the whole batch is lost."""
        ids = batch.broker_ids.tolist()
        index_of = {broker_id: index for index, broker_id in enumerate(ids)}
        for position, view in enumerate(partition_elections(batch)):
            try:
                chosen = self._function(view)
                if type(chosen) is not int and chosen is not None:
                    _require_id(chosen)
            except Exception as error:
                error.add_note(f"while electing a leader for {view.topic}-{view.partition}")
                raise
            if chosen is not None:
                leader[position] = index_of.get(int(chosen), UNKNOWN_BROKER)


def partition_elections(batch: ElectionBatch) -> Iterator[PartitionElection]:
    """The partitions of a batch as objects, one after another. Columns become lists first: to read a number out of an
    array takes ten times as long as out of a list."""
    ids, names, seed, kind = batch.broker_ids, batch.topic_names, batch.seed, batch.kind
    racks = {
        broker_id: batch.racks[rack] if rack >= 0 else None
        for broker_id, rack in zip(ids.tolist(), batch.broker_rack.tolist(), strict=True)
    }
    candidates, isr = ids[batch.candidates.values].tolist(), ids[batch.isr.values].tolist()
    eligible, everywhere = batch.eligible.tolist(), bool(batch.eligible.all())
    ends = zip(batch.candidates.offsets[1:].tolist(), batch.isr.offsets[1:].tolist(), strict=True)
    leaders = np.append(ids, -1)[batch.leader].tolist()  # the last stands at NO_LEADER
    columns = zip(
        batch.topic.tolist(), batch.partition.tolist(), batch.leader.tolist(), leaders, batch.leader_epoch.tolist(),
        (batch.unclean_allowed != 0).tolist(), ends, strict=True,
    )  # fmt: skip
    first = isr_first = 0
    for topic, partition, index, leader, leader_epoch, unclean_allowed, (last, isr_last) in columns:
        replicas = tuple(candidates[first:last])
        yield PartitionElection(
            kind, names[topic], partition, replicas,
            replicas if everywhere else tuple(compress(replicas, eligible[first:last])),
            tuple(isr[isr_first:isr_last]), None if index < 0 else leader, leader_epoch, unclean_allowed, racks, seed,
        )  # fmt: skip
        first, isr_first = last, isr_last


def _require_id(chosen: object) -> None:
    if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer):
        raise TypeError(f"returned {chosen!r}, expected a broker id or None")
