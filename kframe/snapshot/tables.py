"""The tables of a snapshot as Arrow, column for column: the schema of the Parquet files, written down once."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from kframe.errors import SnapshotError, pip_command
from kframe.model.arrays import Ragged
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.records import MetadataRecord
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.facts import LIST_COLUMNS, NUMBER_COLUMNS, BrokerFacts, PartitionFacts, TopicFacts

#: The last column of partitions, which only clusters with observers have.
OBSERVERS: Final = "observers"
ENDPOINT_FIELDS: Final = ("listener", "host", "port", "security_protocol")


def arrow() -> Any:
    """The pyarrow module. Raises SnapshotError where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise SnapshotError("pyarrow", "no such module", f"the package: {pip_command('arrow')}") from None
    return pyarrow


def kraft_schemas() -> dict[str, Any]:
    """The Arrow schema of each table of a KRaft cluster: the columns of ``schemas``, and those that KRaft adds."""
    pa = arrow()
    int16, text = pa.int16(), pa.string()
    feature = pa.struct([("name", text), ("min_supported_version", int16), ("max_supported_version", int16)])
    added = {
        "partitions": [("directories", pa.list_(pa.int32()))],
        "brokers": [
            ("fenced", pa.bool_()),
            ("in_controlled_shutdown", pa.bool_()),
            ("incarnation_id", text),
            ("log_dirs", pa.list_(text)),
            ("cordoned_log_dirs", pa.list_(text)),
            ("features", pa.list_(feature)),
            ("is_migrating_zk_broker", pa.bool_()),
            ("offset", pa.int64()),
        ],
        "topics": [],
    }
    tables = {
        name: pa.schema([*schema, *(pa.field(*field) for field in added[name])]) for name, schema in schemas().items()
    }
    return {**tables, "records": pa.schema([("type", pa.int32()), ("record", text)])}


def schemas() -> dict[str, Any]:
    """The Arrow schema of each table, by the table's name. Columns whose values can be unknown are nullable."""
    pa = arrow()
    int32, text, lists = pa.int32(), pa.string(), pa.list_(pa.int32())
    endpoint = pa.struct([(name, int32 if name == "port" else text) for name in ENDPOINT_FIELDS])
    return {
        "partitions": pa.schema(
            [("topic", text), ("partition", int32), ("replicas", lists)]
            + [(name, int32) for name in NUMBER_COLUMNS]
            + [(name, lists) for name in LIST_COLUMNS]
        ),
        "brokers": pa.schema(
            [
                ("broker_id", int32),
                ("registered", pa.bool_()),
                ("broker_epoch", pa.int64()),
                ("rack", text),
                ("endpoints", pa.list_(endpoint)),
            ]
        ),
        "topics": pa.schema(
            [
                ("topic", text),
                ("partition_count", int32),
                ("topic_id", text),
                ("deleting", pa.bool_()),
                ("configs", pa.map_(text, text)),
            ]
        ),
    }


def partitions_table(
    topics: TopicFacts,
    partitions: PartitionFacts,
    positions: NDArray[np.int64] | slice = slice(None),
    *,
    kraft: bool = False,
) -> Any:
    """The partition table, topic names as a dictionary; columns and lists are not copied.

    ``partitions`` may be some of the rows that ``topics`` count: those at ``positions``. ``kraft`` adds the columns of
    ``kraft_schemas``. A cluster with observers has the column OBSERVERS, which no other has.
    """
    pa = arrow()
    owners = pa.array(topics.topic_of_rows()[positions])
    names = pa.DictionaryArray.from_arrays(owners, pa.array(topics.names, pa.string()))
    columns: dict[str, Any] = {"topic": names, "partition": pa.array(topics.partition_of_rows()[positions])}
    columns["replicas"] = _list_array(partitions.replicas)
    for name, numbers in partitions.numbers().items():
        columns[name] = pa.nulls(len(partitions), pa.int32()) if numbers is None else pa.array(numbers, pa.int32())
    added = {"directories": partitions.directories} if kraft else {}
    for name, lists in {**partitions.lists(), **added}.items():
        columns[name] = pa.nulls(len(partitions), pa.list_(pa.int32())) if lists is None else _list_array(lists)
    if partitions.observers is not None:
        columns[OBSERVERS] = _list_array(partitions.observers)
    return pa.table(columns)


def brokers_table(brokers: tuple[BrokerFacts, ...]) -> Any:
    """The broker table."""
    endpoints = [
        None if facts.endpoints is None else [{f: getattr(e, f) for f in ENDPOINT_FIELDS} for e in facts.endpoints]
        for facts in brokers
    ]
    names = ("broker_id", "registered", "broker_epoch", "rack")
    columns = {name: [getattr(facts, name) for facts in brokers] for name in names}
    return arrow().table({**columns, "endpoints": endpoints}, schema=schemas()["brokers"])


def kraft_brokers_table(brokers: tuple[BrokerFacts, ...]) -> Any:
    """The broker table of a KRaft cluster; the columns that KRaft adds are null where no registration is known."""
    table, rows = brokers_table(brokers), [_registration_row(facts.registration) for facts in brokers]
    for field in list(kraft_schemas()["brokers"])[table.num_columns :]:
        values = [None if row is None else row[field.name] for row in rows]
        table = table.append_column(field, arrow().array(values, field.type))
    return table


def _registration_row(registration: BrokerRegistration | None) -> dict[str, Any] | None:
    if registration is None:
        return None
    row: dict[str, Any] = msgspec.to_builtins(registration)
    return {**row, "log_dirs": row["directories"], "cordoned_log_dirs": row["cordoned"]}


def records_table(records: tuple[MetadataRecord, ...]) -> Any:
    """Further metadata of a KRaft cluster: type and JSON of each record."""
    texts = [msgspec.json.encode(record).decode() for record in records]
    columns = {"type": [record.api_key for record in records], "record": texts}
    return arrow().table(columns, schema=kraft_schemas()["records"])


def topics_table(topics: TopicFacts) -> Any:
    """The topic table; a topic without an id has a null one."""
    count = len(topics)
    ids: list[str | None] = [None] * count
    if topics.topic_ids is not None:
        ids = [topic_id_text(topic_id.tobytes()) if topic_id.any() else None for topic_id in topics.topic_ids]
    configs: list[list[tuple[str, str]] | None] = [None] * count
    if topics.configs is not None:
        configs = [sorted(topics.configs.get(index, {}).items()) for index in range(count)]
    deleting = [None] * count if topics.deleting is None else topics.deleting.astype(bool).tolist()
    columns = {
        "topic": list(topics.names),
        "partition_count": topics.partition_counts,
        "topic_id": ids,
        "deleting": deleting,
        "configs": configs,
    }
    return arrow().table(columns, schema=schemas()["topics"])


def _list_array(lists: Ragged) -> Any:
    pa = arrow()
    return pa.ListArray.from_arrays(pa.array(lists.offsets, pa.int32()), pa.array(lists.values, pa.int32()))
