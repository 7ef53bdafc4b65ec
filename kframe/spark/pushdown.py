"""Filters pushed down by Spark: clusters and row groups to skip, and rows to keep.

They are records with an ``attribute`` and a ``value`` (``pyspark.sql.datasource.Filter``). This module identifies them
by class name, so that it does not need Spark.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
}
_TEXTS: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "StringStartsWith": pc.starts_with,
    "StringEndsWith": pc.ends_with,
    "StringContains": pc.match_substring,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """``column`` compared with a value (a tuple for In). ``kind`` is the name of Spark's class, ``negated`` a Not."""

    column: str
    kind: str
    value: Any = None
    negated: bool = False

    def expression(self) -> pc.Expression:
        """The condition for Arrow. It is null where Spark's is null."""
        field = pc.field(self.column)
        if self.kind in _COMPARISONS:
            expression = _COMPARISONS[self.kind](field, pc.scalar(self.value))
        elif self.kind in _TEXTS:
            expression = _TEXTS[self.kind](field, self.value)
        elif self.kind == "In":
            expression = pc.if_else(field.is_null(), pa.scalar(None, pa.bool_()), field.isin(list(self.value)))
        else:
            expression = field.is_null() if self.kind == "IsNull" else field.is_valid()
        return ~expression if self.negated else expression

    def may_hold(self, minimum: Any, maximum: Any) -> bool:
        """Whether a value from ``minimum`` to ``maximum`` can satisfy it. True if statistics cannot exclude it."""
        if self.negated:
            return True
        match self.kind:
            case "EqualTo":
                return bool(minimum <= self.value <= maximum)
            case "In":
                return any(minimum <= value <= maximum for value in self.value)
            case "GreaterThan" | "GreaterThanOrEqual":
                return _COMPARISONS[self.kind](maximum, self.value) is True
            case "LessThan" | "LessThanOrEqual":
                return _COMPARISONS[self.kind](minimum, self.value) is True
            case "StringStartsWith":
                return bool(minimum[: len(self.value)] <= self.value <= maximum[: len(self.value)])
            case _:
                return True


def condition(spark_filter: Any, schema: pa.Schema) -> Condition | None:
    """A filter of Spark's as a condition. None if Spark has to evaluate it."""
    kind, negated = type(spark_filter).__name__, False
    if kind == "Not":
        spark_filter, negated = spark_filter.child, True
        kind = type(spark_filter).__name__
    if len(getattr(spark_filter, "attribute", ())) != 1 or spark_filter.attribute[0] not in schema.names:
        return None
    column = spark_filter.attribute[0]
    if kind in ("IsNull", "IsNotNull"):
        return Condition(column, kind, None, negated)
    value_type = {pa.string(): str, pa.int32(): int, pa.int64(): int, pa.bool_(): bool}.get(schema.field(column).type)
    if kind == "In" and all(type(value) is value_type for value in spark_filter.value):
        return Condition(column, kind, tuple(spark_filter.value), negated)
    if (kind in _COMPARISONS or (kind in _TEXTS and value_type is str)) and type(spark_filter.value) is value_type:
        return Condition(column, kind, spark_filter.value, negated)
    return None


def cluster_may_match(conditions: Iterable[Condition], cluster: str) -> bool:
    """Whether rows of a cluster of that name can be requested."""
    names = pa.table({"cluster": [cluster]})
    return all(
        names.filter(condition_.expression()).num_rows for condition_ in conditions if condition_.column == "cluster"
    )


def filter_batch(batch: pa.RecordBatch, conditions: Iterable[Condition]) -> pa.RecordBatch:
    """The rows for which every condition holds."""
    for condition_ in conditions:
        batch = batch.filter(condition_.expression())
    return batch


def groups_to_read(metadata: Any, conditions: Iterable[Condition]) -> list[int]:
    """Row groups of a Parquet file that may have requested rows. The file's statistics decide."""
    leaves = {metadata.schema.column(leaf).path: leaf for leaf in range(metadata.num_columns)}
    conditions_by_leaf = [
        (leaves[condition_.column], condition_) for condition_ in conditions if condition_.column in leaves
    ]

    def may_hold(number: int) -> bool:
        group = metadata.row_group(number)
        for leaf, condition_ in conditions_by_leaf:
            statistics = group.column(leaf).statistics
            if (
                statistics is not None
                and statistics.has_min_max
                and not condition_.may_hold(statistics.min, statistics.max)
            ):
                return False
        return True

    return [number for number in range(metadata.num_row_groups) if may_hold(number)]
