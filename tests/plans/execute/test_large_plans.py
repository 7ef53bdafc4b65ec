"""The work of an execution grows as the partitions of its plan."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import RunResult
from tests.plans.execute.scripted_cluster import ScriptedCluster, run, started


def execute(path: Path, partitions: int, concurrency: int) -> int:
    """Move partitions from broker 1 to broker 2, in two stages. Returns the number of observations."""
    names: list[TopicPartition] = [(f"t{number // 100}", number % 100) for number in range(partitions)]
    cluster, observations = ScriptedCluster({name: [1] for name in names}, (1, 2)), 0

    def count(number: int) -> None:
        nonlocal observations
        observations = number

    halves: list[Sequence[TopicPartition]] = [names[: partitions // 2], names[partitions // 2 :]]
    start = started(cluster, *({name: [2] for name in half} for half in halves), concurrency=concurrency)
    assert run(cluster, path, start, script=count).result is RunResult.COMPLETED
    assert set(cluster.assignment().values()) == {(2,)}
    return observations


def test_calls_scale_linearly_with_partitions(tmp_path: Path) -> None:
    """With as many observations, twice the partitions take at most about twice the calls."""
    counts, observations = [], []
    for partitions in (400, 800):
        calls = 0

        def profile(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        former = sys.getprofile()
        sys.setprofile(profile)
        try:
            observations.append(execute(tmp_path / str(partitions), partitions, concurrency=partitions // 4))
        finally:
            sys.setprofile(former)
        counts.append(calls)
    assert observations[0] == observations[1]
    assert counts[1] <= 2.1 * counts[0]
