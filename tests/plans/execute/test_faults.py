"""Random crashes, failures of brokers and requests during executions, and an invariant of their results."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kframe.plans.execute.entries import ExecutionLimits, Goal, GoalChanged, RunResult
from tests.plans.execute.scripted_cluster import PATHS, Crash, Crashes, run, started
from tests.plans.execute.test_crashes import (
    AFTER,
    CONFIGS,
    DIRECTORIES,
    ORIGIN,
    PATHS_AFTER,
    PATHS_BEFORE,
    STAGES,
    new_cluster,
)
from verification.support.properties import examples

BROKERS = range(1, 6)

limits = st.builds(
    ExecutionLimits, st.none() | st.sampled_from([500, 5_000_000]), st.integers(1, 6), st.sampled_from([0, 3])
)
#: What happens at an observation of a run, by its number: a broker changes between live and dead, or a user's request.
events = st.dictionaries(
    st.integers(1, 30), st.sampled_from([*BROKERS]) | st.sampled_from([Goal.PAUSE, Goal.ABORT]), max_size=4
)
crashes = st.none() | st.builds(Crashes, st.integers(1, 40), st.booleans())


class ExecutionMachine(RuleBasedStateMachine):
    """One plan on one cluster; each rule of a run is a process with the same journal."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "journal"
        self.cluster = new_cluster()
        self.start = started(self.cluster, *STAGES, directories=DIRECTORIES)
        self.result: RunResult | None = None
        self.dead: set[int] = set()

    @rule(waits_for_all=st.booleans())
    @precondition(lambda self: not self.path.exists())
    def choose_mode(self, waits_for_all: bool) -> None:
        """Reassignments complete as in ZooKeeper mode, or as in KRaft mode."""
        self.cluster.waits_for_all = waits_for_all

    def fail_or_restart(self, broker_id: int) -> None:
        """A live broker fails if no other is dead, and a dead one restarts."""
        if broker_id in self.dead:
            self.dead.remove(broker_id)
            self.cluster.restart(broker_id)
        elif not self.dead:
            self.dead.add(broker_id)
            self.cluster.fail(broker_id)

    @rule(broker_id=st.sampled_from([*BROKERS]))
    def change_broker(self, broker_id: int) -> None:
        """A broker fails or restarts while no process executes."""
        self.fail_or_restart(broker_id)
        self.result = None

    @rule(goal=st.sampled_from(Goal), limits=limits, events=events, crashes=crashes)
    def execute(
        self, goal: Goal, limits: ExecutionLimits, events: Mapping[int, int | Goal], crashes: Crashes | None
    ) -> None:
        """A process works towards a goal, with new limits, until its end or its crash."""

        def script(number: int) -> Goal | None:
            event = events.get(number)
            if isinstance(event, Goal):
                return event
            if event is not None:
                self.fail_or_restart(event)
            return None

        changed = GoalChanged(goal, "requested", limits=limits if goal in (Goal.EXECUTE, Goal.ROLLBACK) else None)
        self.result = None
        with suppress(Crash):
            self.result = run(self.cluster, self.path, self.start, [changed], crashes, script).result

    @invariant()
    def result_matches_cluster(self) -> None:
        """With all brokers alive, throttles are as before; nothing is in flight, and the assignment is the result's."""
        if self.result is None or self.dead:
            return
        assert self.cluster.configs == CONFIGS
        assert self.cluster.reassignments() == {}
        assert all(path in PATHS for path in self.cluster.paths().values()), "no log is being moved"
        if self.result is RunResult.COMPLETED:
            assert (self.cluster.assignment(), self.cluster.paths()) == (AFTER, PATHS_AFTER)
        if self.result is RunResult.ROLLED_BACK:
            assert (self.cluster.assignment(), self.cluster.paths()) == (ORIGIN, PATHS_BEFORE)
        for name, replicas in self.cluster.assignment().items():
            assert set(replicas) in (set(AFTER[name]), set(ORIGIN[name]))

    def teardown(self) -> None:
        """All brokers return. The execution completes from any state, and a rollback restores everything."""
        for broker_id in sorted(self.dead):
            self.cluster.restart(broker_id)
        resume, rollback = (GoalChanged(goal, "requested") for goal in (Goal.EXECUTE, Goal.ROLLBACK))
        assert run(self.cluster, self.path, self.start, [resume]).result is RunResult.COMPLETED
        assert (self.cluster.assignment(), self.cluster.configs) == (AFTER, CONFIGS)
        assert self.cluster.paths() == PATHS_AFTER
        assert run(self.cluster, self.path, goals=[rollback]).result is RunResult.ROLLED_BACK
        assert (self.cluster.assignment(), self.cluster.configs) == (ORIGIN, CONFIGS)
        assert self.cluster.paths() == PATHS_BEFORE
        self.folder.cleanup()


TestFaults = ExecutionMachine.TestCase
TestFaults.settings = settings(examples(1.5), stateful_step_count=8)
