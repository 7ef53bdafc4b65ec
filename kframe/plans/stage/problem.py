"""The columns that stages are made from: the copies of a plan, the load limits and the free space of disks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Int64, Ragged, UInt8
from kframe.model.ids import NO_LEADER
from kframe.plans.check.rack_rules import uneven_replicas
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.stage.request import StageRequest
from kframe.snapshot import Snapshot
from kframe.snapshot.controllers import node_text

#: No limit. Sums of bytes stay below it, and it is exact in a float.
UNLIMITED: Final = 2**62
#: Ranks of reassignments, which come in this order (``schedule_stages``).
URGENT: Final = 0
NORMAL: Final = 1
CROWDING: Final = 2
ALONE: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class StageProblem:
    """``k`` reassignments of a plan, with broker indexes in ``brokers`` (b,), the ids in ascending order.

    ``positions`` (k,) are those in the plan, ascending. ``adding`` and ``removing`` are copied and deleted replicas,
    ``source`` (k,) the leaders that new replicas copy from, ``size`` (k,) the bytes of a replica. ``limits`` (4,):
    replicas a broker, bytes a broker, replicas in total, bytes in total. ``used`` and ``free`` (b,): bytes of disk
    before the plan. ``rank`` (k,): URGENT ones take replicas off a disk that cannot take what it is to get, or spread a
    partition more evenly over racks. CROWDING ones spread it less evenly. ALONE ones exceed a limit by themselves: each
    has a stage of its own. ``refused`` names the reason by position in the plan.
    """

    checked: CheckedPlan
    request: StageRequest
    brokers: Int32
    positions: Int32
    adding: Ragged
    removing: Ragged
    source: Int32
    size: Int64
    limits: Int64
    used: Int64
    free: Int64
    rank: UInt8
    refused: dict[int, str]

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def moves(self) -> Int64:
        """(k,) replicas that are copied."""
        return self.adding.counts.astype(np.int64)

    def take(self, rows: Int32) -> StageProblem:
        """Some of the reassignments, with the same limits and disks."""
        return replace(
            self,
            positions=self.positions[rows],
            adding=self.adding.take(rows),
            removing=self.removing.take(rows),
            source=self.source[rows],
            size=self.size[rows],
            rank=self.rank[rows],
        )

    def loads(self) -> Int64:
        """(4, b) replicas into and out of each broker, bytes into and out of it."""
        load, targets = np.zeros((4, len(self.brokers)), np.int64), self.adding.values
        np.add.at(load[0], targets, 1)
        np.add.at(load[1], self.source, self.moves)
        np.add.at(load[2], targets, self.size[self.adding.owners])
        np.add.at(load[3], self.source, self.moves * self.size)
        return load


def stage_problem(checked: CheckedPlan, request: StageRequest) -> StageProblem:
    """The columns of a plan. Raises SnapshotError without leaders, InputError for capacities of unknown brokers."""
    checked.plan.refuse_directories("a plan without: its moves within brokers have no stages")
    snapshot, leaders = checked.snapshot, checked.snapshot.known_leaders()
    brokers = np.array([facts.broker_id for facts in snapshot.brokers], np.int32)
    leader = np.where(checked.rows >= 0, leaders[checked.rows], NO_LEADER)
    refused = _refused(checked, leader)
    staged = np.ones(len(checked.plan), np.bool_)
    staged[list(refused)] = False
    positions = np.flatnonzero(staged).astype(np.int32)
    adding, removing = (_indexes(lists.take(positions), brokers) for lists in (checked.adding, checked.removing))
    weights = np.zeros(len(snapshot), np.int64) if request.weights is None else request.weights
    size = weights[checked.rows[positions]]
    limits = _limits(request)
    used = _weighted(_indexes(snapshot.partitions.replicas, brokers), weights, len(brokers))
    free = _capacity(request, snapshot, brokers) - used
    if float(used.sum()) + float((size * adding.counts).sum(dtype=np.float64)) >= UNLIMITED:
        raise ParameterError("weights", "sizes beyond 2^62 bytes in total", "sizes in bytes")
    rank = _ranks(checked, positions, adding, removing, size, free, brokers)
    count = adding.counts
    exceeds = (count > limits[0]) | (count * size > limits[1]) | (count > limits[2]) | (count * size > limits[3])
    rank[exceeds] = ALONE
    source = np.searchsorted(brokers, leader[positions]).astype(np.int32)
    return StageProblem(
        checked, request, brokers, positions, adding, removing, source, size, limits, used, free, rank, refused
    )


def _refused(checked: CheckedPlan, leader: Int32) -> dict[int, str]:
    """Why partitions of the plan cannot be staged, by position."""
    led = np.isin(leader, [facts.broker_id for facts in checked.snapshot.brokers if facts.registered])
    reasons = np.select([~checked.valid, checked.is_moving, ~checked.unchanged & ~led], [1, 2, 3], 0)
    names = ("", "invalid", "reassigning", "no-leader")
    return {position: names[reasons[position]] for position in np.flatnonzero(reasons).tolist()}


def _limits(request: StageRequest) -> Int64:
    values = (request.moves_per_broker, request.stage_bytes_per_broker, request.moves, request.bytes_in_flight)
    return np.array([UNLIMITED if value is None else min(value, UNLIMITED) for value in values], np.int64)


def _capacity(request: StageRequest, snapshot: Snapshot, brokers: Int32) -> Int64:
    capacity = request.disk_capacity
    for broker_id in capacity:
        if broker_id is not None and broker_id not in brokers:
            raise ParameterError("disk_capacity", node_text(snapshot, broker_id), "a broker of the snapshot")
    default = capacity.get(None, UNLIMITED)
    return np.array([min(capacity.get(broker_id, default), UNLIMITED) for broker_id in brokers.tolist()], np.int64)


def _ranks(
    checked: CheckedPlan, positions: Int32, adding: Ragged, removing: Ragged, size: Int64, free: Int64, brokers: Int32
) -> UInt8:
    """(k,) URGENT, NORMAL or CROWDING."""
    rack = _racks(checked.snapshot, brokers)
    hosts = np.bincount(rack).astype(np.int32)
    uneven = [
        uneven_replicas(lists, rack, hosts)
        for lists in (
            _indexes(lists.take(positions), brokers) for lists in (checked.origin, checked.plan.targets.replicas)
        )
    ]
    tight = _weighted(adding, size, len(brokers)) > free
    relieves = removing.any(tight[removing.values]) & (size > 0)
    ranks = np.select([relieves | (uneven[1] < uneven[0]), uneven[1] > uneven[0]], [URGENT, CROWDING], NORMAL)
    return ranks.astype(np.uint8)


def _racks(snapshot: Snapshot, brokers: Int32) -> Int32:
    """(b,) a number of the rack of each broker. A broker without rack is a rack of its own."""
    names: Sequence[object] = [facts.broker_id if facts.rack is None else facts.rack for facts in snapshot.brokers]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names], np.int32).reshape(len(brokers))


def _indexes(lists: Ragged, brokers: Int32) -> Ragged:
    return Ragged(lists.offsets, np.searchsorted(brokers, lists.values).astype(np.int32))


def _weighted(lists: Ragged, size: Int64, brokers: int) -> Int64:
    """(b,) sum of the sizes of the replicas on each broker."""
    sums = np.zeros(brokers, np.int64)
    np.add.at(sums, lists.values, np.repeat(size, lists.counts))
    return sums
