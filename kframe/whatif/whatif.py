"""What-if operations on a snapshot, decided by the rules of the cluster's controller.

A snapshot knows its mode, and ``engine_of`` takes the engine of that mode. Outcomes are the same in both modes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import UUID

import numpy as np

from kframe.errors import InputError, ParameterError
from kframe.model.texts import counted, ids_text
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.content import brokers_text
from kframe.snapshot.controllers import broker_refusal, node_text
from kframe.whatif.engines.choice import engine_of
from kframe.whatif.engines.known_facts import known_row
from kframe.whatif.engines.script import Assignments, Script, Step, broker_steps, groups, step_name
from kframe.whatif.results.findings import FailOn
from kframe.whatif.results.health import ClusterHealth, union
from kframe.whatif.results.outcome import Operation, Outcome, StepOutcome, StepReport, Verb
from kframe.whatif.results.pages import ShownCluster

if TYPE_CHECKING:
    from kframe.core.selectors.leader_selection import FaultKind
    from kframe.model.config import ControllerConfig
    from kframe.model.elections import LeaderSelector
    from kframe.model.events import ElectionType, TopicPartition
    from kframe.model.ids import ElectionKind
    from kframe.model.plan import Plan
    from kframe.ports.clock import Clock
    from kframe.snapshot import Snapshot
    from kframe.whatif.engines.engine import Engine
    from kframe.whatif.engines.kraft.engine import KraftEngine
    from kframe.whatif.results.explanation import Decision, Explanation


class WhatIf(ShownCluster):
    """A cluster for what-if operations. Each operation continues from the state after the last one and returns its
    Outcome.

    ::

        outcome = WhatIf(read_snapshot("healthy.zookeeper.jsonl")).fail(brokers=[4])
        outcome.impact.newly_offline
    """

    def __init__(
        self,
        snapshot: Snapshot,
        config: Mapping[str, object] | None = None,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take a cluster over as it stands; the arguments, and what is raised: see ``engine_of``."""
        self._take(engine_of(snapshot, config, selectors, clock))
        self.snapshot = snapshot

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """What-if operations of an engine. Without its snapshot, the columns of the snapshot's partitions are free."""
        whatif = cls.__new__(cls)
        whatif._take(engine)
        return whatif

    def _take(self, engine: Engine) -> None:
        self.engine = engine
        """The controller of the cluster."""
        self.snapshot = engine.snapshot
        """The snapshot. That of ``of`` has no columns of partitions."""
        self._racks = {facts.broker_id: facts.rack for facts in engine.snapshot.brokers}
        self.step_progress: Progress = ignore_progress
        """Called with (done, total) steps, and repeatedly during long steps."""

    @property
    def config(self) -> ControllerConfig:
        """The configuration of the controller."""
        return self.engine.config

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about values that the snapshot lacks."""
        return self.engine.assumptions

    @property
    def cluster(self) -> Any:
        """The cluster in its present state, read-only: a ClusterState, or the ClusterMetadata of a KRaft cluster."""
        return self.engine.cluster

    @property
    def rules(self) -> str:
        """The rules that decide, in words, with the levels that they depend on."""
        return self.engine.rules

    @property
    def registered(self) -> tuple[int, ...]:
        """Ids of the brokers that are up, ascending: registered ones, and in a KRaft cluster not fenced."""
        return self.engine.registered

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """How many partitions leader selectors did wrong, by their names and what was wrong."""
        return self.engine.selector_faults

    def health(self) -> ClusterHealth:
        """The health of the cluster now. Observers do not count as under-replicated."""
        return self.engine.health()

    def play(self, script: Script) -> Outcome:
        """Play the steps of a script and return their outcome."""
        engine, operation, steps = self.engine, script.operation, script.steps
        script.progress = self.step_progress
        cluster, rules, notes = engine.cluster, engine.rules, tuple(self._notes(operation))
        before = after = engine.health()
        engine.begin()
        findings = FailOn.new_conditions(before, before)
        outcomes = []
        for done, (name, action) in enumerate(steps, 1):
            report = action()
            engine.settle()
            report = report if isinstance(report, StepReport) else StepReport(report)
            events = engine.take_events() if report.events is None else report.events
            after = report.health or engine.health()
            findings = {what: union(findings[what], new) for what, new in FailOn.new_conditions(before, after).items()}
            outcomes.append(StepOutcome(name, events, after.counts(), report.response, engine.take_batches()))
            self.step_progress(done, len(steps))
        changes = engine.changes((before, after))
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
            assumptions=engine.assumptions,
            notes=(*notes, *self._faults(), *script.notes),
            encode_ms=0.0,
            topics=tuple(script.topics),
            rules=rules,
            release=engine.release,
        )
        return script.complete(engine.with_messages(outcome))

    def _notes(self, operation: Operation) -> Iterator[str]:
        """What a real cluster would do in addition."""
        yield from self.engine.notes(operation)
        if operation.verb in (Verb.RESTART, Verb.UNFENCE):
            yield "replicas rejoin the ISR when they have caught up, which is not simulated"

    def _faults(self) -> Iterator[str]:
        for (name, fault), count in self.selector_faults.items():
            yield f"leader selector {name!r} {fault} for {counted(count, 'partition')}: the built-in rule decided"

    # -- operations

    def fail(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Fail these brokers, and all brokers of these racks that are up. Raises InputError for a broker that is
        unknown or not up."""
        ids = self._select_brokers(brokers, racks, registered=True)
        operation = Operation(Verb.FAIL, ids, together)
        return self.play(Script(operation, broker_steps(operation, "fails", "fail together", self.engine.stop)))

    def restart(
        self,
        brokers: Iterable[int] = (),
        racks: Iterable[str] = (),
        *,
        together: bool = True,
        clean: bool | None = None,
        repair_directories: bool = False,
    ) -> Outcome:
        """Restart brokers: failed ones register again, those that are up bounce before the controller notices their
        absence.

        ``clean``: in a KRaft cluster, whether the former process stopped in order. By default all have that did not
        fail in this what-if. ``repair_directories``: in a KRaft cluster, whether failed log directories of the brokers
        work again, with their data. By default they stay failed. Raises InputError for an unknown broker, and for
        ``repair_directories`` in ZooKeeper mode.
        """
        if repair_directories:
            self._kraft_engine(Verb.DIRECTORY)
        ids = self._select_brokers(brokers, racks, registered=False)
        return self.play(self.engine.restart(ids, together, clean, repair_directories))

    def shutdown(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Shut brokers down: each requests controlled shutdown, then stops. Together: all request, then all stop.

        Raises InputError for a broker that is unknown or not up.
        """
        ids = self._select_brokers(brokers, racks, registered=True)
        steps: list[Step] = []
        for group in groups(ids, together):
            for broker_id in group:
                name = f"broker {broker_id} requests controlled shutdown"
                steps.append((name, partial(self.engine.shut_down, broker_id)))
            steps.append((step_name(group, "stops", "stop"), partial(self.engine.stop, group)))
        return self.play(Script(Operation(Verb.SHUTDOWN, ids, together), steps))

    def elect(self, election: ElectionType, partitions: Sequence[TopicPartition] | None = None) -> Outcome:
        """Elect leaders, for these partitions or for all. Raises InputError for an unknown partition."""
        for topic, partition in partitions or ():
            known_row(self.cluster, topic, partition)
        named = None if partitions is None else tuple(partitions)
        kind = election.name.lower()
        operation = Operation(Verb.ELECT, election=kind, partitions=None if named is None else len(named))
        return self.play(Script(operation, [(f"{kind} election", partial(self.engine.elect, election, named))]))

    def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignments: Assignments = None,
        seed: int = 0,
    ) -> Outcome:
        """Create a topic: with counts (-1: the configured default), or with the replicas of each partition.

        ``seed`` seeds the numbers that Kafka draws to place replicas. Raises InputError for a replica on a broker that
        the snapshot does not know. The controller reports all other errors.
        """
        self._check_brokers(assignments)
        return self.play(self.engine.create_topic(name, partitions, replication_factor, assignments, seed))

    def create_partitions(self, name: str, count: int, *, assignments: Assignments = None, seed: int = 0) -> Outcome:
        """Add partitions to a topic until it has ``count``; or with ``assignments``, the replicas of each new one.

        A controller in ZooKeeper mode continues the pattern of partition 0. A KRaft controller draws random numbers,
        which ``seed`` seeds. Raises InputError for a replica on a broker that the snapshot does not know. The
        controller reports all other errors.
        """
        self._check_brokers(assignments)
        return self.play(self.engine.create_partitions(name, count, assignments, seed))

    def delete(self, names: Iterable[str]) -> Outcome:
        """Delete topics. Raises InputError for an empty list, or a repeated topic; the controller refuses unknown
        topics."""
        topics = tuple(names)
        if not topics:
            raise ParameterError("topics", "no topic", "at least one")
        for position, name in enumerate(topics):
            if name in topics[:position]:
                raise ParameterError("topics", f"topic {name} twice", "each topic once")
        return self.play(self.engine.delete_topics(topics))

    def reassign(self, plan: Plan) -> Outcome:
        """Play a plan to its end; ``Outcome.reassignment`` has the result of each partition.

        Raises InputError for an empty plan and for a repeated partition. The controller finds all other faults of a
        plan and responds with Kafka's error for each partition.
        """
        plan.check()
        return self.play(self.engine.reassign(plan.targets))

    def explain(self, topic: str, partition: int, fail: Iterable[int] = ()) -> Explanation:
        """Explain one partition as it stands, and after ``fail`` (broker ids, together). Raises InputError if it is
        unknown or a broker is."""
        from kframe.whatif.results.explanation import Explanation  # No outcome of another operation needs it.

        row = self.cluster.row(topic, partition)
        if row is None:
            known = "a topic of the snapshot" if topic not in self.cluster.topics else f"a partition of topic {topic}"
            raise ParameterError("partition", f"{topic}-{partition}", known)
        explainer, ids, rules = self.engine.explainer(row), tuple(fail), self.rules
        before = explainer.current_decision()
        elections: tuple[Decision, ...] = ()
        if ids:
            with explainer.observe(f"{brokers_text(ids)} failed") as observed:
                self.fail(ids)
            elections = tuple(observed)
        return Explanation(
            topic,
            partition,
            explainer.replicas,
            before,
            elections,
            explainer.leader,
            explainer.isr,
            self.assumptions,
            rules,
            self.engine.release,
        )

    # -- operations that only KRaft clusters have

    def fence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Fence brokers whose processes go on. Raises InputError for a broker that is unknown or fenced, and in
        ZooKeeper mode."""
        engine = self._kraft_engine(Verb.FENCE)
        operation = Operation(Verb.FENCE, self._select_brokers(brokers, racks, registered=True), together)
        return self.play(Script(operation, broker_steps(operation, "is fenced", "are fenced", engine.fence)))

    def unfence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """Unfence brokers. Raises InputError for a broker that is not registered, and in ZooKeeper mode."""
        engine = self._kraft_engine(Verb.UNFENCE)
        operation = Operation(Verb.UNFENCE, self._select_brokers(brokers, racks, registered=False), together)
        for broker_id in operation.brokers:
            engine.registration(broker_id)
        return self.play(Script(operation, broker_steps(operation, "is unfenced", "are unfenced", engine.unfence)))

    def fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> Outcome:
        """Fail log directories of a broker. A broker without any directory left stops and is fenced.

        Raises InputError for a broker that is not up, a directory that it does not list, a metadata.version without
        directories, and in ZooKeeper mode.
        """
        engine = self._kraft_engine(Verb.DIRECTORY)
        (broker_id,) = self._select_brokers([broker_id], [], registered=True)
        return self.play(engine.fail_directories(broker_id, failed))

    def update_features(
        self, levels: Mapping[str, int], *, unsafe: bool = False, voters: Collection[int] = ()
    ) -> Outcome:
        """Upgrade or downgrade feature levels, all or none; ``unsafe`` permits downgrades that lose metadata.

        The controller refuses levels that a registered broker or controller does not support.
        ``Outcome.feature_update`` has these nodes, and the records and rules that change. ``voters``: the controllers
        of the quorum, if the snapshot lacks them; a registered controller that is none of them is stale. Raises
        InputError for no level, voters that the snapshot contradicts, and in ZooKeeper mode.
        """
        engine = self._kraft_engine(Verb.FEATURE)
        if not levels:
            raise ParameterError("levels", "no feature", "at least one")
        return self.play(engine.change_features(levels, unsafe, voters))

    def unregister(self, brokers: Iterable[int] = (), stale_controllers: Iterable[int] = ()) -> Outcome:
        """Remove the registrations of brokers and controllers, one after another.

        Raises InputError for a node that is not registered or named twice, for no node, and in ZooKeeper mode.
        """
        engine = self._kraft_engine(Verb.UNREGISTER)
        nodes = {"brokers": tuple(brokers), "stale_controllers": tuple(stale_controllers)}
        registered = {
            "brokers": sorted(engine.cluster.brokers.registrations),
            "stale_controllers": sorted(engine.cluster.controllers),
        }
        for role, ids in nodes.items():
            for position, node_id in enumerate(ids):
                if node_id not in registered[role]:
                    raise ParameterError(role, f"node {node_id}", f"registered ones: {ids_text(registered[role])}")
                if node_id in ids[:position]:
                    raise ParameterError(role, f"node {node_id} twice", "each node once")
        if not any(nodes.values()):
            raise ParameterError("brokers", "no node", "at least one broker or controller")
        return self.play(engine.unregister(nodes["brokers"], nodes["stale_controllers"]))

    # -- requested brokers and partitions

    def _kraft_engine(self, verb: Verb) -> KraftEngine:
        """The engine, for an operation that only KRaft clusters have. Raises InputError if its table of verbs lacks
        it."""
        if verb not in self.engine.verbs:
            raise InputError("mode", self.engine.mode, "a snapshot of a KRaft cluster")
        return cast("KraftEngine", self.engine)

    def _check_brokers(self, assignments: Assignments) -> None:
        """Raise InputError for a replica on a broker that the snapshot does not know, or on an instance of kframe."""
        known = self.cluster.brokers.ids
        for number, replicas in enumerate(assignments or ()):
            for broker_id in replicas:
                if broker_id not in known or broker_id in self.snapshot.controllers:
                    actual = node_text(self.snapshot, broker_id)
                    raise ParameterError("assignments", actual, "brokers that the snapshot knows", f"[{number}]")

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
            raise ParameterError("brokers", "no broker", f"at least one of {ids_text(candidates)}")
        return tuple(chosen)

    def _in_rack(self, rack: str, candidates: tuple[int, ...]) -> list[int]:
        members = [broker_id for broker_id in candidates if self._racks[broker_id] == rack]
        if not members:
            racks = sorted({name for broker_id in candidates if (name := self._racks[broker_id]) is not None})
            known = f"one of {', '.join(racks)}" if racks else "no rack: the snapshot names none"
            raise ParameterError("racks", f"rack {rack!r}", known)
        return members
