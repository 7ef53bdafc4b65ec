"""The scalar tier: a Python function that chooses for a partition at a time.

For prototypes and rare elections: a partition costs about a microsecond, where the bulk tier takes some nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat, tee
from typing import TypeAlias

import msgspec
import numpy as np

from kframe.model.arrays import Int32, Ragged
from kframe.model.elections import ElectionBatch
from kframe.model.ids import NO_LEADER, ElectionKind

#: The choice of a broker that the cluster does not know; it violates the safety rules.
UNKNOWN_BROKER = np.iinfo(np.int32).min


class PartitionElection(msgspec.Struct, frozen=True):
    """A partition that needs a leader. Brokers are ids; see ElectionBatch for the fields.

    A msgspec struct, because a frozen dataclass takes five times as long to create.
    """

    kind: ElectionKind
    topic: str
    partition: int
    replicas: tuple[int, ...]
    """The candidates, preferred one first."""
    eligible: tuple[int, ...]
    """The candidates on live brokers with an online log directory, in the same order."""
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int
    unclean_allowed: bool
    racks: Mapping[int, str | None]
    """Rack by broker id, None for a broker without rack. A single mapping for the whole batch."""
    seed: int


#: Returns the id of the broker to lead, or None for no leader.
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
        """Call the function for each partition. Its exceptions get a note that names the partition."""
        index_of: dict[int | None, int] = {
            broker_id: index for index, broker_id in enumerate(batch.broker_ids.tolist())
        }
        index_of[None] = NO_LEADER
        choices = []
        for view in partition_elections(batch):
            try:
                choice = self._function(view)
                if type(choice) is not int and choice is not None:
                    _require_id(choice)
            except Exception as error:
                error.add_note(f"while electing a leader for {view.topic}-{view.partition}")
                raise
            choices.append(index_of.get(choice, UNKNOWN_BROKER))
        leader[:] = np.fromiter(choices, np.int32, len(choices))


def partition_elections(batch: ElectionBatch) -> Iterator[PartitionElection]:
    """Yield the partitions of a batch as objects.

    Columns become lists first, because reading an item of an array takes ten times as long as an item of a list.
    """
    ids, candidates = batch.broker_ids, batch.candidates
    known = np.array([*ids.tolist(), None], object)  # The last entry is for NO_LEADER.
    racks = {
        broker_id: batch.racks[rack] if rack >= 0 else None
        for broker_id, rack in zip(ids.tolist(), batch.broker_rack.tolist(), strict=True)
    }
    replicas, eligible = tee(_tuples(ids, candidates))
    if not batch.eligible.all():
        eligible = _tuples(ids, candidates.keep(batch.eligible != 0))
    return map(
        PartitionElection,
        repeat(batch.kind),
        map(batch.topic_names.__getitem__, batch.topic.tolist()),
        batch.partition.tolist(),
        replicas,
        eligible,
        _tuples(ids, batch.isr),
        known[batch.leader].tolist(),
        batch.leader_epoch.tolist(),
        (batch.unclean_allowed != 0).tolist(),
        repeat(racks),
        repeat(batch.seed),
    )


def _tuples(ids: Int32, lists: Ragged) -> Iterator[tuple[int, ...]]:
    """Lists of brokers as tuples of ids."""
    values, offsets = tuple(ids[lists.values].tolist()), lists.offsets.tolist()
    return map(values.__getitem__, map(slice, offsets, offsets[1:]))


def _require_id(choice: object) -> None:
    if isinstance(choice, bool) or not isinstance(choice, int | np.integer):
        raise TypeError(f"returned {choice!r}, expected a broker id or None")
