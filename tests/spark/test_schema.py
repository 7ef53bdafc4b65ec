"""Spark and Arrow have the same schema of every table."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from kframe.spark import ingest, play, report, requests, rules, schema, stages, sweeping
from kframe.spark.schema import FleetTable

MODULES = (schema, ingest, rules, stages, play, requests, sweeping, report)
TABLES = list(
    {
        value.name: value for module in MODULES for value in vars(module).values() if isinstance(value, FleetTable)
    }.values()
)


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_ddl_equals_arrow_schema(spark: Any, table: FleetTable) -> None:
    assert spark.createDataFrame([], table.ddl).schema == from_arrow_schema(table.schema)


@pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])
def test_key_columns_are_in_table(table: FleetTable) -> None:
    assert set(table.key) <= set(table.schema.names)
