"""Fits of sizes over time: flat, growing, or undecided."""

from __future__ import annotations

import numpy as np
import pytest

from verification.support.slopes import slope_of

#: Five-second samples of an hour.
SECONDS = np.arange(0, 3600, 5.0)
NOISE = np.random.default_rng(0).normal(0, 1, len(SECONDS))


@pytest.mark.parametrize(
    "values, limit, outcome",
    [
        (100 + NOISE, 1.0, "flat"),
        (100 + 0.5 * SECONDS / 3600 + NOISE, 1.0, "flat"),
        (100 + 5 * SECONDS / 3600 + NOISE, 1.0, "grows"),
        (100 - 5 * SECONDS / 3600 + NOISE, 1.0, "flat"),
        (100 + 50 * NOISE, 1.0, "undecided"),
        (np.where(SECONDS < 600, 50, 100) + NOISE, 1.0, "flat"),
    ],
    ids=["noise", "below the limit", "leak", "shrinks", "too noisy", "grows in the warm-up only"],
)
def test_outcome_of_a_fit(values: np.ndarray, limit: float, outcome: str) -> None:
    assert slope_of(SECONDS, values, 600, 60).outcome(limit) == outcome


def test_short_run_is_undecided() -> None:
    assert slope_of(SECONDS[:24], NOISE[:24], 10, 60).outcome(1.0) == "undecided"


def test_slope_of_exact_line_is_recovered() -> None:
    slope = slope_of(SECONDS, 100 + 7 * SECONDS / 3600, 600, 60)
    assert slope.per_hour == pytest.approx(7)
    assert slope.error == pytest.approx(0, abs=1e-9)
    assert slope.blocks == 50
