"""A crash at every call and append, then ``resume`` or ``rollback``: the expected assignment and original throttles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import ExecutionLimits, Goal, GoalChanged, RunResult
from kframe.plans.execute.journal import read_journal
from kframe.ports.administration import ConfigResource
from tests.plans.execute.scripted_cluster import PATHS, Crash, Crashes, ScriptedCluster, run, started

BEFORE: Final[dict[TopicPartition, Sequence[int]]] = {
    ("moved", 0): [1, 2, 3],
    ("moved", 1): [2, 3, 1],
    ("grown", 0): [3, 1],
    ("shrunk", 0): [1, 2, 3],
    ("reordered", 0): [1, 2],
    ("within", 0): [1, 2],
    ("other", 0): [1, 2],
}
STAGES: Final[list[dict[TopicPartition, Sequence[int]]]] = [
    {("moved", 0): [4, 2, 3], ("grown", 0): [4, 3, 1], ("reordered", 0): [2, 1]},
    {("moved", 1): [4, 5, 1], ("shrunk", 0): [3, 2], ("within", 0): [1, 2]},
]
#: Replicas that go to other log directories: of a partition that stays, and an added and a kept one of another.
DIRECTORIES: Final = {("within", 0): {1: "/d1", 2: "/d2"}, ("moved", 0): {4: "/d2", 2: "/d1"}}
AFTER: Final = {name: tuple(replicas) for name, replicas in {**BEFORE, **STAGES[0], **STAGES[1]}.items()}
ORIGIN: Final = {name: tuple(replicas) for name, replicas in BEFORE.items()}


def log_paths(
    assignment: Mapping[TopicPartition, Sequence[int]], *, moved: bool
) -> dict[tuple[int, TopicPartition], str]:
    """The log directories of replicas: the first one, or that of the plan."""
    return {
        (broker_id, name): DIRECTORIES.get(name, {}).get(broker_id, PATHS[0]) if moved else PATHS[0]
        for name, replicas in assignment.items()
        for broker_id in replicas
    }


PATHS_AFTER, PATHS_BEFORE = log_paths(AFTER, moved=True), log_paths(ORIGIN, moved=False)
#: Throttles that operators had set, and a configuration that is no throttle.
CONFIGS: Final = {
    ConfigResource("moved"): {"leader.replication.throttled.replicas": "7:1", "retention.ms": "5"},
    ConfigResource("grown"): {"follower.replication.throttled.replicas": "*"},
    ConfigResource(None, 2): {"leader.replication.throttled.rate": "77"},
}
RESUME, ROLLBACK = GoalChanged(Goal.EXECUTE, "resumed"), GoalChanged(Goal.ROLLBACK, "requested")
PAUSE, ABORT = GoalChanged(Goal.PAUSE, "requested"), GoalChanged(Goal.ABORT, "requested")


def new_cluster() -> ScriptedCluster:
    cluster = ScriptedCluster(BEFORE, range(1, 6))
    cluster.configs = {resource: dict(values) for resource, values in CONFIGS.items()}
    return cluster


def count_calls(tmp_path: Path) -> int:
    """Calls and appends of an execution without crashes."""
    crashes, cluster = Crashes(), new_cluster()
    assert (
        run(cluster, tmp_path / "whole", started(cluster, *STAGES, directories=DIRECTORIES), crashes=crashes).result
        is RunResult.COMPLETED
    )
    assert (cluster.assignment(), cluster.configs, cluster.unthrottled) == (AFTER, CONFIGS, set())
    assert cluster.paths() == PATHS_AFTER
    return crashes.count


def crash(path: Path, count: int, after: bool) -> ScriptedCluster:
    """An execution that has crashed at a call or append."""
    cluster = new_cluster()
    with pytest.raises(Crash):
        run(cluster, path, started(cluster, *STAGES, directories=DIRECTORIES), crashes=Crashes(count, after))
    return cluster


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("goal", "result", "assignment"),
    [
        (RESUME, RunResult.COMPLETED, (AFTER, PATHS_AFTER)),
        (ROLLBACK, RunResult.ROLLED_BACK, (ORIGIN, PATHS_BEFORE)),
    ],
    ids=["resume", "rollback"],
)
def test_crash_at_any_call_leaves_assignments_leaders_and_throttles(
    tmp_path: Path, goal: GoalChanged, result: RunResult, assignment: tuple[object, object], after: bool
) -> None:
    leaders = {name: partition.leader for name, partition in new_cluster().partitions.items()}
    for count in range(1, count_calls(tmp_path) + 1):
        path = tmp_path / f"journal-{count}"
        cluster = crash(path, count, after)
        assert run(cluster, path, goals=[goal]).result is result
        assert (count, cluster.assignment(), cluster.paths()) == (count, *assignment)
        assert cluster.configs == CONFIGS
        if goal is RESUME:
            assert cluster.unthrottled == set()
        else:
            assert {name: partition.leader for name, partition in cluster.partitions.items()} == leaders


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("goal", [PAUSE, ABORT], ids=["pause", "abort"])
def test_pause_or_abort_after_crash_leaves_no_throttle_or_reassignment(
    tmp_path: Path, goal: GoalChanged, after: bool
) -> None:
    for count in range(1, count_calls(tmp_path) + 1):
        path = tmp_path / f"journal-{count}"
        cluster = crash(path, count, after)
        ended = run(cluster, path, goals=[goal])
        assert ended.result is (RunResult.PAUSED if goal is PAUSE else RunResult.ABORTED)
        assert (count, cluster.configs, cluster.reassignments()) == (count, CONFIGS, {})
        for name, replicas in cluster.assignment().items():
            assert replicas in (AFTER[name], ORIGIN[name])
        assert all(path in PATHS for path in cluster.paths().values()), "no log is being moved"
        assert run(cluster, path, goals=[RESUME]).result is RunResult.COMPLETED
        assert (cluster.assignment(), cluster.configs) == (AFTER, CONFIGS)
        assert cluster.paths() == PATHS_AFTER


def test_crash_during_rollback_after_crash_is_recoverable(tmp_path: Path) -> None:
    calls = count_calls(tmp_path)
    for first in range(3, calls, 5):
        crashes, cluster = Crashes(), crash(tmp_path / f"whole-{first}", first, after=True)
        run(cluster, tmp_path / f"whole-{first}", goals=[ROLLBACK], crashes=crashes)
        for second in range(2, crashes.count + 1):
            path = tmp_path / f"journal-{first}-{second}"
            cluster = crash(path, first, after=True)
            with pytest.raises(Crash):
                run(cluster, path, goals=[ROLLBACK], crashes=Crashes(second, after=bool(second % 2)))
            assert run(cluster, path, goals=[RESUME if second % 3 == 0 else ROLLBACK]).result is (
                RunResult.COMPLETED if second % 3 == 0 else RunResult.ROLLED_BACK
            )
            assert (cluster.assignment(), cluster.configs) == (AFTER if second % 3 == 0 else ORIGIN, CONFIGS)


def test_intent_is_journaled_before_each_request(tmp_path: Path) -> None:
    cluster = new_cluster()
    run(cluster, tmp_path / "journal", started(cluster, *STAGES, directories=DIRECTORIES))
    kinds = [type(entry).__name__ for entry in read_journal(tmp_path / "journal")]
    assert kinds[0] == "ExecutionStarted"
    assert kinds[-1] == "RunEnded"
    assert [kind for kind in kinds if kind.startswith("Action")] == (
        ["ActionIntended", "ActionDone"] * kinds.count("ActionDone")
    )
    assert kinds.index("OriginalsSaved") < kinds.index("ActionIntended")


def test_broker_failure_pauses_and_restart_restores_its_throttle(tmp_path: Path) -> None:
    """The dead broker has not caught up: reassignments to it are cancelled, and replicas keep their order."""
    cluster = new_cluster()
    cluster.catches_up = False

    def fail_broker(observation: int) -> None:
        if observation == 4:
            cluster.fail(4)

    ended = run(cluster, tmp_path / "journal", started(cluster, *STAGES, directories=DIRECTORIES), script=fail_broker)
    assert ended.result is RunResult.PAUSED
    assert "brokers that the plan needs are down: 4" in ended.reason
    assert "throttles of broker 4 are not restored yet" in ended.reason
    assert cluster.reassignments() == {}
    moved = {name for name, replicas in cluster.assignment().items() if replicas != ORIGIN[name]}
    assert moved <= {("reordered", 0)}
    cluster.restart(4)
    cluster.catches_up = True
    assert run(cluster, tmp_path / "journal", goals=[RESUME]).result is RunResult.COMPLETED
    assert (cluster.assignment(), cluster.configs) == (AFTER, CONFIGS)


def test_reassignment_blocked_by_dead_retained_replica_is_cancelled(tmp_path: Path) -> None:
    cluster = ScriptedCluster({("kept", 0): [4, 1]}, range(1, 5))
    cluster.waits_for_all, cluster.catches_up = True, False

    def fail_broker(observation: int) -> Goal | None:
        if observation == 4:
            cluster.fail(4)
            cluster.catches_up = True
        return Goal.PAUSE if observation == 5 else None

    ended = run(cluster, tmp_path / "journal", started(cluster, {("kept", 0): [2, 4]}), script=fail_broker)
    assert (ended.result, cluster.reassignments()) == (RunResult.PAUSED, {})
    assert set(cluster.assignment()["kept", 0]) == {1, 4}


@pytest.mark.parametrize("goal", [Goal.EXECUTE, Goal.ROLLBACK])
@pytest.mark.parametrize("rate, rates", [(5_000_000, {"5000000", None}), (None, {None})])
def test_new_limits_replace_journaled_limits(
    tmp_path: Path, goal: Goal, rate: int | None, rates: set[str | None]
) -> None:
    cluster, path = new_cluster(), tmp_path / "journal"
    run(
        cluster,
        path,
        started(cluster, *STAGES, directories=DIRECTORIES),
        script=lambda count: Goal.ABORT if count == 3 else None,
    )
    assert set(cluster.rates) == {"1000", None}
    cluster.rates.clear()
    ended = run(cluster, path, goals=[GoalChanged(goal, "requested", limits=ExecutionLimits(rate, 4, 0))])
    assert ended.result is (RunResult.COMPLETED if goal is Goal.EXECUTE else RunResult.ROLLED_BACK)
    assert (set(cluster.rates) or {None}, cluster.configs) == (rates, CONFIGS)
