"""Concurrency follows the health of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import ExecutionLimits, RunResult, UnhealthyPartitions
from kframe.plans.execute.health import HealthWatch
from tests.plans.execute.scripted_cluster import ScriptedCluster, run, started

NONE: Final = UnhealthyPartitions((), ())
#: Observations: healthy, an under-replicated partition, and an offline one.
HEALTHY: Final = NONE
UNDER: Final = UnhealthyPartitions((), (("t", 0),))
OFFLINE: Final = UnhealthyPartitions((("t", 0),), ())


@pytest.mark.parametrize(
    ("concurrency", "observations", "limits"),
    [
        pytest.param(40, [HEALTHY] * 6, [24, 28, 32, 36, 40, 40], id="grows by a tenth up to the maximum"),
        pytest.param(40, [UNDER] * 6, [10, 5, 2, 1, 1, 1], id="halves down to one"),
        pytest.param(40, [HEALTHY, OFFLINE, HEALTHY], [24, 12, 16], id="an offline partition halves too"),
        pytest.param(3, [HEALTHY] * 3, [2, 3, 3], id="grows by one at least"),
        pytest.param(1, [UNDER, HEALTHY], [1, 1], id="one stays"),
    ],
)
def test_concurrency_limit_follows_cluster_health(
    concurrency: int, observations: Sequence[UnhealthyPartitions], limits: Sequence[int]
) -> None:
    watch = HealthWatch(ExecutionLimits(None, concurrency, 10))
    observed_limits = []
    for now in observations:
        watch.observe(NONE, now, ())
        observed_limits.append(watch.limit)
    assert observed_limits == limits


@pytest.mark.parametrize(
    ("before", "now", "tolerated", "pauses_starts"),
    [
        (NONE, UNDER, 0, True),
        (NONE, UNDER, 1, False),
        (NONE, OFFLINE, 10, True),
        (UNDER, UNDER, 0, False),
        (OFFLINE, UNDER, 0, False),
        (UNDER, OFFLINE, 0, True),
    ],
)
def test_new_unhealthy_partitions_postpone_starts(
    before: UnhealthyPartitions, now: UnhealthyPartitions, tolerated: int, pauses_starts: bool
) -> None:
    watch = HealthWatch(ExecutionLimits(None, 10, tolerated))
    watch.observe(before, now, ())
    assert watch.pauses_starts == pauses_starts


def test_concurrency_ramps_up_drops_and_recovers(tmp_path: Path) -> None:
    """Broker 3, which the plan does not move, is down in observations 6 and 7."""
    names: list[TopicPartition] = [("t", number) for number in range(200)]
    cluster = ScriptedCluster({**{name: [1] for name in names}, ("kept", 0): [1, 3]}, (1, 2, 3))
    started_by: list[int] = []

    def script(number: int) -> None:
        started_by.append(sum(2 in partition.replicas for partition in cluster.partitions.values()))
        if number == 5:
            cluster.fail(3)
        if number == 7:
            cluster.restart(3)

    start = started(cluster, {name: [2] for name in names}, throttle=None, concurrency=20, max_under_replicated=1)
    assert run(cluster, tmp_path / "journal", start, script=script).result is RunResult.COMPLETED
    begun = [after - before for before, after in pairwise(started_by)]
    assert begun[:10] == [12, 14, 16, 18, 20, 10, 5, 7, 9, 11]
    assert max(begun) == 20
