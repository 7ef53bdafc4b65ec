"""The Python Data Source ``kframe``: snapshots as Spark tables, to read and to write."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from kframe.errors import InputError
from kframe.model.texts import short_repr
from kframe.model.whole_numbers import parse_whole
from kframe.spark.pushdown import Condition, condition
from kframe.spark.reading import GROUPS_OF_PIECE, Piece, ReadRequest, pieces, read_piece
from kframe.spark.schema import CLUSTER_TABLES, PARTITIONS, QUARANTINE, FleetTable, spark_type
from kframe.spark.sources import find_sources
from kframe.spark.writing import OutputTarget, commit, discard, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES: Final[Mapping[str, FleetTable]] = {table.name: table for table in (*CLUSTER_TABLES, QUARANTINE)}
#: Spark's own words for what to do about bad records.
_MODES: Final[Mapping[str, bool]] = {"FAILFAST": False, "PERMISSIVE": True}
_FLAGS: Final[Mapping[str, bool]] = {"false": False, "true": True}
_READ_OPTIONS: Final = frozenset({"path", "paths", "table", "name", "clusters", "mode", "rowgroups", "pushdown"})

_WRITE_OPTIONS: Final = frozenset({"path", "fleet"})


class KframeSource(DataSource):
    """Options to read: ``table`` (default ``partitions``), ``name`` (see ``find_sources``), ``clusters``
    (comma-separated names; no other cluster is read), ``mode``, ``rowGroups`` of a Spark partition and ``pushdown``
    (see ``PushingReader``). ``mode`` is FAILFAST, or PERMISSIVE: then faults go to the table ``quarantine``."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return "kframe"

    def schema(self) -> str:
        """The columns of the table. Raises InputError if there is no such table."""
        table: FleetTable = _choice(self.options, "table", TABLES, "partitions")
        return table.ddl

    def reader(self, schema: Any) -> KframeReader:
        """A reader. Raises InputError for options or a schema that are not the format's."""
        _refuse_unknown(self.options, _READ_OPTIONS)
        table = _choice(self.options, "table", TABLES, "partitions")
        _check_schema(schema, table)
        pushing = _choice(self.options, "pushdown", _FLAGS, "false")
        names = [field.name for field in schema.fields]
        return (PushingReader if pushing else KframeReader)(dict(self.options.items()), table, names)

    def writer(self, schema: Any, overwrite: bool) -> KframeWriter:
        """A writer. Raises InputError for options that are not the format's, or rows that are not partitions."""
        _refuse_unknown(self.options, _WRITE_OPTIONS)
        _check_schema(schema, PARTITIONS)
        (path_option,) = _paths(self.options)
        path = os.path.abspath(path_option.removeprefix("file://")).rstrip("/")
        staged = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{uuid.uuid4().hex}")
        return KframeWriter(OutputTarget(path, staged, overwrite, self.options.get("fleet")))


class KframeReader(DataSourceReader):
    """Reads one table: a Spark partition a file or range of row groups, without those that filters exclude."""

    def __init__(self, options: Mapping[str, str], table: FleetTable, names: Sequence[str]) -> None:
        """``names`` are those of the table's columns, in the order and case in which Spark expects them."""
        self._paths = _paths(options)
        self._name = options.get("name")
        self._tolerant = _choice(options, "mode", _MODES, "FAILFAST")
        self._groups = _positive(options, "rowgroups", GROUPS_OF_PIECE)
        self._table, self._names = table, names
        self._conditions: list[Condition] = []
        if "clusters" in options:
            names = tuple(name.strip() for name in options["clusters"].split(","))
            self._conditions.append(Condition("cluster", "In", names))

    def partitions(self) -> Sequence[InputPartition]:
        """A piece each. Raises InputError if there is nothing to read, or two sources have one name."""
        pieces_ = pieces(find_sources(self._paths, self._name), self._request, self._groups)
        return [InputPartition(piece) for piece in pieces_] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a piece; none of none. Raises SnapshotError, which names file and reason."""
        piece: Piece | None = partition.value
        columns = [name.lower() for name in self._names]
        if piece is not None:
            for batch in read_piece(piece, self._request):
                yield batch.select(columns).rename_columns(list(self._names))

    @property
    def _request(self) -> ReadRequest:
        return ReadRequest(self._table, tuple(self._conditions), self._tolerant)


class PushingReader(KframeReader):
    """Spark up to 4.3 stores pushed filters with the relation and not with the scan (its ``PythonDataSourceV2`` has one
    ``readInfo``). Of two scans with different filters, one silently gets the other's rows."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802
        """Accept the filters that Arrow can evaluate. Return the others."""
        for spark_filter in filters:
            condition_ = condition(spark_filter, self._table.schema)
            if condition_ is None:
                yield spark_filter
            else:
                self._conditions.append(condition_)


@dataclass(frozen=True, slots=True)
class Staged(WriterCommitMessage):
    """The staged rows of a task."""

    task: str


class KframeWriter(DataSourceArrowWriter):
    """Writes partitions as snapshot directories, one a cluster: all of them or none (``kframe.spark.writing``)."""

    def __init__(self, target: OutputTarget) -> None:
        self._target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows next to the target."""
        task = uuid.uuid4().hex
        stage(self._target, task, iterator)
        return Staged(task)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Move the directories into place. Raises InputError if a cluster is incomplete or its target exists."""
        commit(self._target, [message.task for message in messages if isinstance(message, Staged)])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the staged rows."""
        discard(self._target)


def _paths(options: Mapping[str, str]) -> list[str]:
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if not paths:
        raise InputError("option path", "none", "a path for load() or save()")
    return list(paths)


def _choice(options: Mapping[str, str], name: str, known: Mapping[str, Any], default: str) -> Any:
    value = options.get(name, default)
    by_name = {name.lower(): value for name, value in known.items()}
    if value.lower() not in by_name:
        raise InputError(f"option {name}", short_repr(value), f"one of {', '.join(known)}")
    return by_name[value.lower()]


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    value = options.get(name, str(default))
    number = parse_whole(value)
    if not number:
        raise InputError(f"option {name}", short_repr(value), "a number from 1")
    return number


def _refuse_unknown(options: Mapping[str, str], known: frozenset[str]) -> None:
    if unknown := sorted({name.lower() for name in options} - known):
        raise InputError(f"option {unknown[0]}", "an unknown option", f"one of {', '.join(sorted(known))}")


def _check_schema(schema: Any, table: FleetTable) -> None:
    """Raise InputError unless a schema of Spark's has the table's columns, in any order, with names in any case."""
    actual = sorted((field.name.lower(), field.dataType.simpleString()) for field in schema.fields)
    expected = sorted((field.name, spark_type(field.type)) for field in table.schema)
    if actual != expected:
        raise InputError(f"the schema of table {table.name}", short_repr(dict(actual)), short_repr(dict(expected)))


def register(spark: SparkSession) -> None:
    """Make the format ``kframe`` known to a session, and let filters reach its option ``pushdown``.

    Executors need kframe installed, as they do for everything here.
    """
    spark.dataSource.register(KframeSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
