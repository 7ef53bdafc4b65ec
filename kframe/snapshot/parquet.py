"""Read the Parquet files of a snapshot directory. Neither their schema nor their content is trusted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import SnapshotError
from kframe.model.brokers import Endpoint
from kframe.model.columns import Int32, Ragged, UInt8, ragged_positions
from kframe.snapshot.checks import INT32_MAX, check_topic_name
from kframe.snapshot.decode import shown, topic_id_bytes
from kframe.snapshot.facts import LIST_COLUMNS, NUMBER_COLUMNS, BrokerFacts, PartitionFacts, TopicFacts
from kframe.snapshot.tables import ENDPOINT_FIELDS, arrow, kraft_schemas, schemas

PORT_MAX: Final = 65_535

_ORDER: Final = "rows sorted by topic and partition, each partition from 0 to the topic's partition_count once"


class TableFile:
    """One Parquet file, checked against its schema. ``rows`` and ``entries`` are counts of the manifest.

    ``entries`` bounds the length of a list column: a file that declares more is refused before it is decoded. Only
    the row groups ``groups`` (ascending) are read if these are given. ``kraft``: the table has the columns of
    ``kraft_schemas``. Columns are read and released one by one, because
    a decoded table takes several times the memory of the arrays that are made from it.
    """

    def __init__(
        self, path: Path, table: str, rows: int, entries: int, unknown: frozenset[str],
        groups: Sequence[int] | None = None, *, kraft: bool = False,
    ) -> None:  # fmt: skip
        self.path = path
        self.kraft = kraft
        self._table, self._unknown = table, unknown
        self._columns: dict[str, Any] = {}
        arrow()
        from pyarrow import parquet

        with self._refusing_malformed_parquet():
            self._file = parquet.ParquetFile(path, read_dictionary=["topic"] if table == "partitions" else None)
            self._check_shape(self._file, rows, entries)
            metadata = self._file.metadata
            self._groups = list(range(metadata.num_row_groups) if groups is None else groups)
            self.positions = _positions(metadata, self._groups)

    @contextlib.contextmanager
    def _refusing_malformed_parquet(self) -> Iterator[None]:
        try:
            yield
        except (arrow().ArrowException, OSError, UnicodeDecodeError) as problem:
            raise SnapshotError(
                str(self.path), f"no readable Parquet ({problem})", f"the {self._table} table"
            ) from problem

    def _column(self, name: str) -> Any:
        """A validated column, which stays in memory until ``_take`` returns it."""
        if name not in self._columns:
            with self._refusing_malformed_parquet():
                table = self._file.read_row_groups(self._groups, columns=[name], use_threads=False)
                table.validate(full=True)
            self._columns[name] = table[name]
        return self._columns[name]

    def _take(self, name: str) -> Any:
        """A column in a single chunk. The next call reads it again."""
        column = self._column(name)
        del self._columns[name]
        return column.combine_chunks()

    def knows(self, column: str) -> bool:
        """Whether a column has values, which are all null or all not null, as the manifest says."""
        nulls, rows = self._column(column).null_count, len(self.positions)
        unknown = f"{self._table}.{column}" in self._unknown
        if nulls != (rows if unknown else 0):
            expected = "all null (the manifest calls it unknown)" if unknown else "none"
            raise SnapshotError(f"{self.path} field {column}", f"{nulls} nulls in {rows} rows", expected)
        return not unknown

    def may_know(self, column: str) -> bool:
        """As ``knows``, for a column in which a null is a valid value."""
        return f"{self._table}.{column}" not in self._unknown or self.knows(column)

    def rows(self, column: str) -> list[Any]:
        """A column of a small table as Python values."""
        values: list[Any] = self._column(column).to_pylist()
        return values

    def numbers(self, column: str) -> Int32:
        """An int32 column that has no nulls."""
        return _int32_view(self._take(column))

    def lists(self, column: str) -> Ragged:
        """A column of lists of int32, none of them and nothing in them null."""
        lists = self._take(column)
        values = lists.flatten()
        if values.null_count:
            raise SnapshotError(f"{self.path} field {column}", "null inside a list", "broker ids")
        offsets = _int32_view(lists.offsets)
        return Ragged(offsets - offsets[0], _int32_view(values))

    def topic_indexes(self, names: tuple[str, ...]) -> Int32:
        """The topic column as indexes into ``names``. -1 for an unknown name."""
        if not len(self.positions):
            return np.empty(0, np.int32)
        column = self._take("topic")
        index = {name: number for number, name in enumerate(names)}
        topic_of_entry = np.array([index.get(name, -1) for name in column.dictionary.to_pylist()], np.int32)
        indexes: Int32 = topic_of_entry[_int32_view(column.indices)]
        return indexes

    def _check_shape(self, file: Any, rows: int, entries: int) -> None:
        expected, actual = (kraft_schemas() if self.kraft else schemas())[self._table], file.schema_arrow
        if actual.names != expected.names or any(
            _plain(field.type) != expected_field.type for field, expected_field in zip(actual, expected, strict=True)
        ):
            shapes = [
                ", ".join(f"{field.name} {_plain(field.type)}" for field in schema) for schema in (actual, expected)
            ]
            raise SnapshotError(f"{self.path} schema", shapes[0], shapes[1])
        if file.metadata.num_rows != rows:
            raise SnapshotError(str(self.path), f"{file.metadata.num_rows} rows", f"the manifest's {rows}")
        self.all_rows = rows
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        for leaf in range(file.metadata.num_columns):
            declared = sum(group.column(leaf).num_values for group in groups)
            if declared > rows + entries:
                raise SnapshotError(str(self.path), f"{declared} entries in a column", f"at most {rows + entries}")


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
    if not file.kraft or not file.knows("directories"):
        return None
    return checked_directories(file.lists("directories"), replicas, ids, str(file.path))


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
    for row, (name, count) in enumerate(zip(names, counts, strict=True)):
        check_topic_name(name or "", f"{file.path} row {row} field topic")
        if row and name <= names[row - 1]:
            actual = f"{name} after {names[row - 1]}"
            raise SnapshotError(f"{file.path} row {row} field topic", actual, "ascending names, each once")
        if count is None or count < 0:
            raise SnapshotError(f"{file.path} row {row} field partition_count", str(count), "0 or more")
    return TopicFacts(
        tuple(names),
        np.array(counts, np.int32),
        _topic_ids(file) if file.may_know("topic_id") else None,
        np.array(file.rows("deleting"), np.uint8) if file.knows("deleting") else None,
        _configs(file) if file.knows("configs") else None,
    )


def read_partitions(file: TableFile, topics: TopicFacts) -> PartitionFacts:
    """The partition rows that were read; the topic table implies their order. Raises SnapshotError."""
    for column in ("topic", "partition", "replicas"):
        file.knows(column)
    expected_topic, expected_partition = topics.topic_of_rows(), topics.partition_of_rows()
    topic, partition, positions = file.topic_indexes(topics.names), file.numbers("partition"), file.positions
    if file.all_rows != len(expected_topic):
        raise SnapshotError(str(file.path), f"{file.all_rows} partitions", f"the topic table's {len(expected_topic)}")
    wrong = (topic != expected_topic[positions]) | (partition != expected_partition[positions])
    if wrong.any():
        index = int(np.argmax(wrong))
        row = int(positions[index])
        name = topics.names[topic[index]] if topic[index] >= 0 else "(not in the topic table)"
        actual = f"topic {name} partition {partition[index]}"
        raise SnapshotError(f"{file.path} row {row}", actual, f"{topics.name_of_row(row)} ({_ORDER})")
    numbers = {name: file.numbers(name) if file.knows(name) else None for name in NUMBER_COLUMNS}
    lists = {name: file.lists(name) if file.knows(name) else None for name in LIST_COLUMNS}
    if (numbers["leader"] is None) != (lists["isr"] is None):
        raise SnapshotError(f"{file.path} field isr", "leader or isr alone", "both or neither")
    return PartitionFacts(
        file.lists("replicas"), numbers["leader"], lists["isr"], numbers["leader_epoch"], numbers["controller_epoch"],
        numbers["zk_version"], numbers["leader_recovery_state"], lists["adding_replicas"], lists["removing_replicas"],
        lists["elr"], lists["last_known_elr"],
    )  # fmt: skip


def _positions(metadata: Any, groups: Sequence[int]) -> NDArray[np.int64]:
    """Numbers in the file of the rows of some groups."""
    counts = np.array([metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)], np.int64)
    chosen = np.array(groups, np.int64)
    return ragged_positions((np.cumsum(counts) - counts)[chosen], counts[chosen])


def _int32_view(array: Any) -> Int32:
    """An Arrow array of int32 without nulls, not copied. ``Array.to_numpy`` imports pandas, which takes longer."""
    values = array.buffers()[1]
    return np.empty(0, np.int32) if values is None else np.frombuffer(values, np.int32, len(array), 4 * array.offset)


def _plain(kind: Any) -> Any:
    """The value type of a dictionary type, or the type itself."""
    return kind.value_type if arrow().types.is_dictionary(kind) else kind


def _endpoint(record: dict[str, Any] | None, where: str) -> Endpoint:
    fields: list[Any] = [None if record is None else record[name] for name in ENDPOINT_FIELDS]
    if None in fields:
        raise SnapshotError(where, shown(record), f"all of {', '.join(ENDPOINT_FIELDS)}")
    endpoint = Endpoint(*fields)
    if not -1 <= endpoint.port <= PORT_MAX:
        raise SnapshotError(f"{where} port", str(endpoint.port), f"at most {PORT_MAX}")
    return endpoint


def _topic_ids(file: TableFile) -> UInt8:
    texts = file.rows("topic_id")
    ids = np.zeros((len(texts), 16), np.uint8)
    for row, text in enumerate(texts):
        if text is not None:
            ids[row] = np.frombuffer(topic_id_bytes(text, f"{file.path} row {row} field topic_id"), np.uint8)
    return ids


def _configs(file: TableFile) -> dict[int, dict[str, str]]:
    configs: dict[int, dict[str, str]] = {}
    for row, pairs in enumerate(file.rows("configs")):
        where = f"{file.path} row {row} field configs"
        if any(value is None for _, value in pairs) or len(dict(pairs)) != len(pairs):
            raise SnapshotError(where, shown(pairs), "different names, each with a value")
        if pairs:
            configs[row] = dict(pairs)
    return configs
