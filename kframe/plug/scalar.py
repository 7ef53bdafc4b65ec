"""The scalar tier: a Python function that chooses for one partition at a time.

Meant for trying a rule out and for rules that are needed seldom: an object is made for every partition, which takes
about two microseconds where the bulk tier takes some nanoseconds. Turn it into a bulk selector once it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kframe.model.columns import Int32
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind

#: Written where the function names a broker that the cluster does not know; the safety rules refuse it.
UNKNOWN_BROKER = np.iinfo(np.int32).min


@dataclass(frozen=True, slots=True)
class PartitionElection:
    """One partition that needs a leader. Brokers are ids, as people know them; see ElectionBatch for the fields."""

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
        racks = {
            broker_id: batch.racks[rack] if rack >= 0 else None
            for broker_id, rack in zip(ids, batch.broker_rack.tolist(), strict=True)
        }
        for position in range(len(batch)):
            view = partition_election(batch, position, ids, racks)
            try:
                chosen = self._function(view)
                if chosen is not None and (isinstance(chosen, bool) or not isinstance(chosen, int | np.integer)):
                    raise TypeError(f"returned {chosen!r}, expected a broker id or None")
            except Exception as error:
                error.add_note(f"while electing a leader for {view.topic}-{view.partition}")
                raise
            if chosen is not None:
                leader[position] = index_of.get(int(chosen), UNKNOWN_BROKER)


def partition_election(
    batch: ElectionBatch, position: int, ids: list[int], racks: Mapping[int, str | None]
) -> PartitionElection:
    """The partition at ``position`` of a batch as an object; ``ids`` and ``racks`` are made once a batch."""
    first, last = int(batch.candidates.offsets[position]), int(batch.candidates.offsets[position + 1])
    replicas = tuple([ids[index] for index in batch.candidates.values[first:last].tolist()])
    leader = int(batch.leader[position])
    return PartitionElection(
        kind=batch.kind,
        topic=batch.topic_names[batch.topic[position]],
        partition=int(batch.partition[position]),
        replicas=replicas,
        eligible=tuple([one for one, may in zip(replicas, batch.eligible[first:last].tolist(), strict=True) if may]),
        isr=tuple([ids[index] for index in batch.isr[position].tolist()]),
        leader=ids[leader] if leader >= 0 else None,
        leader_epoch=int(batch.leader_epoch[position]),
        unclean_allowed=bool(batch.unclean_allowed[position]),
        racks=racks,
        seed=batch.seed,
    )
