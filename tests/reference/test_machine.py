"""Random operations, played to kframe and to the reference model: nothing may differ, and no law may break.

``HYPOTHESIS_PROFILE=explore`` plays many more, other ones each time. A difference is shown with its history, as a
scenario.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.reference import operations
from tests.reference.pair import Pair

#: Found by this machine or while it was written; each history is as short as it can be.
HISTORIES = sorted((Path(__file__).parent / "defects").glob("*.yaml"))
EXAMPLES = 100
STEPS = 30

#: Hypothesis draws seeds only: drawn by itself, most operations would be the simplest one.
_SEED = st.integers(0, 2**32 - 1)


class TwoWorlds(RuleBasedStateMachine):
    """A cluster as drawn, then one operation after another."""

    @initialize(seed=_SEED)
    def begin(self, seed: int) -> None:
        self.pair = Pair(operations.scenario(Random(seed)))
        self._take({"elect": {}})

    @rule(seed=_SEED)
    def play(self, seed: int) -> None:
        chance = Random(f"{seed}, step {len(self.pair.scenario['steps'])}")
        self._take(operations.step(chance, self.pair.model))

    def _take(self, step: dict[str, Any]) -> None:
        differences = self.pair.take(step)
        assert not differences, "\n".join([*differences, "after", self.pair.history()])


TestTwoWorlds = pytest.mark.usefixtures("quiet")(TwoWorlds.TestCase)
TestTwoWorlds.settings = settings(
    max_examples=EXAMPLES if settings().derandomize else settings().max_examples,
    stateful_step_count=STEPS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="class")
def quiet() -> Iterator[None]:
    """Nobody reads the log of random histories."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("path", HISTORIES, ids=lambda path: path.stem)
def test_a_history_that_once_went_wrong(path: Path) -> None:
    scenario = yaml.safe_load(path.read_text())
    pair = Pair(scenario)
    for step in scenario["steps"]:
        assert pair.take(step) == []


def test_a_difference_is_seen_and_told_with_its_history() -> None:
    pair = Pair({"schema": "kframe.scenario/v1", "name": "seen", "brokers": [{"id": 1}, {"id": 2}], "topics": [
        {"name": "a", "partitions": [{"partition": 0, "replicas": [1, 2], "leader": 1, "isr": [1, 2]}]}]})  # fmt: skip
    assert pair.take({"elect": {}}) == []
    pair.model.storage.brokers[3] = pair.model.storage.next()
    assert any("live_brokers" in text for text in pair.take({"broker_failure": [1]}))
    assert yaml.safe_load(pair.history())["steps"] == [{"elect": {}}, {"broker_failure": [1]}]
