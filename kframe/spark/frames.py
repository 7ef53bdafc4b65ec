"""DataFrames of any caller as the tables that kframe's functions read.

Columns may be in any order, and their names in any case where Spark ignores case.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from kframe.errors import InputError
from kframe.model.texts import short_repr
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, SCENARIOS, TOPICS, FleetTable, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The name of the only cluster, where no column names it.
ONLY_CLUSTER: Final = "cluster"
#: The columns of each table that a caller needs to have. The others are null, if _DEFAULTS has no value.
REQUIRED: Final = {
    PARTITIONS.name: ("topic", "partition", "replicas"),
    BROKERS.name: ("broker_id",),
    TOPICS.name: ("topic", "partition_count"),
    CLUSTERS.name: (),
    SCENARIOS.name: ("scenario",),
}
_DEFAULTS: Final[dict[str, dict[str, object]]] = {
    **{table.name: {"cluster": ONLY_CLUSTER} for table in (PARTITIONS, BROKERS, TOPICS, CLUSTERS)},
    SCENARIOS.name: {"verb": "fail"},
}
#: Settings of a topic in its partitions: they are known where one of these columns is there.
_TOPIC_SETTINGS: Final = frozenset({"unclean", "min_insync_replicas"})
_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})


def conform(frame: DataFrame, table: FleetTable, required: Collection[str] = ()) -> DataFrame:
    """The rows of a frame in the columns of a table. Missing optional columns are null; those of no table are left out.

    The columns in REQUIRED and ``required`` must be there. Integers of another width are converted; a query that meets
    a value outside the range fails. Raises InputError for a missing column, a name that several columns have, and
    another type.
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
    defaults: dict[str, Any] = dict(_DEFAULTS[table.name])
    if table == PARTITIONS and any(fold(name) in types for name in _TOPIC_SETTINGS):
        defaults["configs_known"] = True
    columns = []
    for name, kind in expected:
        kinds = types.get(fold(name), [])
        if not kinds and name not in (*REQUIRED[table.name], *required):
            columns.append(f.lit(defaults.get(name)).cast(kind).alias(name))
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
    message = f.concat(
        f.lit(f"table {table.name} column {name}: found "),
        column.cast("string"),
        f.lit(f", expected a number of type {expected}"),
    )
    return f.when(column.isNotNull() & converted.isNull(), f.raise_error(message).cast(expected)).otherwise(converted)
