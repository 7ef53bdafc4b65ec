"""Moves between log directories: the next step by what brokers list, refusals, and moves that brokers would refuse."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from kframe.plans.execute.entries import (
    ActionDone,
    ActionIntended,
    ChangeDirectories,
    ConfigKey,
    DirectoryRequest,
    Entry,
    ExecutedPartition,
    ExecutionLimits,
    ExecutionStarted,
    Goal,
    GoalChanged,
    LogMove,
    Refusal,
    ResourceKind,
    RunEnded,
    RunResult,
    UnhealthyPartitions,
)
from kframe.plans.execute.health import PROBLEM_ROUNDS
from kframe.plans.execute.journal import read_journal
from kframe.plans.execute.located import LAG_ROUNDS
from kframe.plans.execute.observation import LogPaths, Observation
from kframe.plans.execute.prepare import directory_problems
from kframe.plans.execute.state import ExecutionState
from kframe.plans.execute.step_types import SaveOriginals, Step, Wait
from kframe.plans.execute.steps import Planner
from kframe.ports.administration import LogDirectory
from kframe.snapshot.metadata import DescribedPartition
from tests.plans.execute.scripted_cluster import ScriptedCluster, run, started

NAME: Final = ("t", 0)


def started_move(*moves: LogMove, throttle: int | None = None) -> ExecutionStarted:
    """The first entry of an execution that moves logs of t-0, which stays on brokers 1 and 2."""
    partition = ExecutedPartition(*NAME, (1, 2), (1, 2), 1, None, moves)
    limits = ExecutionLimits(throttle, 10, 0)
    return ExecutionStarted(
        2, "plan", "digest", "id", "kafka://a:1", limits, ((partition,),), UnhealthyPartitions((), ())
    )


def change(path: str) -> ChangeDirectories:
    return ChangeDirectories((DirectoryRequest(*NAME, ((1, path),)),))


def answered(*errors: str) -> tuple[Entry, ...]:
    """The request for /b, and the errors in its response."""
    refusals = tuple(Refusal(*NAME, error, "1:/b") for error in errors)
    return ActionIntended(change("/b")), ActionDone(change("/b"), refusals)


STARTED: Final = answered()
ROLLBACK: Final = (*STARTED, GoalChanged(Goal.ROLLBACK, "requested"))
PAUSE, ABORT = GoalChanged(Goal.PAUSE, "requested"), GoalChanged(Goal.ABORT, "requested")
NOT_MOVED: Final = RunEnded(RunResult.INCOMPLETE, "not moved: 1 partition")
COMPLETED, ROLLED_BACK = RunEnded(RunResult.COMPLETED, ""), RunEnded(RunResult.ROLLED_BACK, "")
DOWN: Final = "brokers that the plan needs are down: 1"
CONTINUES: Final = "requested; moves in progress between log directories of brokers that are down continue: 1"


@pytest.mark.parametrize(
    ("entries", "log", "observations", "step"),
    [
        pytest.param((), ("/a", None), 1, change("/b"), id="start"),
        pytest.param((), ("/a", "/b"), 1, Wait(), id="in flight"),
        pytest.param((), ("/b", None), 1, COMPLETED, id="arrived"),
        pytest.param((), ("/b", "/a"), 1, change("/b"), id="cancel a move to the start"),
        pytest.param((), ("/a", "/c"), LAG_ROUNDS, Wait(), id="another client may cancel its move"),
        pytest.param((), ("/a", "/c"), LAG_ROUNDS + 1, NOT_MOVED, id="moved by another client"),
        pytest.param((), ("/c", None), LAG_ROUNDS + 1, NOT_MOVED, id="moved elsewhere"),
        pytest.param((), (None, None), LAG_ROUNDS + 1, NOT_MOVED, id="no log"),
        pytest.param((), "refuses", LAG_ROUNDS + 1, NOT_MOVED, id="live broker lists nothing"),
        pytest.param((), "down", 1, Wait(), id="broker is down"),
        pytest.param((), "down", PROBLEM_ROUNDS, GoalChanged(Goal.PAUSE, DOWN), id="broker stays down"),
        pytest.param(answered("LOG_DIR_NOT_FOUND"), ("/a", None), 1, NOT_MOVED, id="refused"),
        pytest.param(answered("UNKNOWN_SERVER_ERROR"), ("/a", None), 1, NOT_MOVED, id="failed in the broker"),
        pytest.param(answered("BROKER_NOT_AVAILABLE"), ("/a", None), 1, change("/b"), id="not reached"),
        pytest.param((*STARTED, PAUSE), ("/a", "/b"), 1, Wait(), id="pause: wait for the move"),
        pytest.param(
            (*STARTED, PAUSE), ("/a", None), 1, RunEnded(RunResult.PAUSED, "requested"), id="pause: start none"
        ),
        pytest.param((*STARTED, PAUSE), "down", 1, RunEnded(RunResult.PAUSED, CONTINUES), id="pause: broker is down"),
        pytest.param((*STARTED, ABORT), ("/a", "/b"), 1, change("/a"), id="abort: cancel"),
        pytest.param((*STARTED, ABORT), ("/b", None), 1, RunEnded(RunResult.ABORTED, "requested"), id="abort: arrived"),
        pytest.param(ROLLBACK, ("/b", None), 1, change("/a"), id="rollback: move back"),
        pytest.param(ROLLBACK, ("/a", "/b"), 1, change("/a"), id="rollback: cancel"),
        pytest.param(ROLLBACK, ("/b", "/a"), 1, Wait(), id="rollback: in flight"),
        pytest.param(ROLLBACK, ("/a", None), 1, ROLLED_BACK, id="rollback: done"),
    ],
)
def test_next_step_by_log_directories(
    entries: Sequence[Entry], log: tuple[str | None, str | None] | str, observations: int, step: Step
) -> None:
    planner = Planner(ExecutionState([started_move(LogMove(1, "/a", "/b")), *entries]))
    for _ in range(observations):
        planner.observe(observed(log))
    assert planner.next_step() == step


def observed(log: tuple[str | None, str | None] | str) -> Observation:
    """t-0 with these directories of its log and future log on broker 1, which may be down, or refuse to list them.

    The replicas are in another order than in the plan, which does not concern their log directories.
    """
    live = frozenset({2} if log == "down" else {1, 2})
    described = DescribedPartition(*NAME, 2, 1, (2, 1), (2, 1))
    logs = {} if isinstance(log, str) else {1: {NAME: LogPaths(*log, 0)} if any(log) else {}}
    return Observation(live, {NAME: described}, {}, logs)


def test_partition_that_is_not_moved_names_broker_and_directories() -> None:
    planner = Planner(ExecutionState([started_move(LogMove(1, "/a", "/b"))]))
    for _ in range(LAG_ROUNDS + 1):
        planner.observe(observed(("/c", None)))
    assert planner.unmoved() == {NAME: "log directory of broker 1: /c, expected /b"}


def test_throttle_of_moves_within_a_broker_is_saved_before_it_is_set() -> None:
    planner = Planner(ExecutionState([started_move(LogMove(1, "/a", "/b"), throttle=1000)]))
    planner.observe(observed(("/a", None)))
    key = ConfigKey(ResourceKind.BROKER, "1", "replica.alter.log.dirs.io.max.bytes.per.second")
    assert planner.next_step() == SaveOriginals((key,))


def test_refusals_of_a_partition_name_brokers_and_directories(tmp_path: Path) -> None:
    """Broker 1 has no such directory, one of broker 2 has failed, and broker 3 moves its replica."""
    cluster = ScriptedCluster({NAME: [1, 2, 3], ("u", 0): [1]}, (1, 2, 3))
    cluster.offline = {(2, "/d2")}
    directories = {NAME: {1: "/d9", 2: "/d1", 3: "/d1"}, ("u", 0): {1: "/d1"}}
    stage = {NAME: [1, 2, 3], ("u", 0): [1]}
    ended = run(cluster, tmp_path / "journal", started(cluster, stage, directories=directories))
    assert ended == NOT_MOVED
    state = ExecutionState(read_journal(tmp_path / "journal"))
    assert state.refused == {NAME: "LOG_DIR_NOT_FOUND (1:/d9), KAFKA_STORAGE_ERROR (2:/d1)"}
    assert state.settled == {("u", 0)}
    moved = {(3, NAME): "/d1", (1, ("u", 0)): "/d1"}
    assert cluster.paths() == {(1, NAME): "/d0", (2, NAME): "/d0", **moved}


def test_aborted_move_returns_to_its_directory_and_resumes(tmp_path: Path) -> None:
    cluster = ScriptedCluster({NAME: [1, 2]}, (1, 2))
    cluster.catches_up = False

    def abort(observation: int) -> Goal | None:
        return Goal.ABORT if observation == 5 else None

    start = started(cluster, {NAME: [1, 2]}, directories={NAME: {1: "/d1", 2: "/d2"}})
    assert run(cluster, tmp_path / "journal", start, script=abort).result is RunResult.ABORTED
    assert (set(cluster.paths().values()), cluster.configs) == ({"/d0"}, {})
    cluster.catches_up = True
    goals = [GoalChanged(Goal.EXECUTE, "resumed")]
    assert run(cluster, tmp_path / "journal", goals=goals).result is RunResult.COMPLETED
    assert cluster.paths() == {(1, NAME): "/d1", (2, NAME): "/d2"}


@pytest.mark.parametrize("goal", [Goal.ABORT, Goal.ROLLBACK])
def test_move_from_a_cordoned_directory_cannot_be_cancelled_and_ends(tmp_path: Path, goal: Goal) -> None:
    """A broker takes no log back to a cordoned directory: an abort waits, and a rollback names what stays."""
    cluster = ScriptedCluster({NAME: [1]}, (1,))
    cluster.catches_up = False

    def cordon(observation: int) -> Goal | None:
        if observation == 4:
            cluster.cordoned = {(1, "/d0")}
        cluster.catches_up = observation > 8
        return Goal.ABORT if observation == 5 else None

    start = started(cluster, {NAME: [1]}, directories={NAME: {1: "/d1"}})
    ended = run(cluster, tmp_path / "journal", start, script=cordon)
    assert (ended.result, cluster.paths(), cluster.configs) == (RunResult.ABORTED, {(1, NAME): "/d1"}, {})
    requests = [entry for entry in read_journal(tmp_path / "journal") if isinstance(entry, ActionIntended)]
    assert [entry.action for entry in requests if isinstance(entry.action, ChangeDirectories)] == [
        change("/d1"),
        change("/d0"),
    ]
    if goal is Goal.ROLLBACK:
        assert run(cluster, tmp_path / "journal", goals=[GoalChanged(goal, "requested")]) == NOT_MOVED
        state = ExecutionState(read_journal(tmp_path / "journal"))
        assert state.refused == {NAME: "INVALID_REPLICA_ASSIGNMENT (1:/d0)"}


#: (moves of t-0 on brokers 1 and 2, the problem that is found before anything is sent).
PROBLEMS: Final = [
    (LogMove(1, "/a", "/b"), None),
    (LogMove(1, "/a", "/z"), "found log directory /z of broker 1, expected one of /a, /b"),
    (LogMove(2, "/a", "/c"), "found log directory /c of broker 2, expected one of /a, /b"),
    (LogMove(2, "/a", "/b"), "log directory /c of broker 2 is offline, and a broker with one starts no move"),
    (LogMove(2, None, "/b"), "found no log on broker 2, expected one in /a, /b"),
    (LogMove(3, None, "/a"), "broker 3 lists no log directories, which needs DESCRIBE on the cluster"),
    (LogMove(4, None, "/a"), None),
    (LogMove(4, None, "/e"), "found cordoned log directory /e of broker 4, expected one of /a, /b"),
]


@pytest.mark.parametrize(("move", "problem"), PROBLEMS)
def test_moves_that_a_broker_would_refuse(move: LogMove, problem: str | None) -> None:
    both = [LogDirectory("/a", []), LogDirectory("/b", [])]
    listed = {1: both, 2: [*both, LogDirectory("/c", [], "KAFKA_STORAGE_ERROR")]}
    listed[4] = [*both, LogDirectory("/e", [], is_cordoned=True)]
    expected = [] if problem is None else [f"t-0: {problem}"]
    assert list(directory_problems(started_move(move), listed)) == expected
