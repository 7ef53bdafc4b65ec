"""What-if operations on a snapshot, decided by the rules of the cluster's controller.

A snapshot knows its mode. ``WhatIf`` of a cluster in ZooKeeper mode is a ``ZookeeperWhatIf``, of a KRaft cluster a
``KraftWhatIf``; both give the same outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self
from uuid import UUID

import numpy as np

from kframe.errors import InputError, ParameterError, SnapshotError
from kframe.lazy import load
from kframe.model.texts import counted
from kframe.snapshot.content import brokers_text
from kframe.snapshot.controllers import broker_refusal
from kframe.snapshot.files import Progress, ignore_progress
from kframe.whatif.health import ClusterHealth, union
from kframe.whatif.modes import CLASSES, Assignments, ModeOperations
from kframe.whatif.observers import ObserverRows
from kframe.whatif.outcome import ControllerResponse, FailOn, Operation, Outcome, StepOutcome, StepReport, Verb
from kframe.whatif.settings import knows_min_insync

if TYPE_CHECKING:
    from kframe.core.selectors.leader_selection import FaultKind
    from kframe.model.config import ControllerConfig
    from kframe.model.elections import LeaderSelector
    from kframe.model.events import ElectionType, TopicPartition
    from kframe.model.ids import ElectionKind
    from kframe.model.ports import Clock
    from kframe.snapshot import Snapshot
    from kframe.whatif.changes import PartitionChanges
    from kframe.whatif.explanation import Explanation
    from kframe.whatif.observe import BatchWatch
    from kframe.whatif.plan import Plan
    from kframe.whatif.timeline import TimelineEvent

#: A step: its name and its action, which returns the controller's response, a report that replaces the observed events,
#: or None.
Step = tuple[str, Callable[[], ControllerResponse | StepReport | None]]


class WhatIf:
    """A cluster for what-if operations. Each operation continues from the state after the last one and returns its
    Outcome.

    ::

        outcome = WhatIf(read_snapshot("healthy.zookeeper.jsonl")).fail(brokers=[4])
        outcome.impact.newly_offline
    """

    config: ControllerConfig
    assumptions: tuple[str, ...]
    _operations: ClassVar[ModeOperations]

    def __new__(cls, snapshot: Snapshot, *args: Any, **kwargs: Any) -> Any:
        """A what-if by the rules of the snapshot's mode."""
        return super().__new__(load(*CLASSES[snapshot.mode]) if cls is WhatIf else cls)

    def __init__(
        self,
        snapshot: Snapshot,
        config: Mapping[str, object] | None = None,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        clock: Clock | None = None,
        batches: BatchWatch | None = None,
    ) -> None:
        """Take a cluster over as it stands, without a failover.

        ``config`` holds Kafka's configuration keys; it prevails over the cluster-wide settings in the snapshot. In a
        KRaft cluster it may also name levels of features, such as ``metadata.version``, where the snapshot does not say
        them. ``clock`` is asked for the time that encoding takes; by default none passes. With ``batches`` each batch
        of requests to brokers is passed to it instead of being encoded and counted; a KRaft controller sends none.
        Raises SnapshotError if the snapshot does not say who leads, ConfigError for a key or value.
        """
        self.snapshot = snapshot
        """The snapshot. That of ``of`` has no columns of partitions once the controller has started."""
        self._start(config, selectors, clock, batches)
        self.snapshot = replace(self.snapshot, partitions=snapshot.partitions)

    @classmethod
    def of(
        cls, read: Callable[[], Snapshot], config: Mapping[str, object] | None = None,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
    ) -> Self:  # fmt: skip
        """The what-if of the snapshot that ``read`` returns; unlike ``WhatIf`` it releases the partitions' columns."""
        snapshot = read()
        whatif: Self = cls.__new__(cls, snapshot)
        whatif.snapshot = snapshot
        del snapshot
        whatif._start(config, selectors, None, None)
        return whatif

    def _start(
        self, config: Mapping[str, object] | None, selectors: Mapping[ElectionKind, LeaderSelector] | None,
        clock: Clock | None, batches: BatchWatch | None,
    ) -> None:  # fmt: skip
        snapshot, partitions = self.snapshot, self.snapshot.partitions
        if partitions.leader is None:
            raise SnapshotError(snapshot.source.name, "nothing about who leads", "a snapshot that has leaders and ISRs")
        self._known_epochs = (partitions.leader_epoch is not None, partitions.partition_epoch is not None)
        self._knows_min_insync = knows_min_insync(snapshot.topics, config)
        self._selectors = dict(selectors or {})
        self._observers = ObserverRows.of(snapshot)
        self._racks = {facts.broker_id: facts.rack for facts in snapshot.brokers}
        self.step_progress: Progress = ignore_progress
        """Called with (done, total) steps, and repeatedly during long steps."""
        self.step_completed: Callable[[int], None] = lambda _: None
        """Called with the number of each completed step, from 1."""
        del snapshot
        self._start_controller(config, clock, batches)

    def _start_controller(
        self, config: Mapping[str, object] | None, clock: Clock | None, batches: BatchWatch | None
    ) -> None:
        """Take the snapshot's cluster over; the arguments are those of ``WhatIf``."""
        raise NotImplementedError

    @property
    def cluster(self) -> Any:
        """The cluster in its present state, read-only: a ClusterState, or the ClusterMetadata of a KRaft cluster."""
        raise NotImplementedError

    @property
    def rules(self) -> str:
        """The rules that decide, in words, with the levels that they depend on."""
        raise NotImplementedError

    @property
    def registered(self) -> tuple[int, ...]:
        """Ids of the brokers that are up, ascending: registered ones, and in a KRaft cluster not fenced."""
        raise NotImplementedError

    def health(self) -> ClusterHealth:
        """The health of the cluster now. Observers do not count as under-replicated."""
        return self._observers.exclude(self._health(), self.cluster)

    def _health(self) -> ClusterHealth:
        raise NotImplementedError

    def play(self, operation: Operation, steps: Sequence[Step]) -> Outcome:
        """Play steps and return their outcome."""
        cluster, rules, notes = self.cluster, self.rules, tuple(self._notes(operation))
        before = after = self.health()
        self._begin()
        findings = FailOn.new_conditions(before, before)
        outcomes = []
        for done, (name, action) in enumerate(steps, 1):
            report = action()
            self._settle()
            report = report if isinstance(report, StepReport) else StepReport(report)
            events = self._take_events() if report.events is None else report.events
            after = report.health or self.health()
            findings = {what: union(findings[what], new) for what, new in FailOn.new_conditions(before, after).items()}
            outcomes.append(StepOutcome(name, events, after.counts(), report.response))
            self.step_completed(done)
            self.step_progress(done, len(steps))
        changes = self._changes((before, after))
        findings[FailOn.DATA_LOSS] = lost = np.zeros(len(cluster.partitions), np.bool_)
        lost[changes.rows] = changes.unclean
        findings[FailOn.POSSIBLE_DATA_LOSS] = union(findings[FailOn.POSSIBLE_DATA_LOSS], lost)
        outcome = Outcome(
            operation=operation,
            broker_ids=cluster.brokers.ids.copy(),
            racks=tuple(self._racks.get(broker_id) for broker_id in cluster.brokers.ids.tolist()),
            before=before,
            after=after,
            steps=tuple(outcomes),
            changes=changes,
            traffic={},
            findings=findings,
            bytes_unknown=None,
            assumptions=self.assumptions,
            notes=(*notes, *self._faults()),
            encode_ms=0.0,
            rules=rules,
        )
        return self._with_messages(outcome)

    def _begin(self) -> None:
        """Observe what an operation does from now on."""
        raise NotImplementedError

    def _settle(self) -> None:
        """Let the controller finish what a step began."""

    def _take_events(self) -> tuple[TimelineEvent, ...]:
        """The events observed since this was last called."""
        raise NotImplementedError

    def _changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        """The rows that differ since ``_begin``; ``health`` is that before and after the operation."""
        raise NotImplementedError

    def _with_messages(self, outcome: Outcome) -> Outcome:
        """The outcome with the requests that were sent, or the records that were written."""
        raise NotImplementedError

    def _notes(self, operation: Operation) -> Iterator[str]:
        """What a real cluster would do in addition."""
        raise NotImplementedError

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """How many partitions leader selectors did wrong, by their names and what was wrong."""
        raise NotImplementedError

    def _faults(self) -> Iterator[str]:
        for (name, fault), count in self.selector_faults.items():
            yield f"leader selector {name!r} {fault} for {counted(count, 'partition')}: the built-in rule decided"

    def selector_name(self, kind: ElectionKind) -> str | None:
        """Name of the leader selector in charge of a kind of election. None for the built-in rule."""
        selector = self._selectors.get(kind)
        return None if selector is None else selector.name

    # -- operations

    def fail(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Fail these brokers, and all brokers of these racks that are up. Raises InputError for a broker that is
        unknown or not up."""
        ids = self._select_brokers(brokers, racks, registered=True)
        steps = [(step_name(group, "fails", "fail together"), self._stop(group)) for group in groups(ids, together)]
        return self.play(Operation(Verb.FAIL, ids, together), steps)

    def restart(
        self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True,
        clean: bool | None = None, repair_directories: bool = False,
    ) -> Outcome:  # fmt: skip
        """Restart brokers: failed ones register again, those that are up bounce before the controller notices their
        absence.

        ``clean``: in a KRaft cluster, whether the former process stopped in order. By default all have that did not
        fail in this what-if. ``repair_directories``: in a KRaft cluster, whether failed log directories of the brokers
        work again, with their data. By default they stay failed. Raises InputError for an unknown broker, and for
        ``repair_directories`` in ZooKeeper mode.
        """
        ids = self._select_brokers(brokers, racks, registered=False)
        steps = [self._restart(group, clean, repair_directories) for group in groups(ids, together)]
        return self.play(Operation(Verb.RESTART, ids, together), steps)

    def shutdown(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Shut brokers down: each requests controlled shutdown, then stops. Together: all request, then all stop.

        Raises InputError for a broker that is unknown or not up.
        """
        ids = self._select_brokers(brokers, racks, registered=True)
        steps: list[Step] = []
        for group in groups(ids, together):
            for broker_id in group:
                steps.append((f"broker {broker_id} requests controlled shutdown", self._request_shutdown(broker_id)))
            steps.append((step_name(group, "stops", "stop"), self._stop(group)))
        return self.play(Operation(Verb.SHUTDOWN, ids, together), steps)

    def elect(self, election: ElectionType, partitions: Sequence[TopicPartition] | None = None) -> Outcome:
        """Elect leaders, for these partitions or for all. Raises InputError for an unknown partition."""
        for topic, partition in partitions or ():
            self._check_partition(topic, partition)
        named = None if partitions is None else tuple(partitions)
        kind = election.name.lower()
        operation = Operation(Verb.ELECT, election=kind, partitions=None if named is None else len(named))
        return self.play(operation, [(f"{kind} election", self._request_election(election, named))])

    def create(
        self, name: str, partitions: int = -1, replication_factor: int = -1, *,
        assignments: Assignments = None, seed: int = 0,
    ) -> Outcome:  # fmt: skip
        """Create a topic: with counts (-1: the configured default), or with the replicas of each partition.

        ``seed`` seeds the numbers that Kafka draws to place replicas. Raises InputError for a replica on a broker that
        the snapshot does not know. The controller reports all other errors.
        """
        return self._operations.create(self, name, partitions, replication_factor, assignments, seed)

    def create_partitions(self, name: str, count: int, *, assignments: Assignments = None, seed: int = 0) -> Outcome:
        """Add partitions to a topic until it has ``count``; or with ``assignments``, the replicas of each new one.

        A controller in ZooKeeper mode continues the pattern of partition 0. A KRaft controller draws random numbers,
        which ``seed`` seeds. Raises InputError for a replica on a broker that the snapshot does not know. The
        controller reports all other errors.
        """
        return self._operations.create_partitions(self, name, count, assignments, seed)

    def delete(self, names: Iterable[str]) -> Outcome:
        """Delete topics. Raises InputError for an empty list, or a repeated topic; the controller refuses unknown
        topics."""
        return self._operations.delete(self, names)

    def reassign(self, plan: Plan) -> Outcome:
        """Play a plan to its end; ``Outcome.reassignment`` has the result of each partition.

        Raises InputError for an empty plan and for a repeated partition. The controller finds all other faults of a
        plan and responds with Kafka's error for each partition.
        """
        return self._operations.reassign(self, plan)

    def explain(self, topic: str, partition: int, fail: Iterable[int] = ()) -> Explanation:
        """Explain one partition as it stands, and after ``fail`` (broker ids, together). Raises InputError if it is
        unknown or a broker is."""
        return self._operations.explain(self, topic, partition, fail)

    # -- operations that only KRaft clusters have

    def fence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Fence brokers whose processes go on. Raises InputError for a broker that is unknown or fenced, and in
        ZooKeeper mode."""
        raise self._only_kraft()

    def unfence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Unfence brokers. Raises InputError for a broker that is not registered, and in ZooKeeper mode."""
        raise self._only_kraft()

    def fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> Outcome:
        """Fail log directories of a broker. A broker without any directory left stops and is fenced.

        Raises InputError for a broker that is not up, a directory that it does not list, a metadata.version without
        directories, and in ZooKeeper mode.
        """
        raise self._only_kraft()

    def update_features(self, levels: Mapping[str, int], *, unsafe: bool = False) -> Outcome:
        """Upgrade or downgrade feature levels, all or none; ``unsafe`` permits downgrades that lose metadata.

        The controller refuses levels that it or a broker does not support. Raises InputError for no level, and in
        ZooKeeper mode.
        """
        raise self._only_kraft()

    def _only_kraft(self) -> InputError:
        return InputError("mode", "zookeeper", "a snapshot of a KRaft cluster")

    # -- actions of a step

    def _stop(self, ids: tuple[int, ...]) -> Callable[[], None]:
        """Brokers stop, and the controller notices."""
        raise NotImplementedError

    def _restart(self, ids: tuple[int, ...], clean: bool | None, repair_directories: bool) -> Step:
        """Brokers restart; ``clean``: see ``restart``."""
        raise NotImplementedError

    def _request_shutdown(self, broker_id: int) -> Callable[[], ControllerResponse]:
        """A broker requests a controlled shutdown."""
        raise NotImplementedError

    def _request_election(
        self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None
    ) -> Callable[[], ControllerResponse]:
        """An administrator requests elections."""
        raise NotImplementedError

    # -- requested brokers and partitions

    def _check_partition(self, topic: str, partition: int) -> None:
        if self.cluster.row(topic, partition) is None:
            raise ParameterError("partitions", f"{topic}-{partition}", "a partition of the snapshot")

    def _select_brokers(self, brokers: Iterable[int], racks: Iterable[str], *, registered: bool) -> tuple[int, ...]:
        """The brokers named, then those in the racks, each once. Raises InputError if there is none."""
        requested, up = tuple(brokers), self.registered
        candidates = up if registered else tuple(self._racks)
        for position, broker_id in enumerate(requested):
            if broker_id not in candidates or broker_id in self.snapshot.controllers:
                raise broker_refusal(self.snapshot, broker_id, candidates, up=registered)
            if broker_id in requested[:position]:
                raise ParameterError("brokers", f"broker {broker_id} twice", "each broker once")
        chosen = dict.fromkeys(requested)
        for rack in racks:
            chosen |= dict.fromkeys(self._in_rack(rack, candidates))
        if not chosen:
            raise ParameterError("brokers", "no broker", f"at least one of {_listed(candidates)}")
        return tuple(chosen)

    def _in_rack(self, rack: str, candidates: tuple[int, ...]) -> list[int]:
        members = [broker_id for broker_id in candidates if self._racks[broker_id] == rack]
        if not members:
            racks = sorted({name for broker_id in candidates if (name := self._racks[broker_id]) is not None})
            known = f"one of {', '.join(racks)}" if racks else "no rack: the snapshot names none"
            raise ParameterError("racks", f"rack {rack!r}", known)
        return members


def groups(ids: tuple[int, ...], together: bool) -> list[tuple[int, ...]]:
    """The brokers of each step."""
    return [ids] if together else [(broker_id,) for broker_id in ids]


def step_name(ids: tuple[int, ...], singular: str, plural: str) -> str:
    """``broker 4 fails``, ``brokers 4, 5 fail together``."""
    return f"{brokers_text(ids)} {singular if len(ids) == 1 else plural}"


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(str(broker_id) for broker_id in ids) or "none"
