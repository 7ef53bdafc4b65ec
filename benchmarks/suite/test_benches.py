"""Run each bench once, and check its answer."""

from __future__ import annotations

from typing import Any, Final

import pytest

from benchmarks.suite.answers import TEST_PARTITIONS, check_answer
from benchmarks.suite.timed import NOT_OVER_A_THOUSAND
from kframe.bench import BENCHES
from kframe.bench.run import Bench, outcomes_of

#: Brokers of the tests that ``make test`` runs.
_TEST_BROKERS: Final = 100
#: Many requests to every broker at any size: too slow for an ordinary test over a thousand brokers.
_MANY_REQUESTS: Final = ("alter-partition", "topic-creation-storm", "topic-deletion")


def _cases() -> list[Any]:
    return [
        pytest.param(name, brokers, marks=pytest.mark.extended if brokers != _TEST_BROKERS else ())
        for brokers in (10, _TEST_BROKERS, 1_000)
        for name in BENCHES
        if brokers < 1_000 or name not in NOT_OVER_A_THOUSAND + _MANY_REQUESTS
    ]


@pytest.mark.parametrize("name, brokers", _cases())
def test_answer_is_the_known_one(name: str, brokers: int) -> None:
    """Decisions, final columns and encoded bytes are those of ``answers.json``."""
    bench = Bench(name, TEST_PARTITIONS, brokers, runs=1)
    assert check_answer(bench, next(outcomes_of(bench)).answer)
