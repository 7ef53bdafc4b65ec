"""Run each bench, check its answer, and time it where timing is enabled."""

from __future__ import annotations

import gc
import time
from dataclasses import replace

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.suite.conftest import Answers, Fixtures, counted_runs
from kframe.bench.run import Bench, result
from kframe.bench.workload import Measurement, Run
from kframe.bench.workloads import WORKLOADS
from kframe.runtime.memory import preallocate


@pytest.mark.timeout(1_800)
def test_bench(
    bench: Bench, answers: Answers, fixtures: Fixtures, benchmark: BenchmarkFixture, pytestconfig: pytest.Config
) -> None:
    """pytest-benchmark times the whole work. ``extra_info`` has the result of ``kframe bench``, by phase."""
    workload = WORKLOADS[bench.name]
    fixture = fixtures.of(bench)
    current: list[Run] = []
    outcomes: list[Measurement] = []

    def prepare() -> tuple[tuple[Run], dict[str, object]]:
        current[:] = [workload.new_run(fixture, with_answer=not outcomes)]
        gc.collect()
        return (current[0],), {}

    def finish(run: Run) -> None:
        outcomes.append(run.finish())

    runs = bench.runs
    if benchmark.enabled:
        preallocate()  # as in the process of a controller
        start = time.monotonic()
        (run,), _ = prepare()
        run.run()
        finish(run)
        runs = counted_runs(runs, time.monotonic() - start, pytestconfig.getoption("--bench-seconds"))
    benchmark.group = f"{bench.partitions:,} partitions, {bench.brokers:,} brokers"
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda run: run.run(), setup=prepare, teardown=finish, rounds=runs, warmup_rounds=0
    )
    if not outcomes:
        finish(current[0])  # with timing disabled pytest-benchmark calls no teardown
    known = answers.check(bench, outcomes[0].answer)
    if benchmark.enabled:
        benchmark.extra_info.update(result(replace(bench, runs=runs), outcomes), answer_known=known)
