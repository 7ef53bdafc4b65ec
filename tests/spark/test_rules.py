"""Every rule of ``validate``: rows that violate only this rule, and the finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from kframe.model.kraft.ids import ELR_VERSION
from kframe.model.slot_columns import REPLICAS_MAX
from kframe.spark.modes import MODES, ZookeeperRows
from kframe.spark.rules import (
    RULES,
    VIOLATIONS,
    ClusterContext,
    RegisteredBrokers,
    shared_topic_ids,
    violations,
)
from kframe.spark.schema import BROKERS, PARTITIONS, TOPICS

HEALTHY: dict[str, Any] = {
    "cluster": "c",
    "topic": "t",
    "replicas": [1, 2, 3],
    "leader": 1,
    "leader_epoch": 4,
    "controller_epoch": 2,
    "partition_epoch": 7,
    "leader_recovery_state": 0,
    "isr": [1, 2, 3],
    "adding_replicas": [],
    "removing_replicas": [],
    "observers": [],
    "topic_id": "one",
    "deleting": False,
    "configs_known": True,
    "unclean": None,
    "min_insync_replicas": None,
}
#: Columns that a healthy partition of a KRaft cluster has as well.
IN_KRAFT: dict[str, Any] = {"elr": [], "last_known_elr": [], "directories": [3, 3, 3], "controller_epoch": None}
FOUR = [(1, True, "a"), (2, True, "b"), (3, True, "b"), (4, False, "a")]


class Broken(NamedTuple):
    """A rule; rows as changes of a healthy partition 0 (partition 1 is healthy). The partition and its finding."""

    rule: str
    changes: list[dict[str, Any]]
    actual: list[tuple[int | None, str]]
    brokers: Sequence[tuple[int, bool | None, str | None]] = FOUR
    also: frozenset[str] = frozenset()
    mode: str = "zookeeper"


BROKEN = [
    Broken("partly_unknown", [{"leader_epoch": None}], [(0, "null in a column")]),
    Broken("null_in_list", [{"isr": [1, None]}], [(0, "null in a list")]),
    Broken("partition_missing", [], [(0, "no such row")]),
    Broken("partition_repeated", [{}, {}, {}], [(0, "0"), (0, "0")]),
    Broken("partition_beyond", [{}, {"partition": 2}], [(2, "2")]),
    Broken("topic_unlisted", [{}, {"topic": "u"}], [(0, "u")]),
    Broken("topic_id_differs", [{}, {"partition": 1, "topic_id": "two"}], [(1, "two")]),
    Broken(
        "replicas_empty",
        [{"replicas": [], "isr": [], "leader": -1, "partition_epoch": -1}],
        [(0, "[]")],
        also=frozenset({"offline", "under_min_isr"}),
    ),
    Broken("replicas_range", [{"replicas": [1, 2, 3, -4]}], [(0, "[1, 2, 3, -4]")]),
    Broken("replicas_repeated", [{"replicas": [1, 2, 3, 3]}], [(0, "[1, 2, 3, 3]")]),
    Broken("isr_range", [{"isr": [1, -2]}], [(0, "[1, -2]")]),
    Broken("isr_repeated", [{"isr": [1, 2, 1]}], [(0, "[1, 2, 1]")]),
    Broken("isr_not_in_replicas", [{"isr": [1, 4]}], [(0, "[1, 4]")]),
    Broken("isr_empty", [{"isr": [], "leader": -1}], [(0, "[]")], also=frozenset({"offline", "under_min_isr"})),
    Broken("adding_replicas_range", [{"adding_replicas": [-1]}], [(0, "[-1]")]),
    Broken("adding_replicas_repeated", [{"adding_replicas": [3, 3]}], [(0, "[3, 3]")]),
    Broken("adding_replicas_not_in_replicas", [{"adding_replicas": [4]}], [(0, "[4]")]),
    Broken("removing_replicas_range", [{"removing_replicas": [-1]}], [(0, "[-1]")]),
    Broken("removing_replicas_repeated", [{"removing_replicas": [3, 3]}], [(0, "[3, 3]")]),
    Broken("removing_replicas_not_in_replicas", [{"removing_replicas": [4]}], [(0, "[4]")]),
    Broken("elr_range", [{"elr": [-1]}], [(0, "[-1]")], mode="kraft"),
    Broken("elr_repeated", [{"elr": [3, 3], "isr": [1, 2]}], [(0, "[3, 3]")], mode="kraft"),
    Broken("elr_in_isr", [{"elr": [1]}], [(0, "[1]")], mode="kraft"),
    Broken("last_known_elr_range", [{"last_known_elr": [-1]}], [(0, "[-1]")], mode="kraft"),
    Broken("last_known_elr_repeated", [{"last_known_elr": [3, 3]}], [(0, "[3, 3]")], mode="kraft"),
    Broken("observers_range", [{"observers": [-1]}], [(0, "[-1]")]),
    Broken("observers_repeated", [{"observers": [3, 3]}], [(0, "[3, 3]")]),
    Broken("observers_not_in_replicas", [{"observers": [4]}], [(0, "[4]")]),
    Broken("directories_unlike_replicas", [{"directories": [4]}], [(0, "[4]")], mode="kraft"),
    Broken("leader_range", [{"leader": -7}], [(0, "-7")], also=frozenset({"offline"})),
    Broken(
        "leader_not_in_replicas", [{"leader": 4}], [(0, "4")], also=frozenset({"leader_not_in_isr", "leader_not_live"})
    ),
    Broken("leader_not_in_isr", [{"leader": 1, "isr": [2, 3]}], [(0, "1")]),
    Broken("partition_epoch_range", [{"partition_epoch": -2}], [(0, "-2")]),
    Broken("leader_epoch_range", [{"leader_epoch": -1}], [(0, "-1")]),
    Broken("controller_epoch_range", [{"controller_epoch": -5}], [(0, "-5")]),
    Broken("recovery_range", [{"leader_recovery_state": 2}], [(0, "2")]),
    Broken("recovering_isr", [{"leader_recovery_state": 1, "isr": [1, 2]}], [(0, "[1, 2]")]),
    Broken("stateless_with_state", [{"partition_epoch": -1}], [(0, "-1")]),
    Broken("broker_unlisted", [{"replicas": [1, 2, 9]}], [(0, "[1, 2, 9]")], also=frozenset({"isr_not_in_replicas"})),
    Broken(
        "more_replicas_than_brokers",
        [{}],
        [(0, "[1, 2, 3]"), (1, "[1, 2, 3]")],
        brokers=FOUR[:2],
        also=frozenset({"broker_unlisted"}),
    ),
    Broken("leader_not_live", [{"replicas": [1, 2, 3, 4], "isr": [4, 1], "leader": 4}], [(0, "4")]),
    Broken("offline", [{"leader": -1, "isr": [4], "replicas": [1, 4, 2]}], [(0, "-1")]),
    Broken("under_min_isr", [{"isr": [1], "min_insync_replicas": 2}], [(0, "[1]")]),
    Broken("one_rack", [{"replicas": [2, 3], "isr": [2, 3], "leader": 2}], [(0, "[2, 3]")]),
]


def brokers_of(rows: Sequence[tuple[int, bool | None, str | None]]) -> RegisteredBrokers:
    table = [{"broker_id": broker_id, "registered": live, "rack": rack} for broker_id, live, rack in rows]
    return RegisteredBrokers.of(pa.Table.from_pylist(table, BROKERS.schema))


def violations_in(
    rows: list[dict[str, Any]],
    brokers: Sequence[tuple[int, bool | None, str | None]] = FOUR,
    min_insync: int = 1,
    mode: str = "zookeeper",
    elr: bool | None = None,
) -> list[dict[str, Any]]:
    healthy = HEALTHY | IN_KRAFT if mode == "kraft" else HEALTHY
    table = pa.Table.from_pylist([{**healthy, **row} for row in rows], PARTITIONS.schema)
    features = None if elr is None else [(ELR_VERSION, int(elr))]
    context = ClusterContext(brokers_of(brokers), {"t": 2}, MODES[mode]({"features": features}), min_insync)
    batches = list(violations("c", table, context))
    assert all(batch.schema == VIOLATIONS.schema for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.rule)
def test_rule_violation_is_reported(broken: Broken) -> None:
    rows = [{"partition": 0, **change} for change in broken.changes]
    whole = rows if any(row.get("partition") == 1 for row in rows) else [*rows, {"partition": 1}]
    reported = violations_in(whole, broken.brokers, mode=broken.mode)
    assert {row["mode"] for row in reported} == {broken.mode}
    assert {row["rule"] for row in reported} == {broken.rule} | broken.also
    of_rule = [row for row in reported if row["rule"] == broken.rule]
    assert [(row["partition"], row["actual"]) for row in of_rule] == broken.actual
    assert {(row["severity"], row["expected"]) for row in of_rule} == {
        (RULES[broken.rule].severity, RULES[broken.rule].expected)
    }


def test_every_rule_has_a_case() -> None:
    alone = {"topic_id_shared", "replicas_too_many", "cluster_row", "key_unknown"}  # below, and in test_frames
    assert {broken.rule for broken in BROKEN} == RULES.keys() - alone


def test_replicas_above_maximum_are_reported() -> None:
    """As many as it holds are only more than there are brokers, and unlisted."""
    many = list(range(1, REPLICAS_MAX + 2))
    rows: list[dict[str, Any]] = [
        {"partition": 0, "replicas": many},
        {"partition": 1, "replicas": many[:-1]},
    ]
    reported = [(row["rule"], row["partition"]) for row in violations_in(rows)]
    others = [(rule, number) for rule in ("broker_unlisted", "more_replicas_than_brokers") for number in (0, 1)]
    assert sorted(reported) == sorted([("replicas_too_many", 0), *others])


def test_unknown_columns_violate_no_rule() -> None:
    columns = ("leader", "isr", "leader_epoch", "controller_epoch", "partition_epoch", "leader_recovery_state")
    rows = [{"partition": number, **dict.fromkeys(columns)} for number in (0, 1)]
    assert violations_in(rows, [(1, None, None), (2, None, None), (3, None, None)]) == []


def test_cluster_default_applies_to_topic_without_min_isr() -> None:
    rows: list[dict[str, Any]] = [{"partition": 0, "isr": [1]}, {"partition": 1, "isr": [1], "min_insync_replicas": 1}]
    assert [(row["rule"], row["partition"]) for row in violations_in(rows, min_insync=2)] == [("under_min_isr", 0)]


@pytest.mark.parametrize(
    ("mode", "elr", "rules"),
    [
        ("zookeeper", None, {"isr_empty", "offline", "under_min_isr"}),
        ("kraft", False, {"isr_empty", "offline", "under_min_isr"}),
        ("kraft", True, {"offline", "under_min_isr"}),
        ("kraft", None, {"offline", "under_min_isr"}),
    ],
)
def test_empty_isr_is_valid_if_elr_is_enabled(mode: str, elr: bool | None, rules: set[str]) -> None:
    rows: list[dict[str, Any]] = [{"partition": 0, "isr": [], "leader": -1}, {"partition": 1}]
    assert {row["rule"] for row in violations_in(rows, mode=mode, elr=elr)} == rules


def test_partition_0_bounds_min_isr_in_kraft_mode() -> None:
    broken = {}
    for mode, fields in (("zookeeper", {}), ("kraft", {"directories": [3]})):
        rows: list[dict[str, Any]] = [
            {"partition": 0, "replicas": [1], "isr": [1], **fields},
            {"partition": 1, "isr": [1]},
        ]
        broken[mode] = [(row["rule"], row["partition"]) for row in violations_in(rows, min_insync=2, mode=mode)]
    assert broken == {"zookeeper": [("under_min_isr", 0), ("under_min_isr", 1)], "kraft": []}


def test_violations_are_independent_of_row_order() -> None:
    rows: list[dict[str, Any]] = [{"partition": 1}, {"partition": 0, "isr": [1, 4]}]
    assert (
        [row["partition"] for row in violations_in(rows)]
        == [row["partition"] for row in violations_in(rows[::-1])]
        == [0]
    )


def test_shared_topic_id_is_reported() -> None:
    rows = [
        {"topic": topic, "topic_id": topic_id} for topic, topic_id in zip("abcd", ["x", "y", "x", None], strict=True)
    ]
    table = pa.Table.from_pylist(rows, TOPICS.schema)
    (batch,) = shared_topic_ids("c", table)
    assert [(row["rule"], row["topic"], row["actual"]) for row in batch.to_pylist()] == [
        ("topic_id_shared", "a", "x"),
        ("topic_id_shared", "c", "x"),
    ]


@pytest.mark.parametrize("column", ["replicas", "isr", "adding_replicas", "removing_replicas", "elr", "directories"])
def test_null_in_any_list_leaves_other_partitions_to_rules(column: str) -> None:
    kraft = HEALTHY | IN_KRAFT
    rows: list[dict[str, Any]] = [
        {"partition": 0, column: [*(kraft[column] or []), None]},
        {"partition": 1, "leader": 9},
    ]
    reported = {(row["rule"], row["partition"]) for row in violations_in(rows, mode="kraft")}
    assert reported == {("null_in_list", 0), ("leader_not_in_replicas", 1), ("leader_not_in_isr", 1)}


def test_broker_without_id_counts_for_nothing() -> None:
    table = pa.Table.from_pylist([{"broker_id": 1, "registered": True}, {"broker_id": None}], BROKERS.schema)
    assert RegisteredBrokers.of(table).ids.tolist() == [1]


def test_empty_tables_violate_no_rule() -> None:
    nothing = PARTITIONS.schema.empty_table()
    assert list(violations("c", nothing, ClusterContext(brokers_of([]), {}, ZookeeperRows()))) == []
    assert list(shared_topic_ids("c", TOPICS.schema.empty_table())) == []
