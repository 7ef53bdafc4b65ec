"""A snapshot as rows of a fleet's tables, and whole clusters back from such rows; array passes, no object per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kframe.errors import SnapshotError
from kframe.model.arrays import Ragged, UInt8
from kframe.model.brokers import Endpoint
from kframe.model.texts import counted
from kframe.snapshot import BrokerFacts, KraftFacts, PartitionFacts, Snapshot, Source, TopicFacts
from kframe.snapshot.checks import check_brokers_listed, check_snapshot, check_topic_name
from kframe.snapshot.decode import topic_id_bytes
from kframe.snapshot.facts import NUMBER_COLUMNS
from kframe.snapshot.kraft_tables import with_registration
from kframe.snapshot.parquet import checked_directories
from kframe.snapshot.tables import ENDPOINT_FIELDS, OBSERVERS, kraft_brokers_table, partitions_table, topics_table
from kframe.spark.modes import kraft_columns, rows_in_mode
from kframe.spark.schema import BROKERS, CLUSTERS, INT, INTS, PARTITIONS, TEXT, TOPICS, FleetTable

#: Rows of a batch: some megabytes.
BATCH_ROWS: Final = 65_536


def rows_of(
    snapshot: Snapshot, cluster: str, table: FleetTable, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Batches of at most ``batch_rows`` of one table (PARTITIONS, BROKERS, TOPICS or CLUSTERS), in its schema."""
    if table == PARTITIONS:
        return partition_rows(cluster, snapshot.topics, snapshot.partitions, batch_rows=batch_rows)
    if table == BROKERS:
        return _batches(kraft_brokers_table(snapshot.brokers), cluster, table, batch_rows)
    rows = topics_table(snapshot.topics) if table == TOPICS else _clusters(snapshot)
    return _batches(rows, cluster, table, batch_rows)


