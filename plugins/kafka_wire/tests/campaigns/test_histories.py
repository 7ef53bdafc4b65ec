"""The checker accepts histories of responses that one controller could have sent in some order, and no others.

Live controllers under faults give such responses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verification.kafka_wire.campaigns.history_check import HistoryOperation, check, missing
from verification.kafka_wire.campaigns.linearizability import CUT_OFF_WITH_READERS, FROZEN, history_cluster, mutated

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


def history(*rows: tuple[str, int, int, str, dict[str, Any]]) -> list[HistoryOperation]:
    """Rows of kind, call, return (0: unknown outcome), error code, and fields."""
    return [
        HistoryOperation(client, "t", kind, call, end, code, **fields)
        for client, (kind, call, end, code, fields) in enumerate(rows)
    ]


def created(call: int, end: int, code: str = "NONE", name: str = "a") -> tuple[str, int, int, str, dict[str, Any]]:
    return "create", call, end, code, {"partitions": 2, "replicas": [1, 2], "id": name if code == "NONE" else ""}


def described(call: int, end: int, **fields: Any) -> tuple[str, int, int, str, dict[str, Any]]:
    return "describe", call, end, "NONE", {"partitions": 2, "replicas": [1, 2], "leader": 1, "id": "a", **fields}


def row(kind: str, call: int, end: int, code: str = "NONE", **fields: Any) -> tuple[str, int, int, str, dict[str, Any]]:
    return kind, call, end, code, fields


MOVED: dict[str, Any] = {"replicas": [3, 1, 2], "adding": [3], "removing": [1, 2]}
LEGAL = {
    "create, then describe": [created(1, 2), described(3, 4)],
    "describe during a creation": [created(1, 9), row("describe", 2, 3, UNKNOWN_TOPIC), described(4, 5)],
    "two creations at the same time": [created(1, 9), created(1, 9, "TOPIC_ALREADY_EXISTS")],
    "a lost creation that took effect": [created(1, 0, ""), described(8, 9), described(10, 11)],
    "a lost creation without effect": [created(1, 0, ""), row("describe", 8, 9, UNKNOWN_TOPIC)],
    "create again after a deletion": [
        created(1, 2), row("delete", 3, 4), created(5, 6, "TOPIC_ALREADY_EXISTS"), created(7, 8, name="b"),
        described(9, 10, id="b"),
    ],
    "two deletions at the same time": [created(1, 2), row("delete", 3, 9), row("delete", 4, 8)],
    "grow": [created(1, 2), row("grow", 3, 4, partitions=3), described(5, 6, partitions=3)],
    "a reassignment under way, then completed": [
        created(1, 2), row("reassign", 3, 4, replicas=[3]), row("list", 5, 6, **MOVED),
        row("grow", 7, 8, "REASSIGNMENT_IN_PROGRESS", partitions=3), described(9, 10, replicas=[3, 1, 2]),
        described(11, 12, replicas=[3], leader=3), row("list", 13, 14),
    ],
    "a cancelled reassignment": [
        created(1, 2), row("reassign", 3, 4, replicas=[3]), row("cancel", 5, 6), described(7, 8),
        row("cancel", 9, 10, "NO_REASSIGNMENT_IN_PROGRESS"),
    ],
    "a cancelled reassignment leaves no leader": [
        created(1, 2), row("reassign", 3, 4, replicas=[3]), row("elect", 5, 6), row("cancel", 7, 8),
        described(9, 10, leader=-1), row("elect", 11, 12), described(13, 14),
    ],
    "an election": [
        created(1, 2), row("elect", 3, 4, "ELECTION_NOT_NEEDED"), row("reassign", 5, 6, replicas=[2, 1]),
        row("elect", 7, 8), described(9, 10, replicas=[2, 1], leader=2),
    ],
}  # fmt: skip
ILLEGAL = {
    "a created topic is not described": [created(1, 2), row("describe", 3, 4, UNKNOWN_TOPIC)],
    "two creations succeed": [created(1, 2), created(3, 4, name="b")],
    "a read goes back": [
        created(1, 2),
        row("grow", 3, 9, partitions=3),
        described(4, 5, partitions=3),
        described(6, 7),
    ],
    "a deleted topic is described": [created(1, 2), row("delete", 3, 4), described(5, 6)],
    "a deleted topic is deleted again": [
        created(1, 2),
        row("delete", 3, 4),
        created(5, 6, name="b"),
        row("delete", 7, 8, UNKNOWN_TOPIC),
    ],
    "the id of a deleted topic": [created(1, 2), row("delete", 3, 4), created(5, 6, name="b"), described(7, 8)],
    "a lost creation that comes and goes": [
        created(1, 0, ""),
        described(3, 4),
        row("describe", 5, 6, UNKNOWN_TOPIC),
    ],
    "partitions that no request added": [created(1, 2), described(3, 4, partitions=3)],
    "a reassignment that comes back": [
        created(1, 2),
        row("reassign", 3, 4, replicas=[3]),
        described(5, 6, replicas=[3], leader=3),
        row("list", 7, 8, **MOVED),
    ],
    "a cancelled reassignment completes": [
        created(1, 2),
        row("reassign", 3, 4, replicas=[3]),
        row("cancel", 5, 6),
        described(7, 8, replicas=[3], leader=3),
    ],
    "a reassignment leaves no leader": [
        created(1, 2),
        row("reassign", 3, 4, replicas=[3]),
        described(5, 6, replicas=[3], leader=-1),
    ],
    "a leader without an election": [created(1, 2), described(3, 4, leader=2)],
}


@pytest.mark.parametrize("rows", LEGAL.values(), ids=LEGAL)
def test_a_possible_history_is_accepted(rows: list[Any]) -> None:
    report = check(history(*rows))
    assert (report.violations, report.undecided) == ([], [])
    assert (report.operations, report.topics, report.longest) == (len(rows), 1, len(rows))


@pytest.mark.parametrize("rows", ILLEGAL.values(), ids=ILLEGAL)
def test_an_impossible_history_is_refused(rows: list[Any]) -> None:
    assert check(history(*rows)).violations == ["t"]


@pytest.mark.extended
def test_responses_are_linearizable_under_faults(needs_java: None, tmp_path: Path) -> None:
    """An instance whose session ends while it is frozen, or while it reaches clients but not ZooKeeper."""
    with history_cluster(tmp_path, seed=1) as cluster:
        operations = cluster.record(0, [FROZEN, CUT_OFF_WITH_READERS])
    report = check(operations, tmp_path)
    assert (report.violations, report.undecided) == ([], [])
    assert {operation.kind for operation in operations if operation.code == "NONE"} >= {
        "create",
        "delete",
        "grow",
        "reassign",
        "describe",
        "list",
    }
    assert len(check(mutated(operations)).violations) == 1
