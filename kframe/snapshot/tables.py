"""The tables of a snapshot as Arrow, column for column: the schema of the Parquet files, written down once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.brokers import Endpoint
from kframe.model.columns import Int32, Ragged
from kframe.snapshot.checks import check_topic_name
from kframe.snapshot.decode import topic_id_bytes, topic_id_text
from kframe.snapshot.facts import LIST_COLUMNS, NUMBER_COLUMNS, BrokerFacts, PartitionFacts, TopicFacts

_ENDPOINT_FIELDS: Final = ("listener", "host", "port", "security_protocol")


def arrow() -> Any:
    """The pyarrow module. Raises SnapshotError where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise SnapshotError("pyarrow", "no such module", "kframe-controller[arrow] to be installed") from None
    return pyarrow


def schemas() -> dict[str, Any]:
    """The Arrow schema of each table, by its name."""
    pa = arrow()
    int32, text, lists = pa.int32(), pa.string(), pa.list_(pa.int32())
    endpoint = pa.struct([(name, int32 if name == "port" else text) for name in _ENDPOINT_FIELDS])
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


def partitions_table(topics: TopicFacts, partitions: PartitionFacts, first: int, last: int) -> Any:
    """Rows ``first .. last`` of the partition table as an Arrow table; no copy is made of a number column."""
    pa = arrow()
    rows = slice(first, last)
    names = pa.DictionaryArray.from_arrays(topics.topic_of_rows()[rows], pa.array(topics.names, pa.string()))
    columns: dict[str, Any] = {"topic": names, "partition": topics.partition_of_rows()[rows]}
    columns["replicas"] = _list_array(partitions.replicas, first, last)
    for name, numbers in partitions.numbers().items():
        columns[name] = pa.nulls(last - first, pa.int32()) if numbers is None else pa.array(numbers[rows], pa.int32())
    for name, lists in partitions.lists().items():
        absent = lists is None
        columns[name] = pa.nulls(last - first, pa.list_(pa.int32())) if absent else _list_array(lists, first, last)
    return pa.table(columns)
