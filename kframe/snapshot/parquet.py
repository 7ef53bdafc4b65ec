"""Read the Parquet files of a snapshot directory. Neither their schema nor their content is trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import SnapshotError
from kframe.model.arrays import Int32, Ragged, UInt8, ragged_positions
from kframe.model.brokers import Endpoint
from kframe.model.kafka_uuids import is_kafka_uuid
from kframe.model.texts import counted, short_repr
from kframe.model.topics import are_topic_names
from kframe.snapshot.checks import INT32_MAX, check_topic_name
from kframe.snapshot.decode import check_topic_id, topic_ids_of
from kframe.snapshot.facts import LIST_COLUMNS, NUMBER_COLUMNS, BrokerFacts, PartitionFacts, TopicFacts
from kframe.snapshot.tables import ENDPOINT_FIELDS, OBSERVERS, arrow, kraft_schemas, schemas

PORT_MAX: Final = 65_535

_ORDER: Final = "rows sorted by topic and partition, each partition from 0 to the topic's partition_count once"


class TableFile:
    """One Parquet file, checked against its schema. ``rows`` and ``entries`` are counts of the manifest.

    ``entries`` bounds the length of a list column: a file that declares more is refused before it is decoded. Only
    the row groups ``groups`` (ascending) are read if these are given. ``kraft``: the table has the columns of
    ``kraft_schemas``. Columns are decoded a row group at a time and copied to their arrays. The memory for decoding is
    that of one row group, and each page of it is touched for the first time only once.
    """

    def __init__(
        self,
        path: Path,
        table: str,
        rows: int,
        entries: int,
        unknown: frozenset[str],
        groups: Sequence[int] | None = None,
        *,
        kraft: bool = False,
    ) -> None:
        self.path = path
        self.kraft = kraft
        self._table, self._unknown = table, unknown
        self._offsets: list[Int32] = []
        arrow()
        from pyarrow import parquet

        with self._refusing_malformed_parquet():
            self._file = parquet.ParquetFile(path, read_dictionary=["topic"] if table == "partitions" else None)
            self._check_shape(self._file, rows, entries)
            metadata = self._file.metadata
            self._counts = np.array(
                [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)], np.int64
            )
            self._groups = np.arange(metadata.num_row_groups) if groups is None else np.array(groups, np.int64)
            self.row_count = int(self._counts[self._groups].sum())

    @contextlib.contextmanager
    def _refusing_malformed_parquet(self) -> Iterator[None]:
        try:
            yield
        except (arrow().ArrowException, OSError, UnicodeDecodeError) as problem:
            raise SnapshotError(
                str(self.path), f"no readable Parquet ({problem})", f"the {self._table} table"
            ) from problem

    @property
    def positions(self) -> NDArray[np.int64]:
        """Numbers in the file of the rows that are read."""
        starts = np.cumsum(self._counts) - self._counts
        return ragged_positions(starts[self._groups], self._counts[self._groups])

    def _chunks(self, column: str) -> Iterator[Any]:
        """The validated arrays of a column, in order."""
        for group in self._groups.tolist():
            with self._refusing_malformed_parquet():
                table = self._file.read_row_group(group, columns=[column], use_threads=False)
                table.validate(full=True)
            yield from table[column].chunks

    def _checked_chunks(self, column: str, unknown: bool, nullable: bool = False) -> Iterator[Any]:
        """The arrays of a column, none if it is ``unknown``. Raises SnapshotError after the last one for nulls.

        A known column has none, unless it is ``nullable``; an unknown one is null in every row.
        """
        nulls, rows = 0, self.row_count
        for chunk in self._chunks(column):
            nulls += chunk.null_count
            if not unknown:
                yield chunk
        if nulls != (rows if unknown else 0) and (unknown or not nullable):
            expected = "all null (the manifest calls it unknown)" if unknown else "none"
            raise SnapshotError(
                f"{self.path} field {column}", f"{counted(nulls, 'null')} in {counted(rows, 'row')}", expected
            )

    def _is_unknown(self, column: str) -> bool:
        return f"{self._table}.{column}" in self._unknown

    def rows(self, column: str) -> list[Any]:
        """A column of a small table as Python values."""
        return [value for chunk in self._chunks(column) for value in chunk.to_pylist()]

    def known_arrays(self, column: str, *, nullable: bool = False) -> list[Any] | None:
        """The arrays of a column of a small table; None if it is unknown. ``nullable``: a null is a valid value."""
        unknown = self._is_unknown(column)
        arrays = list(self._checked_chunks(column, unknown, nullable))
        return None if unknown else arrays

    def numbers(self, column: str) -> Int32:
        """An int32 column that has no nulls."""
        numbers, count = np.empty(self.row_count, np.int32), 0
        for chunk in self._checked_chunks(column, unknown=False):
            numbers[count : count + len(chunk)] = _int32_view(chunk)
            count += len(chunk)
        return numbers

    def known_numbers(self, column: str) -> Int32 | None:
        """An int32 column that has no nulls; None if it is unknown."""
        return self.numbers(column) if self._may_have_values(column) else None

    def known_lists(self, column: str) -> Ragged | None:
        """``lists`` of a column; None if it is unknown."""
        return self.lists(column) if self._may_have_values(column) else None

    def _may_have_values(self, column: str) -> bool:
        """Whether the manifest does not call a column unknown. Raises SnapshotError if an unknown one has a value."""
        unknown = self._is_unknown(column)
        if unknown:
            list(self._checked_chunks(column, unknown))
        return not unknown

    def lists(self, column: str) -> Ragged:
        """A column of lists of int32, none of them and nothing in them null. Columns with equal offsets share them."""
        offsets, values = np.zeros(self.row_count + 1, np.int32), np.empty(self._entries(column), np.int32)
        count = first = 0
        for chunk in self._checked_chunks(column, unknown=False):
            ends = _int32_view(chunk.offsets)
            start, stop = int(ends[0]), int(ends[-1])
            entries = chunk.values.slice(start, stop - start)
            if entries.null_count:
                raise SnapshotError(f"{self.path} field {column}", "null inside a list", "broker ids")
            np.add(ends[1:], first - start, out=offsets[count + 1 : count + 1 + len(chunk)])
            values[first : first + len(entries)] = _int32_view(entries)
            count, first = count + len(chunk), first + len(entries)
        return Ragged(self._shared(offsets), values if first == len(values) else values[:first].copy())

    def _entries(self, column: str) -> int:
        """At least the entries of a column of lists: empty lists and nulls count as one."""
        metadata = self._file.metadata
        leaf = next(
            index
            for index in range(metadata.num_columns)
            if metadata.schema.column(index).path.startswith(f"{column}.")
        )
        return sum(metadata.row_group(group).column(leaf).num_values for group in self._groups.tolist())

    def _shared(self, offsets: Int32) -> Int32:
        """Offsets, or the equal ones of a column that was read before."""
        for known in self._offsets:
            if known[-1] == offsets[-1] and np.array_equal(known, offsets):
                return known
        self._offsets.append(offsets)
        return offsets

    def topic_indexes(self, names: tuple[str, ...]) -> Int32:
        """The topic column as indexes into ``names``. -1 for an unknown name."""
        index = {name: number for number, name in enumerate(names)}
        indexes, count, dictionary = np.empty(self.row_count, np.int32), 0, None
        for chunk in self._checked_chunks("topic", unknown=False):
            if dictionary is None or not chunk.dictionary.equals(dictionary):
                dictionary = chunk.dictionary
                topic_of_entry = np.array([*(index.get(name, -1) for name in dictionary.to_pylist()), -1], np.int32)
            entries = _int32_view(chunk.indices)  # any number where the name is null
            np.take(topic_of_entry, entries, out=indexes[count : count + len(chunk)], mode="clip")
            count += len(chunk)
        return indexes

    def _check_shape(self, file: Any, rows: int, entries: int) -> None:
        expected, actual = (kraft_schemas() if self.kraft else schemas())[self._table], file.schema_arrow
        self.has_observers = self._table == "partitions" and OBSERVERS in actual.names
        if self.has_observers:
            expected = expected.append(arrow().field(OBSERVERS, expected.field("replicas").type))
        if actual.names != expected.names or any(
            _value_type(field.type) != expected_field.type
            for field, expected_field in zip(actual, expected, strict=True)
        ):
            shapes = [
                ", ".join(f"{field.name} {_value_type(field.type)}" for field in schema)
                for schema in (actual, expected)
            ]
            raise SnapshotError(f"{self.path} schema", shapes[0], shapes[1])
        if file.metadata.num_rows != rows:
            raise SnapshotError(str(self.path), counted(file.metadata.num_rows, "row"), f"the manifest's {rows:,}")
        self.all_rows = rows
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        for leaf in range(file.metadata.num_columns):
            declared = sum(group.column(leaf).num_values for group in groups)
            limit = min(rows + entries, INT32_MAX)
            if declared > limit:
                raise SnapshotError(
                    str(self.path), f"{counted(declared, 'entry', 'entries')} in a column", f"at most {limit}"
                )


def read_brokers(file: TableFile) -> tuple[BrokerFacts, ...]:
    """The broker table, ids ascending. Raises SnapshotError."""
    columns = [file.rows(name) for name in ("broker_id", "registered", "broker_epoch", "rack", "endpoints")]
    brokers: list[BrokerFacts] = []
    for row, (broker_id, registered, broker_epoch, rack, endpoints) in enumerate(zip(*columns, strict=True)):
        where = f"{file.path} row {row}"
        if broker_id is None or broker_id < 0:
            raise SnapshotError(f"{where} field broker_id", str(broker_id), f"0 to {INT32_MAX}")
        if brokers and broker_id <= brokers[-1].broker_id:
            actual = f"{broker_id} after {brokers[-1].broker_id}"
            raise SnapshotError(f"{where} field broker_id", actual, "ascending ids, each once")
        if broker_epoch is not None and broker_epoch < 0:
            raise SnapshotError(f"{where} field broker_epoch", str(broker_epoch), "0 or more")
        known = (
            None
            if endpoints is None
            else tuple(_endpoint(endpoint, f"{where} field endpoints") for endpoint in endpoints)
        )
        brokers.append(BrokerFacts(broker_id, registered, broker_epoch, known, rack))
    return tuple(brokers)


def read_directories(file: TableFile, replicas: Ragged, ids: int) -> Ragged | None:
    """The directory of each replica, below ``ids``; None if unknown. Raises SnapshotError."""
    directories = file.known_lists("directories") if file.kraft else None
    return None if directories is None else checked_directories(directories, replicas, ids, str(file.path))


def checked_directories(directories: Ragged, replicas: Ragged, ids: int, where: str) -> Ragged:
    """The directories, which share the offsets of the replicas. Raises SnapshotError for lists of other lengths, and
    for positions that are not below ``ids``."""
    if not np.array_equal(directories.offsets, replicas.offsets):
        raise SnapshotError(f"{where} field directories", "lists of other lengths", "one directory a replica")
    if len(directories.values) and not 0 <= int(directories.values.min()) <= int(directories.values.max()) < ids:
        actual = f"{int(directories.values.min())} to {int(directories.values.max())}"
        raise SnapshotError(f"{where} field directories", actual, f"positions in {ids} directory_ids")
    return Ragged(replicas.offsets, directories.values)


def read_topics(file: TableFile) -> TopicFacts:
    """The topic table, names ascending. Raises SnapshotError."""
    names, counts = file.rows("topic"), file.rows("partition_count")
    are_names = None not in names and are_topic_names(names)
    for row, (name, count) in enumerate(zip(names, counts, strict=True)):
        if not are_names:
            check_topic_name(name or "", f"{file.path} row {row} field topic")
        if row and name <= names[row - 1]:
            actual = f"{name} after {names[row - 1]}"
            raise SnapshotError(f"{file.path} row {row} field topic", actual, "ascending names, each once")
        if count is None or count < 0:
            raise SnapshotError(f"{file.path} row {row} field partition_count", str(count), "0 or more")
    deleting = file.known_arrays("deleting")
    return TopicFacts(
        tuple(names),
        np.array(counts, np.int32),
        _topic_ids(file),
        None if deleting is None else np.array([flag for chunk in deleting for flag in chunk.to_pylist()], np.uint8),
        _configs(file),
    )


def read_partitions(file: TableFile, topics: TopicFacts) -> PartitionFacts:
    """The partition rows that were read; the topic table implies their order. Raises SnapshotError."""
    _check_order(file, topics)
    replicas = file.lists("replicas")
    numbers = {name: file.known_numbers(name) for name in NUMBER_COLUMNS}
    lists = {name: file.known_lists(name) for name in LIST_COLUMNS}
    if (numbers["leader"] is None) != (lists["isr"] is None):
        raise SnapshotError(f"{file.path} field isr", "leader or isr alone", "both or neither")
    observers = file.lists(OBSERVERS) if file.has_observers else None
    return PartitionFacts(replicas, **numbers, **lists, observers=observers)  # type: ignore[arg-type]


def _check_order(file: TableFile, topics: TopicFacts) -> None:
    """Raise SnapshotError unless the rows that are read are those that the topic table implies."""
    topic, partition = file.topic_indexes(topics.names), file.numbers("partition")
    expected_topic, expected_partition = topics.topic_of_rows(), topics.partition_of_rows()
    if file.all_rows != len(expected_topic):
        raise SnapshotError(
            str(file.path), counted(file.all_rows, "partition"), f"the topic table's {len(expected_topic):,}"
        )
    if file.row_count < file.all_rows:
        expected_topic, expected_partition = expected_topic[file.positions], expected_partition[file.positions]
    wrong = (topic != expected_topic) | (partition != expected_partition)
    if wrong.any():
        index = int(np.argmax(wrong))
        row = int(file.positions[index])
        name = topics.names[topic[index]] if topic[index] >= 0 else "(not in the topic table)"
        actual = f"topic {name} partition {partition[index]}"
        raise SnapshotError(f"{file.path} row {row}", actual, f"{topics.name_of_row(row)} ({_ORDER})")


def _int32_view(array: Any) -> Int32:
    """An Arrow array of int32 without nulls, not copied. ``Array.to_numpy`` imports pandas, which takes longer."""
    values = array.buffers()[1]
    return np.empty(0, np.int32) if values is None else np.frombuffer(values, np.int32, len(array), 4 * array.offset)


def _value_type(kind: Any) -> Any:
    """The value type of a dictionary type, or the type itself."""
    return kind.value_type if arrow().types.is_dictionary(kind) else kind


def _endpoint(record: dict[str, Any] | None, where: str) -> Endpoint:
    fields: list[Any] = [None if record is None else record[name] for name in ENDPOINT_FIELDS]
    if None in fields:
        raise SnapshotError(where, short_repr(record), f"all of {', '.join(ENDPOINT_FIELDS)}")
    endpoint = Endpoint(*fields)
    if not -1 <= endpoint.port <= PORT_MAX:
        raise SnapshotError(f"{where} port", str(endpoint.port), f"at most {PORT_MAX}")
    return endpoint


def _topic_ids(file: TableFile) -> UInt8 | None:
    arrays = file.known_arrays("topic_id", nullable=True)
    if arrays is None:
        return None
    texts = [text for chunk in arrays for text in chunk.to_pylist()]
    for row, text in enumerate(texts):
        if text is not None and not is_kafka_uuid(text):  # Naming the row of each text would take longer.
            check_topic_id(text, f"{file.path} row {row} field topic_id")
    ids = np.zeros((len(texts), 16), np.uint8)
    named = [row for row, text in enumerate(texts) if text is not None]
    ids[named] = topic_ids_of("".join(texts[row] for row in named))
    return ids


def _configs(file: TableFile) -> dict[int, dict[str, str]] | None:
    arrays = file.known_arrays("configs")
    if arrays is None:
        return None
    configs: dict[int, dict[str, str]] = {}
    first = 0
    for chunk in arrays:
        # Most topics have no settings: converting only the others takes a fraction of the time.
        for index in np.flatnonzero(np.diff(_int32_view(chunk.offsets))).tolist():
            pairs, row = chunk[index].as_py(), first + index
            if any(value is None for _, value in pairs) or len(dict(pairs)) != len(pairs):
                where = f"{file.path} row {row} field configs"
                raise SnapshotError(where, short_repr(pairs), "different names, each with a value")
            configs[row] = dict(pairs)
        first += len(chunk)
    return configs
