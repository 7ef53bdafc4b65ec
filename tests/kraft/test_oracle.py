"""kframe decides recorded and random cases as Kafka 4.4's controller classes do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kraft.oracle_cases import PARTITIONS_IN_SPITE_OF_AN_ERROR, REPEATED_CHANGES, compare_case, decide_case
from tests.kraft.oracle_run import compare

CASES = Path(__file__).with_name("oracle") / "cases"


def recorded(name: str) -> list[Any]:
    lines = zip(*((CASES / f"{name}{kind}.jsonl").read_text().splitlines() for kind in ("", ".answers")), strict=True)
    pairs = [(json.loads(case), json.loads(expected)) for case, expected in lines]
    return [pytest.param(case, expected, id=case["id"]) for case, expected in pairs]


RECORDED = [*recorded("rules"), *recorded("generated"), *recorded("rare"), *recorded("factors"), *recorded("requests")]


@pytest.mark.parametrize("case, expected", RECORDED)
def test_recorded_case_is_decided_as_in_kafka(case: dict[str, Any], expected: dict[str, Any]) -> None:
    assert compare_case(case, expected).differences == []


def test_only_known_kafka_defects_are_excluded() -> None:
    excluded = {}
    for parameter in RECORDED:
        for reason in compare_case(*parameter.values).excluded.values():
            excluded[parameter.id] = reason
    assert excluded == {
        "cancel-last-known-leader-not-a-replica": "fault",
        "cleared-elr-counts-twice": REPEATED_CHANGES,
        "cleared-elr-leaves-index": "fault",
        "create-partitions-error-with-records": PARTITIONS_IN_SPITE_OF_AN_ERROR,
        "delete-with-empty-isr-leaves-index": "fault",
        "fence-completes-reassignment-without-directories": "fault",
    }


def test_reassignment_below_directory_level_keeps_directories() -> None:
    """Kafka 4.4 writes these records, and its replay of the first one fails."""
    parameters = {parameter.id: parameter.values for parameter in recorded("rules")}
    case, expected = parameters["fence-completes-reassignment-without-directories"]
    decided = decide_case(case)
    assert decided["results"][0]["records"] == expected["results"][0]["records"]
    (before,), (after,) = case["topics"][0]["partitions"], decided["image"]["topics"][0]["partitions"]
    assert (after["replicas"], after["directories"]) == ([0, 1, 2], before["directories"][:3])


@pytest.mark.real
@pytest.mark.parametrize(
    "independent, events",
    [
        (0, 500),
        (16, 4_000),
        *(pytest.param(*case, marks=pytest.mark.extended) for case in ((0, 4_000), (16, 16_000))),
    ],
)
@pytest.mark.smoke
def test_random_events_are_decided_as_in_kafka(independent: int, events: int) -> None:
    report = compare(events, seed=2026, independent=independent)
    assert report.differences == []
    assert report.compared >= events * 0.97
