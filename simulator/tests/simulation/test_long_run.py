"""Hours of a simulated cluster: invariants hold, and the size of a controller is measured."""

from __future__ import annotations

import numpy as np
import pytest

from verification.simulator import long_run
from verification.simulator.long_run import ControllerSample, LongRun, play_long, size_of
from verification.support.slopes import Slope


@pytest.mark.extended
def test_hours_keep_every_invariant() -> None:
    """A controller without faults keeps its role longer."""
    runs = [play_long(2_000_001, 0.05, controller_faults=faults) for faults in (False, True)]
    assert [run.violations for run in runs] == [[], []]
    assert [[round(sample.seconds) for sample in run.samples] for run in runs] == [[3_600], [3_600]]
    assert all(sample.topics and sample.columns and sample.other for run in runs for sample in run.samples)
    assert runs[0].failovers < runs[1].failovers


def test_size_counts_shared_arrays_once() -> None:
    array = np.zeros(1_000, np.int64)
    part = [array[:10], array]
    assert 8_000 < size_of(part) < 9_000
    assert size_of({"part": part}, without=[part]) < 1_000
    assert size_of(long_run.__name__) < 100


@pytest.mark.parametrize("growth, outcome", [(0, "flat"), (100, "grows")])
def test_long_run_detects_growth(growth: int, outcome: str) -> None:
    noise = np.random.default_rng(0).integers(-50, 50, 168)
    samples = [
        ControllerSample(3_600.0 * hour, 1_000, int(20_000 + growth * hour + noise[hour]), 10, 30)
        for hour in range(168)
    ]
    run = LongRun(1, False, 7.0, 1, 1, 1, [], samples)
    assert isinstance(run.slope, Slope)
    assert run.outcome == outcome
    assert run.bytes_per_topic == 100
