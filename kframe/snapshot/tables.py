"""The tables of a snapshot as Arrow, column for column: the schema of the Parquet files, written down once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import SnapshotError
from kframe.model.columns import Ragged
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.facts import LIST_COLUMNS, NUMBER_COLUMNS, BrokerFacts, PartitionFacts, TopicFacts

ENDPOINT_FIELDS: Final = ("listener", "host", "port", "security_protocol")


def arrow() -> Any:
    """The pyarrow module. Raises SnapshotError where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise SnapshotError("pyarrow", "no such module", "the extra kframe-controller[arrow]") from None
    return pyarrow


def schemas() -> dict[str, Any]:
    """The Arrow schema of each table, by the table's name. Whatever may be unknown is nullable."""
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
            [("broker_id", int32), ("registered", pa.bool_()), ("broker_epoch", pa.int64()), ("rack", text),
             ("endpoints", pa.list_(endpoint))]
        ),
        "topics": pa.schema(
            [("topic", text), ("partition_count", int32), ("topic_id", text), ("deleting", pa.bool_()),
             ("configs", pa.map_(text, text))]
        ),
    }  # fmt: skip


def partitions_table(
    topics: TopicFacts, partitions: PartitionFacts, positions: NDArray[np.int64] | slice = slice(None)
) -> Any:  # fmt: skip
    """The partition table, topic names as a dictionary; columns and lists are not copied.

    ``partitions`` may be some of the rows that ``topics`` count: those at ``positions``.
    """
    pa = arrow()
    owners = pa.array(topics.topic_of_rows()[positions])
    names = pa.DictionaryArray.from_arrays(owners, pa.array(topics.names, pa.string()))
    columns: dict[str, Any] = {"topic": names, "partition": pa.array(topics.partition_of_rows()[positions])}
    columns["replicas"] = _list_array(partitions.replicas)
    for name, numbers in partitions.numbers().items():
        columns[name] = pa.nulls(len(partitions), pa.int32()) if numbers is None else pa.array(numbers, pa.int32())
    for name, lists in partitions.lists().items():
        columns[name] = pa.nulls(len(partitions), pa.list_(pa.int32())) if lists is None else _list_array(lists)
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