def partition_rows(
    cluster: str,
    topics: TopicFacts,
    partitions: PartitionFacts,
    positions: NDArray[np.int64] | slice = slice(None),
    batch_rows: int = BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Batches of PARTITIONS. ``partitions`` may be some of those that ``topics`` count: those at ``positions``."""
    table = partitions_table(topics, partitions, positions, kraft=True)
    if partitions.observers is None:
        table = table.append_column(OBSERVERS, pa.nulls(len(partitions), INTS))
    owner = pa.array(topics.topic_of_rows()[positions])
    for name, column in topic_columns(topics).items():
        table = table.append_column(name, column.take(owner))
    yield from _batches(table, cluster, PARTITIONS, batch_rows)


def _batches(whole: pa.Table, cluster: str, table: FleetTable, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for batch in whole.to_batches(max_chunksize=batch_rows):
        name = pa.repeat(pa.scalar(cluster, TEXT), batch.num_rows)
        columns = [name if field.name == "cluster" else batch[field.name].cast(field.type) for field in table.schema]
        yield pa.RecordBatch.from_arrays(columns, schema=table.schema)


def topic_columns(topics: TopicFacts) -> dict[str, pa.Array]:
    """What PARTITIONS says of topics beyond their names, a row a topic."""
    table = topics_table(topics)
    known = topics.configs is not None
    unclean: list[bool | None] = [None] * len(topics)
    min_insync: list[int | None] = [None] * len(topics)
    for index in topics.configs or {}:
        unclean[index], min_insync[index] = topics.unclean(index), topics.min_insync(index)
    return {
        "topic_id": table["topic_id"].combine_chunks(),
        "deleting": table["deleting"].combine_chunks(),
        "configs_known": pa.array([known] * len(topics), pa.bool_()),
        "unclean": pa.array(unclean, pa.bool_()),
        "min_insync_replicas": pa.array(min_insync, INT),
    }


def snapshot_of(partitions: pa.Table, brokers: pa.Table, topics: pa.Table, clusters: pa.Table) -> Snapshot:
    """One cluster from all its rows. The rows may be in any order. ``clusters`` has one row.

    Raises SnapshotError, which names the cluster, for a missing or repeated partition, a column that only some rows
    have, a null in a list, or a fact that contradicts another.
    """
    if clusters.num_rows != 1:
        raise SnapshotError("table clusters", f"{clusters.num_rows} rows", "one row of the cluster")
    (facts_row,) = clusters.to_pylist()
    where = f"cluster {facts_row['cluster']}"
    topic_facts = _topic_facts(topics, where)
    ordered = _ordered(partitions, topic_facts, where)
    in_mode = rows_in_mode(facts_row)
    kraft = in_mode.facts()
    in_mode.check(ordered, where)
    facts = partition_facts(ordered, where, in_mode.lists)
    if facts.directories is not None:
        ids = len((kraft or KraftFacts()).directory_ids)
        facts = replace(facts, directories=checked_directories(facts.directories, facts.replicas, ids, where))
    defaults = configs_of(facts_row["broker_default_configs"], f"{where} field broker_default_configs")
    snapshot = Snapshot(
        _brokers(brokers, where),
        topic_facts,
        facts,
        Source(facts_row["source_format"] or "cluster", facts_row["source_name"] or ""),
        facts_row["cluster_id"],
        facts_row["controller_id"],
        facts_row["controller_epoch"],
        defaults,
        dict(facts_row["provenance"] or ()),
        kraft=kraft,
        controllers=tuple(facts_row.get("controllers") or ()),
    )

    def locate(kind: str, index: int, column: str) -> str:
        name = topic_facts.names[index] if kind == "topic" else topic_facts.name_of_row(index)
        return f"{where} {name} field {column}"

    check_snapshot(snapshot, locate)
    check_brokers_listed(snapshot, where)
    return snapshot


def _brokers(table: pa.Table, where: str) -> tuple[BrokerFacts, ...]:
    brokers = tuple(broker_facts(row, where) for row in table.sort_by("broker_id").to_pylist())
    for facts, after in pairwise(brokers):
        if facts.broker_id == after.broker_id:
            raise SnapshotError(f"{where} table brokers", f"broker {facts.broker_id} twice", "each broker once")
    return brokers


def check_keys(partitions: pa.Table, where: str) -> None:
    """Raise SnapshotError for a partition of no topic, or without a number."""
    for name in ("topic", "partition"):
        if partitions[name].null_count:
            raise SnapshotError(f"{where} table partitions field {name}", "null", "a value in every row")


def partition_facts(rows: pa.Table, where: str, lists_of_mode: Iterable[str]) -> PartitionFacts:
    """The columns of PARTITIONS as facts, row for row; a column of nulls is unknown. ``lists_of_mode`` as of
    ``ZookeeperRows.lists``.

    Raises SnapshotError for a column that is null in some rows only.
    """
    numbers = {name: _known(rows, name, where) for name in NUMBER_COLUMNS}
    lists = {name: _known(rows, name, where) for name in (*lists_of_mode, OBSERVERS)}
    replicas = _known(rows, "replicas", where)
    if replicas is None:
        replicas = pa.array([[]] * rows.num_rows, INTS)
    columns: dict[str, Any] = {name: None if column is None else column.to_numpy() for name, column in numbers.items()}
    columns |= {name: None if column is None else ragged(column) for name, column in lists.items()}
    return PartitionFacts(ragged(replicas), **columns)


def ragged(lists: Any) -> Ragged:
    """An Arrow array of lists of int32 without nulls as offsets and values, without a copy where it begins at 0."""
    offsets = lists.offsets.to_numpy()
    return Ragged(offsets - offsets[0], lists.flatten().to_numpy(zero_copy_only=False))


def _clusters(snapshot: Snapshot) -> pa.Table:
    row = {
        "cluster_id": snapshot.cluster_id,
        "controller_id": snapshot.controller_id,
        "controller_epoch": highest_controller_epoch(snapshot),
        "source_format": snapshot.source.format,
        "broker_default_configs": _pairs(snapshot.broker_default_configs),
        "source_name": snapshot.source.name,
        "partitions": len(snapshot),
        "topics": len(snapshot.topics),
        "brokers": len(snapshot.brokers),
        "provenance": _pairs(snapshot.provenance),
        "mode": snapshot.mode,
        **kraft_columns(snapshot),
        "controllers": list(snapshot.controllers),
    }
    schema = pa.schema([field for field in CLUSTERS.schema if field.name != "cluster"])
    return pa.Table.from_pylist([row], schema=schema)


def highest_controller_epoch(snapshot: Snapshot) -> int | None:
    """The highest that the controller or a partition names: under which a controller that goes on here would write."""
    epochs = snapshot.partitions.controller_epoch
    highest = -1 if epochs is None else int(epochs.max(initial=-1))
    known = max(highest, -1 if snapshot.controller_epoch is None else snapshot.controller_epoch)
    return None if known < 0 else known


def _pairs(mapping: Mapping[str, str] | None) -> list[tuple[str, str]] | None:
    return None if mapping is None else sorted(mapping.items())


def _topic_facts(table: pa.Table, where: str) -> TopicFacts:
    table = table.sort_by("topic")
    names, counts = table["topic"].to_pylist(), table["partition_count"]
    for name in names:
        check_topic_name(name or "", f"{where} table topics")
    for name, after in pairwise(names):
        if name == after:
            raise SnapshotError(f"{where} table topics", f"topic {name} again", "each topic once")
    if counts.null_count:
        raise SnapshotError(f"{where} table topics field partition_count", "null", "0 or more")
    deleting, configs = _known(table, "deleting", where), _known(table, "configs", where)
    return TopicFacts(
        tuple(names),
        counts.to_numpy().astype(np.int32),
        topic_ids(table["topic_id"].to_pylist(), where) if table["topic_id"].null_count < len(names) else None,
        None if deleting is None else deleting.to_numpy(zero_copy_only=False).astype(np.uint8),
        None
        if configs is None
        else {
            index: configs_of(config, f"{where} topic {names[index]} field configs") or {}
            for index, config in enumerate(configs.to_pylist())
            if config
        },
    )


def configs_of(pairs: Iterable[tuple[str, str | None]] | None, where: str) -> dict[str, str] | None:
    """A column of settings as a dictionary; None if they are unknown. Raises SnapshotError for a null value."""
    if pairs is None:
        return None
    configs = dict(pairs)
    for key, value in configs.items():
        if value is None:
            raise SnapshotError(where, f"a null value of {key}", "a value of each setting")
    return cast("dict[str, str]", configs)


def topic_ids(texts: Iterable[str | None], where: str) -> UInt8:
    """Topic ids (t, 16) from their texts, zeros for none. Raises SnapshotError for what is none."""
    ids = [bytes(16) if text is None else topic_id_bytes(text, f"{where} field topic_id") for text in texts]
    return np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16)


def _ordered(partitions: pa.Table, topics: TopicFacts, where: str) -> pa.Table:
    """The rows topic by topic from partition 0. Raises SnapshotError unless each is there once."""
    topic_index = pc.index_in(partitions["topic"], pa.array(topics.names, TEXT)).fill_null(-1).to_numpy()
    number = partitions["partition"].fill_null(-1).to_numpy()
    order = np.lexsort((number, topic_index))
    where = f"{where} table partitions"
    expected = f"the {int(topics.partition_counts.sum())} that the topics table counts, each once"
    if len(order) != topics.partition_counts.sum():
        raise SnapshotError(where, counted(len(order), "partition"), expected)
    wrong = (topic_index[order] != topics.topic_of_rows()) | (number[order] != topics.partition_of_rows())
    if wrong.any():
        row = int(order[int(np.argmax(wrong))])
        raise SnapshotError(where, f"{partitions['topic'][row]}-{number[row]} out of turn", expected)
    return partitions.take(pa.array(order))


def _known(table: pa.Table, name: str, where: str) -> Any:
    """A column in one piece, or None if all of it is null. Raises SnapshotError for other nulls, also in its lists."""
    column = table[name].combine_chunks()
    if column.null_count and column.null_count == len(column):
        return None
    if column.null_count:
        raise SnapshotError(
            f"{where} field {name}",
            f"{counted(column.null_count, 'null')} in {counted(len(column), 'row')}",
            "all or none",
        )
    if pa.types.is_list(column.type) and (nulls := column.flatten().null_count):
        raise SnapshotError(f"{where} field {name}", f"{counted(nulls, 'null')} in lists", "lists without nulls")
    return column


def broker_facts(row: dict[str, Any], where: str) -> BrokerFacts:
    """One row of BROKERS. Raises SnapshotError for an id that is none, a part of an endpoint or of a registration."""
    if row["broker_id"] is None or row["broker_id"] < 0:
        raise SnapshotError(f"{where} table brokers field broker_id", str(row["broker_id"]), "0 or more")
    where = f"{where} table brokers broker {row['broker_id']}"
    endpoints = None if row["endpoints"] is None else tuple(_endpoint(fields, where) for fields in row["endpoints"])
    facts = BrokerFacts(row["broker_id"], row["registered"], row["broker_epoch"], endpoints, row["rack"])
    return with_registration(facts, row, where)


def _endpoint(fields: Mapping[str, Any] | None, where: str) -> Endpoint:
    if fields is None or None in fields.values():
        raise SnapshotError(f"{where} field endpoints", "a null in them", ", ".join(ENDPOINT_FIELDS))
    return Endpoint(*(fields[name] for name in ENDPOINT_FIELDS))


def table_of(batches: Iterable[pa.RecordBatch], table: FleetTable) -> pa.Table:
    """Batches of a table as one, which may be empty."""
    return pa.Table.from_batches(list(batches), table.schema)
