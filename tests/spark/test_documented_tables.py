"""``docs/reference/fleet-tables.md`` documents every table and key, and every column with type, unit and meaning."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from kframe.spark import ingest, plans, play, report, requests, rules, schema, sweeping
from kframe.spark.schema import FleetTable, spark_type
from tests.snapshot.samples import ROOT

TABLES = (
    schema.PARTITIONS, schema.BROKERS, schema.TOPICS, schema.CLUSTERS, schema.QUARANTINE, ingest.INGESTED,
    rules.VIOLATIONS, schema.SCENARIOS, play.CHANGES, play.TALLIES, play.CONDITIONS, play.IMPACTS, requests.REQUESTS,
    sweeping.FAILURES, plans.PLANS, plans.PLAN_MOVES, report.BY_CLUSTER, report.BY_BROKER,
    report.BY_RACK, report.BY_TOPIC,
)  # fmt: skip


class Column(NamedTuple):
    name: str
    kind: str
    unit: str
    meaning: str


def sections() -> dict[str, str]:
    """Return the text about each table, by the table's name."""
    text = (ROOT / "docs" / "reference" / "fleet-tables.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `(\w+)`$", re.sub(r"^## .*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def columns(section: str) -> list[Column]:
    """Return the rows of a section's table."""
    rows = [re.fullmatch(r"\| `(\w+)` \| `([^`]+)` \| ([^|]+) \| (.+) \|", line) for line in section.splitlines()]
    return [Column(*row.groups()) for row in rows if row is not None]


def test_documented_tables_equal_schema() -> None:
    assert list(sections()) == [table.name for table in TABLES]


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_documented_columns_equal_schema(table: FleetTable) -> None:
    section = sections()[table.name]
    documented = columns(section)
    assert [(column.name, column.kind) for column in documented] == [
        (field.name, spark_type(field.type)) for field in table.schema
    ]
    assert [column.name for column in documented if not column.unit.strip() or not column.meaning.strip()] == []
    key = re.search(r"Key: (.*)\.$", section, re.MULTILINE)
    assert (() if key is None else tuple(re.findall(r"`(\w+)`", key[1]))) == table.key
