"""The expected duration of an execution: the busiest broker of each stage at the throttle."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kframe.plans.execute.entries import ExecutedPartition, LogMove
from kframe.plans.execute.estimate import expected_seconds


def copy(number: int, origin: tuple[int, ...], target: tuple[int, ...], size: int | None) -> ExecutedPartition:
    """A partition that its first replica leads."""
    return ExecutedPartition("t", number, origin, target, origin[0], size)


#: Broker 1 sends 100 to broker 3 and 50 to broker 4; broker 2 sends 80 to broker 3.
FIRST = (copy(0, (1, 2), (1, 3), 100), copy(1, (1, 2), (1, 4), 50), copy(2, (2, 1), (2, 3), 80))
#: Broker 1 sends 60 to two brokers.
SECOND = (copy(3, (1,), (1, 3, 4), 60),)

#: Brokers 1 and 2 copy logs between their directories; the log that broker 3 receives is created in its directory.
WITHIN = (
    replace(copy(4, (1, 2), (1, 2), 100), directories=(LogMove(1, "/a", "/b"), LogMove(2, "/a", "/b"))),
    replace(copy(5, (1,), (1, 3), 50), directories=(LogMove(1, "/a", "/b"), LogMove(3, None, "/b"))),
)


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
        pytest.param((WITHIN,), (), 10, False, 15.0, id="directories-of-a-broker-share-a-quota"),
        pytest.param((WITHIN,), (("t", 4),), 10, False, 10.0, id="reassigned-before-it-moves-to-its-directory"),
        pytest.param((WITHIN,), (("t", 4),), 10, True, 5.0, id="rollback-moves-directories-back"),
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
