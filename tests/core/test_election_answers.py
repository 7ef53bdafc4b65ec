"""Responses to ElectLeaders requests (``elections.md`` section 4)."""

from __future__ import annotations

from typing import Any

import pytest

from kframe.errors import ErrorCode
from kframe.model.events import (
    ElectionRequested,
    ElectionType,
    TopicPartition,
)
from kframe.ports.store_requests import WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, active


def error_codes(
    driver: Driver, election_type: ElectionType, partitions: tuple[TopicPartition, ...] | None
) -> dict[str, Any]:
    """Return the error codes by partition, as the client receives them."""
    driver.handle(ElectionRequested(election_type, partitions, token=1))
    response = driver.replies[1]
    codes = {driver.cluster.name(row): ErrorCode(code) for row, code in zip(response.rows, response.codes, strict=True)}
    return codes | {f"{topic}-{partition}": code for (topic, partition), code in response.unknown}


P, U = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.mark.parametrize(
    "case, spec, election_type, code",
    [
        ("elected", PartitionSpec((1, 2), 2, (1, 2)), P, ErrorCode.NONE),
        ("elected uncleanly", PartitionSpec((1, 9), 9, (9,)), U, ErrorCode.NONE),
        ("preferred out of sync", PartitionSpec((1, 2), 2, (2,)), P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("preferred dead", PartitionSpec((9, 2), 2, (2, 9)), P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("no live replica", PartitionSpec((8, 9), 9, (9,)), U, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        ("preferred leads", healthy(1, 2), P, ErrorCode.ELECTION_NOT_NEEDED),
        ("dead preferred leads", healthy(9, 2), P, ErrorCode.ELECTION_NOT_NEEDED),
        ("live leader", PartitionSpec((1, 2), 2, (1, 2)), U, ErrorCode.ELECTION_NOT_NEEDED),
        ("no state", PartitionSpec((1, 2)), P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        ("no state, unclean", PartitionSpec((1, 2)), U, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_election_returns_code_for_partition(
    case: str, spec: PartitionSpec, election_type: ElectionType, code: ErrorCode
) -> None:
    """controller 11.1: mapping of elections.md section 4.
    elections 4: no leader found.
    elections 4: already valid.
    elections 4: partition without leadership.
    """
    driver = active(spec)
    before = driver.stored("t-0")
    assert error_codes(driver, election_type, (("t", 0),)) == {"t-0": code}
    assert (driver.stored("t-0") != before) is (code is ErrorCode.NONE)


@pytest.mark.parametrize("election_type", ElectionType, ids=lambda election_type: election_type.name)
def test_deleting_topic_returns_invalid_topic(election_type: ElectionType) -> None:
    """elections 4: topic being deleted."""
    driver = active(PartitionSpec((1, 2), 2, (1, 2)), PartitionSpec((1, 2)))
    driver.cluster.topics.deleting[0] = 1
    expected = dict.fromkeys(("t-0", "t-1"), ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert error_codes(driver, election_type, (("t", 0), ("t", 1))) == expected
    assert driver.effects[:-1] == []


def test_unknown_partition_returns_unknown_topic_or_partition() -> None:
    """elections 4: unknown partition."""
    codes = error_codes(active(healthy(1, 2)), P, (("t", 0), ("t", 1), ("nobody", 0), ("t", 0)))
    assert codes == {
        "t-0": ErrorCode.ELECTION_NOT_NEEDED,
        "t-1": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "nobody-0": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def overtake(driver: Driver) -> None:
    driver.ensemble.write_state("t", 0, controller_epoch=9)


@pytest.mark.parametrize(
    "election_type, code",
    [
        (P, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
        (U, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
    ],
)
def test_state_of_later_controller_returns_no_leader(election_type: ElectionType, code: ErrorCode) -> None:
    """elections 4: foreign controller epoch."""
    driver = active(PartitionSpec((1, 2), 9, (1, 2, 9)))
    driver.before(WriteStates, lambda: overtake(driver))
    assert error_codes(driver, election_type, (("t", 0),)) == {"t-0": code}


def test_election_of_all_partitions_omits_election_not_needed() -> None:
    """elections 4: election of all partitions."""
    driver = active(healthy(1, 2), PartitionSpec((1, 2), 2, (2, 1)), PartitionSpec((9, 2), 2, (2,)))
    assert error_codes(driver, P, None) == {"t-1": ErrorCode.NONE, "t-2": ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
