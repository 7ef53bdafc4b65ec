"""Spark and Arrow have the same schema of every table."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from kframe.spark.grouping import PIECES
from kframe.spark.schema import FleetTable
from kframe.spark.stages import RESULTS
from tests.spark.test_documented_tables import TABLES


@pytest.mark.parametrize("table", [*TABLES, RESULTS, PIECES], ids=lambda table: table.name)
def test_ddl_equals_arrow_schema(spark: Any, table: FleetTable) -> None:
    assert spark.createDataFrame([], table.ddl).schema == from_arrow_schema(table.schema)
