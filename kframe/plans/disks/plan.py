"""Plan moves between the log directories of each broker: the fewest bytes, in the order of their effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kframe.model.arrays import Int32, Ragged
from kframe.model.plan import ANY_DIRECTORY, Plan
from kframe.model.tables import Targets
from kframe.plans.disks.directories import BrokerDisks, broker_disks
from kframe.plans.disks.exact import DirectoryTargets, improved
from kframe.plans.disks.moves import choose_moves
from kframe.plans.disks.problem import DirectoryProblem, level_problem, relief_problem
from kframe.plans.disks.request import DiskRequest
from kframe.plans.generate.observers import planned_observers
from kframe.ports.administration import LogDirectory
from kframe.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class BrokerMoves:
    """The moves of a broker. ``replicas`` (k,) are those that move, the largest first."""

    disks: BrokerDisks
    problem: DirectoryProblem
    assignment: DirectoryTargets
    replicas: Int32

    @property
    def bytes(self) -> int:
        """What the broker copies."""
        return int(self.problem.size[self.replicas].sum())


@dataclass(frozen=True, eq=False)
class DiskPlan:
    """Moves between the log directories of brokers, which copy at the same time, each its own replicas in order."""

    snapshot: Snapshot
    request: DiskRequest
    brokers: tuple[BrokerMoves, ...]
    unlisted: tuple[int, ...]
    """Brokers with replicas whose log directories are not known."""

    @property
    def bytes(self) -> int:
        """What all brokers copy."""
        return sum(broker.bytes for broker in self.brokers)

    @property
    def bound(self) -> int:
        """What all brokers copy at least to leave as few bytes outside of the limits."""
        return sum(broker.assignment.bound for broker in self.brokers)

    @property
    def complete(self) -> bool:
        """Whether each directory is within its limits after the plan."""
        return not any(broker.assignment.outside for broker in self.brokers)

    @property
    def seconds(self) -> float | None:
        """How long the broker with the most bytes copies. None without a rate."""
        if self.request.rate is None:
            return None
        return max((broker.bytes for broker in self.brokers), default=0) / self.request.rate

    @cached_property
    def moves(self) -> list[tuple[BrokerMoves, int]]:
        """Each move: its broker and its replica there. The largest is the first."""
        moves = [(broker, replica) for broker in self.brokers for replica in broker.replicas.tolist()]
        return sorted(moves, key=lambda move: -move[0].disks.size[move[1]])

    @property
    def plan(self) -> Plan:
        """The partitions whose replicas move, with their replicas as they are and the new log directories."""
        paths: dict[int, dict[int, str]] = {}
        for broker, replica in self.moves:
            directory = broker.disks.directories[int(broker.assignment.target[replica])]
            paths.setdefault(int(broker.disks.rows[replica]), {})[broker.disks.broker_id] = directory.path
        rows, topics = np.fromiter(paths, np.int32, len(paths)), self.snapshot.topics
        numbers, topic = np.unique(topics.topic_of_rows()[rows], return_inverse=True)
        replicas: Ragged = self.snapshot.partitions.replicas.take(rows)
        targets = Targets(
            tuple(topics.names[number] for number in numbers.tolist()),
            topic.astype(np.int32),
            topics.partition_of_rows()[rows],
            replicas,
            np.zeros(len(rows), np.bool_),
        )
        log_dirs = tuple(
            tuple(paths[row].get(broker_id, ANY_DIRECTORY) for broker_id in replicas[index].tolist())
            for index, row in enumerate(rows.tolist())
        )
        observers = planned_observers(self.snapshot, rows, replicas)
        return Plan("disks", targets, np.zeros(len(rows), np.bool_), observers, log_dirs)


def plan_disks(
    snapshot: Snapshot, listed: Mapping[int, Sequence[LogDirectory]], request: DiskRequest | None = None
) -> DiskPlan:
    """Plan the fewest bytes between the log directories of each broker.

    ``listed`` has the directories by broker id, as ``read_directories`` or ``Administration.log_directories`` return
    them. Equal input gives equal plans. Raises InputError for a request that the input cannot answer, and SolverError
    if the request is exact and the solver fails.
    """
    request = DiskRequest() if request is None else request
    problem_of = relief_problem if request.relieve else level_problem
    brokers = []
    for disks in broker_disks(snapshot, listed, request):
        problem = problem_of(disks, request)
        assignment = improved(problem, choose_moves(problem), exact=request.exact)
        moved = np.flatnonzero(assignment.target != problem.home)
        order = np.lexsort((disks.rows[moved], -disks.size[moved]))
        brokers.append(BrokerMoves(disks, problem, assignment, moved[order].astype(np.int32)))
    holders = np.unique(snapshot.partitions.replicas.values).tolist()
    covered = request.brokers is None and not request.relieve
    unlisted = tuple(broker_id for broker_id in holders if broker_id not in listed) if covered else ()
    return DiskPlan(snapshot, request, tuple(brokers), unlisted)
