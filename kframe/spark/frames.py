"""DataFrames of any caller as the tables that kframe's functions read, and results as the session expects them.

Columns may be in any order, and their names in any case where Spark ignores case. Callers may set Arrow's large types
(``spark.sql.execution.arrow.useLargeVarTypes``) at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kframe.errors import InputError
from kframe.model.texts import short_repr
from kframe.snapshot.tables import OBSERVERS, kraft_schemas, schemas
from kframe.spark.schema import BROKERS, CLUSTERS, KRAFT_FACTS, PARTITIONS, FleetTable, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: In a frame of CLUSTERS with one row a cluster: how many rows name it.
CLUSTER_ROWS: Final = "cluster_rows"
#: The columns of each table that only KRaft clusters or those with observers have, and the mode. They may be missing.
_OPTIONAL: Final = {
    PARTITIONS.name: {"directories", OBSERVERS},
    BROKERS.name: {*kraft_schemas()["brokers"].names} - {*schemas()["brokers"].names},
    CLUSTERS.name: {"mode", *KRAFT_FACTS.names},
}
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})


def conform(frame: DataFrame, table: FleetTable) -> DataFrame:
    """The rows of a frame in the columns of a table. Columns that only some clusters have may be missing and are null
    then; columns of no table are left out.

    Integers of another width are converted; a query that meets a value outside the range fails. Raises InputError for a
    missing column, a name that several columns have, and another type.
    """
    from pyspark.sql import functions as f

    actual = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    expected = [(field.name, spark_type(field.type)) for field in table.schema]
    if actual == expected:
        return frame
    fold = str if frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true" else str.lower
    types: dict[str, list[str]] = {}
    for name, kind in actual:
        types.setdefault(fold(name), []).append(kind)
    columns = []
    for name, kind in expected:
        kinds = types.get(fold(name), [])
        if not kinds and name in _OPTIONAL.get(table.name, ()):
            columns.append(f.lit(None).cast(kind).alias(name))
            continue
        if len(kinds) != 1:
            actual_columns = "no such column" if not kinds else f"{len(kinds)} columns of that name"
            raise InputError(f"table {table.name} column {name}", actual_columns, f"one column {kind}")
        columns.append(_converted(name, kinds[0], kind, table).alias(name))
    return frame.select(*columns)


def _converted(name: str, actual: str, expected: str, table: FleetTable) -> Column:
    from pyspark.sql import functions as f

    column = f.col(name)
    if actual == expected:
        return column
    is_text = expected == "string" and actual.startswith(("varchar(", "char("))
    if actual.lower() == expected or is_text or actual in ("void", "array<void>"):
        return column.cast(expected)
    if {actual, expected} <= _INTEGERS:
        return _narrowed(column, name, expected, table)
    inner = tuple(kind.removeprefix("array<").removesuffix(">") for kind in (actual, expected))
    if actual.startswith("array<") and expected.startswith("array<") and set(inner) <= _INTEGERS:
        return f.transform(column, lambda element: _narrowed(element, name, inner[1], table))
    raise InputError(f"table {table.name} column {name}", short_repr(actual), f"type {expected}")


def _narrowed(column: Column, name: str, expected: str, table: FleetTable) -> Column:
    """A number in another integer type. A query fails on a number outside its range, in each mode of Spark."""
    from pyspark.sql import functions as f

    converted = column.try_cast(expected)
    message = f.concat(f.lit(f"table {table.name} column {name}: found "), column.cast("string"),
                       f.lit(f", expected a number of type {expected}"))  # fmt: skip
    return f.when(column.isNotNull() & converted.isNull(), f.raise_error(message).cast(expected)).otherwise(converted)


def unique_clusters(clusters: DataFrame) -> DataFrame:
    """A frame of CLUSTERS with one row a cluster, any of its rows, and CLUSTER_ROWS. Rows without a cluster are left
    out: no row of another table belongs to them."""
    from pyspark.sql import functions as f

    columns = [name for name in CLUSTERS.schema.names if name != "cluster"]
    grouped = (
        conform(clusters, CLUSTERS).where("cluster is not null").groupBy("cluster")
        .agg(f.first(f.struct(*columns)).alias("row"), f.count(f.lit(1)).alias(CLUSTER_ROWS))
    )  # fmt: skip
    return grouped.select("cluster", "row.*", CLUSTER_ROWS)


def of_group(function: Callable[[tuple[Any, ...], pa.Table], pa.Table]) -> Callable[..., pa.Table]:
    """A function for ``applyInArrow`` of a group. Arrow's large types come and go where the session has set them."""

    def of_rows(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        result = function(key, with_small_types(rows))
        return _with_large_types(result) if _has_large_types(rows.schema) else result

    return of_rows


def of_cogroup(function: Callable[[tuple[Any, ...], pa.Table, pa.Table], pa.Table]) -> Callable[..., pa.Table]:
    """A function for ``applyInArrow`` of two groups; types as in ``of_group``."""

    def of_rows(key: tuple[Any, ...], left: pa.Table, right: pa.Table) -> pa.Table:
        result = function(key, with_small_types(left), with_small_types(right))
        return _with_large_types(result) if _has_large_types(left.schema) or _has_large_types(right.schema) else result

    return of_rows


def with_small_types(rows: pa.Table) -> pa.Table:
    """Rows with Arrow's types of 32-bit offsets, as kframe's tables have them."""
    return rows.cast(pa.schema([pa.field(field.name, _replaced(field.type, _SMALL)) for field in rows.schema]))


def _with_large_types(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([pa.field(field.name, _replaced(field.type, _LARGE)) for field in rows.schema]))


def _has_large_types(schema: pa.Schema) -> bool:
    return any(_is_large(field.type) for field in schema)


def _is_large(kind: pa.DataType) -> bool:
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return kind in _SMALL or any(map(_is_large, inner))


_LARGE: Final = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_SMALL: Final = {large: small for small, large in _LARGE.items()}


def _replaced(kind: pa.DataType, types: dict[pa.DataType, pa.DataType]) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_replaced(kind.value_type, types))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _replaced(field.type, types)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_replaced(kind.key_type, types), _replaced(kind.item_type, types))
    return types.get(kind, kind)
