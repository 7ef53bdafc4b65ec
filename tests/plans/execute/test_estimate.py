"""The expected duration of an execution: the busiest broker of each stage at the throttle."""

from __future__ import annotations

import pytest

from kframe.plans.execute.entries import ExecutedPartition
from kframe.plans.execute.estimate import expected_seconds


def copy(number: int, origin: tuple[int, ...], target: tuple[int, ...], size: int | None) -> ExecutedPartition:
    """A partition that its first replica leads."""
    return ExecutedPartition("t", number, origin, target, origin[0], size)


#: Broker 1 sends 100 to broker 3 and 50 to broker 4; broker 2 sends 80 to broker 3.
FIRST = (copy(0, (1, 2), (1, 3), 100), copy(1, (1, 2), (1, 4), 50), copy(2, (2, 1), (2, 3), 80))
#: Broker 1 sends 60 to two brokers.
SECOND = (copy(3, (1,), (1, 3, 4), 60),)


@pytest.mark.parametrize(
    ("stages", "settled", "throttle", "rolls_back", "seconds"),
    [
        pytest.param((FIRST,), (), 10, False, 18.0, id="busiest-receiver"),
        pytest.param((SECOND,), (), 10, False, 12.0, id="busiest-sender"),
        pytest.param((FIRST, SECOND), (), 10, False, 30.0, id="stages-follow-each-other"),
        pytest.param((FIRST,), (("t", 0),), 10, False, 8.0, id="settled-partitions-are-done"),
        pytest.param((SECOND,), (), 10, True, 0.0, id="rollback-copies-nothing"),
        pytest.param((FIRST,), (), None, False, None, id="no-throttle"),
        pytest.param(((copy(0, (1,), (2,), None),),), (), 10, False, None, id="unknown-size"),
        pytest.param(((copy(0, (1, 2), (2, 1), None),),), (), 10, False, 0.0, id="order-only"),
    ],
)
def test_expected_seconds(
    stages: tuple[tuple[ExecutedPartition, ...], ...],
    settled: tuple[tuple[str, int], ...],
    throttle: int | None,
    rolls_back: bool,
    seconds: float | None,
) -> None:
    assert expected_seconds(stages, settled, throttle, rolls_back=rolls_back) == seconds
