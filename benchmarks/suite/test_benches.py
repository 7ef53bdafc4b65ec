"""Each bench does the work that it should, and takes the time that it takes."""

from __future__ import annotations

import gc
import time
from dataclasses import replace

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.suite.conftest import Answers, Worlds, counted_runs
from kframe.bench.run import Bench, result
from kframe.bench.work import Outcome, Trial
from kframe.bench.works import WORKS


@pytest.mark.timeout(1_800)
def test_bench(
    bench: Bench, answers: Answers, worlds: Worlds, benchmark: BenchmarkFixture, pytestconfig: pytest.Config
) -> None:
    """What pytest-benchmark times is the whole work; ``extra_info`` has the result of ``kframe bench``, whose phases
    leave the stand-in for storage out."""
    work = WORKS[bench.name]
    world = worlds.of(bench)
    trials: list[Trial] = []
    outcomes: list[Outcome] = []

    def prepare() -> tuple[tuple[Trial], dict[str, object]]:
        trials[:] = [work.trial(world, whole=not outcomes)]
        gc.collect()
        return (trials[0],), {}

    def finish(trial: Trial) -> None:
        outcomes.append(trial.finish())

    runs = bench.runs
    if benchmark.enabled:
        begun = time.monotonic()
        arguments, _ = prepare()
        arguments[0].run()
        finish(arguments[0])
        runs = counted_runs(runs, time.monotonic() - begun, pytestconfig.getoption("--bench-seconds"))
    benchmark.group = f"{bench.partitions:,} partitions, {bench.brokers:,} brokers"
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda trial: trial.run(), setup=prepare, teardown=finish, rounds=runs, warmup_rounds=0
    )
    if not outcomes:
        finish(trials[0])  # nothing is timed: the work was done once, and nobody has looked at it
    known = answers.hold(bench, outcomes[0].answer)
    if benchmark.enabled:
        benchmark.extra_info.update(result(replace(bench, runs=runs), outcomes), answer_known=known)
