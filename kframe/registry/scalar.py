"""The scalar tier: a Python function that chooses for one partition at a time.

Meant for trying a rule out and for rules that are needed seldom: an object is made for every partition, which takes
about a microsecond where the bulk tier takes some nanoseconds. Turn it into a bulk selector once it is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import repeat, tee
from typing import TypeAlias

import msgspec
import numpy as np

from kframe.model.columns import Int32, Ragged
from kframe.model.elections import ElectionBatch
from kframe.model.ids import NO_LEADER, ElectionKind

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
        index_of: dict[int | None, int] = {one: index for index, one in enumerate(batch.broker_ids.tolist())}
        index_of[None] = NO_LEADER
        answers = []
        for view in partition_elections(batch):
            try:
                chosen = self._function(view)
                if type(chosen) is not int and chosen is not None:
                    _require_id(chosen)
            except Exception as error:
                error.add_note(f"while electing a leader for {view.topic}-{view.partition}")
                raise
            answers.append(index_of.get(chosen, UNKNOWN_BROKER))
        leader[:] = np.fromiter(answers, np.int32, len(answers))


def partition_elections(batch: ElectionBatch) -> Iterator[PartitionElection]:
    """The partitions of a batch as objects, one after another. Columns become lists first, and these are walked through
    in C: to read a number out of an array takes ten times as long as out of a list."""
    ids, candidates = batch.broker_ids, batch.candidates
    known = np.array([*ids.tolist(), None], object)  # the last stands at NO_LEADER
    racks = {
        broker_id: batch.racks[rack] if rack >= 0 else None
        for broker_id, rack in zip(ids.tolist(), batch.broker_rack.tolist(), strict=True)
    }
    replicas, eligible = tee(_tuples(ids, candidates))
    if not batch.eligible.all():
        eligible = _tuples(ids, candidates.keep(batch.eligible != 0))
    return map(
        PartitionElection, repeat(batch.kind), map(batch.topic_names.__getitem__, batch.topic.tolist()),
        batch.partition.tolist(), replicas, eligible, _tuples(ids, batch.isr), known[batch.leader].tolist(),
        batch.leader_epoch.tolist(), (batch.unclean_allowed != 0).tolist(), repeat(racks), repeat(batch.seed),
    )  # fmt: skip


def _tuples(ids: Int32, lists: Ragged) -> Iterator[tuple[int, ...]]:
    """Lists of brokers as tuples of ids."""
    values, offsets = tuple(ids[lists.values].tolist()), lists.offsets.tolist()
    return map(values.__getitem__, map(slice, offsets, offsets[1:]))


def _require_id(chosen: object) -> None:
    if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer):
        raise TypeError(f"returned {chosen!r}, expected a broker id or None")
