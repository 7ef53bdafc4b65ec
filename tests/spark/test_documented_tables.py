"""``docs/reference/fleet-tables.md`` documents every table and key, and every column with type, unit and meaning."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from kframe.spark import ingest, plans, play, report, rules, schema, sweeping
from kframe.spark.schema import FleetTable, spark_type
from tests.snapshot.samples import ROOT

TABLES = (
    schema.PARTITIONS,
    schema.BROKERS,
    schema.TOPICS,
    schema.CLUSTERS,
    schema.QUARANTINE,
    ingest.INGESTED,
    rules.VIOLATIONS,
    schema.SCENARIOS,
    play.CHANGES,
    play.BROKER_COUNTS,
    play.CONDITIONS,
    play.IMPACTS,
    play.REQUESTS,
    sweeping.FAILURES,
    plans.PLANS,
    plans.PLAN_MOVES,
    report.BY_CLUSTER,
    report.BY_BROKER,
    report.BY_RACK,
    report.BY_TOPIC,
)


class Column(NamedTuple):
    name: str
    kind: str
    unit: str
    meaning: str


def sections() -> tuple[str, dict[str, str]]:
    """Return the text before all tables, which has the common columns, and the text about each table by its name."""
    text = (ROOT / "docs" / "reference" / "fleet-tables.md").read_text(encoding="utf-8")
    common, *parts = re.split(r"^### `(\w+)`$", re.sub(r"^## .*$", "", text, flags=re.MULTILINE), flags=re.MULTILINE)
    return common, dict(zip(parts[::2], parts[1::2], strict=True))


def columns(section: str) -> list[Column]:
    """Return the columns of a section's table. A row may describe two columns."""
    rows = [re.fullmatch(r"\| (`[^|]+`) \| `([^`]+)` \| ([^|]+) \| (.+) \|", line) for line in section.splitlines()]
    return [Column(name, *row.groups()[1:]) for row in rows if row is not None for name in re.findall(r"\w+", row[1])]


def test_documented_tables_equal_schema() -> None:
    assert list(sections()[1]) == [table.name for table in TABLES]


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_documented_columns_equal_schema(table: FleetTable) -> None:
    common, by_table = sections()
    section = by_table[table.name]
    own = columns(section)
    others = [
        by_table[name]
        for line in re.findall(r"Other columns are .*?\.", section, re.DOTALL)
        for name in re.findall(r"`(\w+)`", line)
    ]
    inherited = {column.name: column for text in (common, *others) for column in columns(text)}
    documented = inherited | {column.name: column for column in own}
    assert [(name, documented[name].kind) for name in table.schema.names] == [
        (field.name, spark_type(field.type)) for field in table.schema
    ]
    assert [column.name for column in own] == [name for name in table.schema.names if name in {row.name for row in own}]
    assert [column.name for column in own if not column.unit.strip() or not column.meaning.strip()] == []
    key = re.search(r"Key: (.*)\.$", section, re.MULTILINE)
    assert (() if key is None else tuple(re.findall(r"`(\w+)`", key[1]))) == table.key
