"""Batches of control requests as data: each shard's requests to brokers, and their merge.

Batches for the same cause in the same step, of shards that hold different partitions, are together the batch that
the whole cluster would have caused. It is put together as columns again, so that the real encoder cuts and writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged, UInt8, offsets_of
from kframe.model.lists import distinct_rows, distinct_values
from kframe.model.requests import BatchCause, BrokerRows, ControlRequests
from kframe.spark.part import ClusterFacts
from kframe.spark.schema import to_stream

_INTS: Final = pa.list_(pa.int32())
_BYTES: Final = pa.list_(pa.uint8())
#: One row a batch. Partitions stand once, in columns; ``leading_*``, ``metadata`` and ``stopping_*`` give their places.
#: Brokers are indexes, the same in every shard of a cluster.
_BATCH: Final = pa.schema(
    [("controller_id", pa.int32()), ("controller_epoch", pa.int32()), ("registered", _BYTES), ("shutting_down", _BYTES),
     ("broker_epoch", pa.list_(pa.int64())), ("topics", pa.list_(pa.string())), ("topic_ids", _BYTES),
     ("deleting", _BYTES), ("topic", _INTS), ("partition", _INTS), ("leader", _INTS), ("leader_epoch", _INTS),
     ("controller_epochs", _INTS), ("partition_epoch", _INTS), ("recovery", _BYTES), ("replica_count", _INTS),
     ("replica", _INTS), ("replica_flags", _BYTES), ("isr_count", _INTS), ("isr", _INTS), ("leading_broker", _INTS),
     ("leading", _INTS), ("is_new", _BYTES), ("metadata_brokers", _INTS), ("metadata", _INTS),
     ("stopping_broker", _INTS), ("stopping", _INTS), ("stop_leader_epoch", _INTS), ("stop_delete", _BYTES)]
)  # fmt: skip
#: Row columns of a cluster, by the names that they have here.
_ROW_COLUMNS: Final = {
    "leader": "leader", "leader_epoch": "leader_epoch", "controller_epochs": "controller_epoch",
    "partition_epoch": "partition_epoch", "recovery": "recovery",
}  # fmt: skip


def packed(cluster: ClusterState, requests: ControlRequests) -> bytes:
    """A batch with the content of all partitions that it names. The columns are read now."""
    p, topics = cluster.partitions, cluster.topics
    leading, stopping = requests.leader_and_isr, requests.stop_replica
    rows = distinct_rows(np.concatenate([leading.rows, requests.metadata_rows, stopping.rows]), len(cluster))
    topic_rows, topic = np.unique(p.topic[rows], return_inverse=True)
    replicas, isr = p.lists("replica", rows), p.lists("isr", rows)
    position = np.empty(len(cluster), np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    columns: dict[str, Any] = {
        "controller_id": requests.controller_id, "controller_epoch": requests.controller_epoch,
        "registered": cluster.brokers.registered, "shutting_down": cluster.brokers.shutting_down,
        "broker_epoch": cluster.brokers.broker_epoch, "topics": [topics.names[topic] for topic in topic_rows.tolist()],
        "topic_ids": topics.ids[topic_rows].reshape(-1), "deleting": topics.deleting[topic_rows],
        "topic": topic.astype(np.int32), "partition": p.partition[rows],
        **{name: getattr(p, column)[rows] for name, column in _ROW_COLUMNS.items()},
        "replica_count": replicas.counts, "replica": replicas.values,
        "replica_flags": p.replica_flags[p.slots_of(rows)], "isr_count": isr.counts, "isr": isr.values,
        "leading_broker": np.repeat(leading.brokers, np.diff(leading.offsets)), "leading": position[leading.rows],
        "is_new": requests.is_new, "metadata_brokers": requests.metadata_brokers,
        "metadata": position[requests.metadata_rows],
        "stopping_broker": np.repeat(stopping.brokers, np.diff(stopping.offsets)), "stopping": position[stopping.rows],
        "stop_leader_epoch": requests.stop_leader_epoch, "stop_delete": requests.stop_delete,
    }  # fmt: skip
    batch = pa.RecordBatch.from_arrays(
        [_single_row(columns[field.name], field.type) for field in _BATCH], schema=_BATCH
    )
    return to_stream(batch)


def merged(
    packed_batches: Sequence[bytes], facts: ClusterFacts, cause: BatchCause
) -> tuple[ClusterState, ControlRequests]:
    """The batches of all shards as one batch. The cluster has exactly the rows that the batch names.

    ``packed_batches`` (one at least) are results of ``packed``, of the same cluster and step, in any order.
    """
    batches = [_Batch.of(batch) for batch in packed_batches]
    cluster, position = _cluster_of(batches, facts)
    leading, is_new, _ = _by_broker(batches, position, "leading", "is_new")
    stopping, delete, leader_epoch = _by_broker(batches, position, "stopping", "stop_delete", "stop_leader_epoch")
    first = batches[0]
    requests = ControlRequests(
        controller_id=int(first.scalar("controller_id")),
        controller_epoch=int(first.scalar("controller_epoch")),
        leader_and_isr=leading,
        is_new=is_new,
        metadata_brokers=distinct_values(np.concatenate([batch["metadata_brokers"] for batch in batches])),
        metadata_rows=np.sort(_concatenated(batches, lambda index, batch: position[index][batch["metadata"]])),
        stop_replica=stopping,
        stop_leader_epoch=leader_epoch,
        stop_delete=delete,
        cause=cause,
    )
    return cluster, requests


@dataclass(frozen=True, slots=True)
class _Batch:
    """One packed batch, its columns as arrays."""

    row: pa.RecordBatch

    @staticmethod
    def of(data: bytes) -> _Batch:
        return _Batch(pa.ipc.open_stream(data).read_next_batch())

    def scalar(self, name: str) -> Any:
        return self.row[name][0].as_py()

    def names(self) -> list[str]:
        names: list[str] = self.row["topics"].flatten().to_pylist()
        return names

    def __getitem__(self, name: str) -> NDArray[Any]:
        values: NDArray[Any] = self.row[name].flatten().to_numpy()
        return values


def _single_row(value: Any, kind: pa.DataType) -> pa.Array:
    """A column of one row."""
    if not pa.types.is_list(kind):
        return pa.array([value], kind)
    values = pa.array(value, kind.value_type)
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def _cluster_of(batches: list[_Batch], facts: ClusterFacts) -> tuple[ClusterState, list[Int32]]:
    """A cluster of all partitions in the batches, and the row of each, batch by batch."""
    cluster = ClusterState()
    _add_brokers(cluster, batches[0], facts)
    names_by_batch = [batch.names() for batch in batches]
    names = sorted(set().union(*names_by_batch))
    topic_index = {name: index for index, name in enumerate(names)}
    topics = [np.array([topic_index[name] for name in batch_names], np.int32) for batch_names in names_by_batch]
    ids, deleting = np.zeros((len(names), 16), np.uint8), np.zeros(len(names), np.uint8)
    for indexes, batch in zip(topics, batches, strict=True):
        ids[indexes], deleting[indexes] = batch["topic_ids"].reshape(-1, 16), batch["deleting"]
    topic = _concatenated(batches, lambda index, batch: topics[index][batch["topic"]])
    partition = _concatenated(batches, lambda _, batch: batch["partition"])
    order = np.argsort(topic.astype(np.int64) << 32 | partition, kind="stable")
    replicas = _lists(batches, "replica")
    values = {
        column: _concatenated(batches, lambda _, batch, name=name: batch[name])[order]  # type: ignore[misc]
        for name, column in _ROW_COLUMNS.items()
    }
    rows = cluster.add_topics(
        names, np.bincount(topic, minlength=len(names)), replicas.take(order), _lists(batches, "isr").take(order),
        values, [topic_id.tobytes() for topic_id in ids], partition[order],
    )  # fmt: skip
    flags = Ragged(replicas.offsets, _concatenated(batches, lambda _, batch: batch["replica_flags"]))
    cluster.partitions.replica_flags[cluster.partitions.slots_of(rows)] = flags.take(order).values
    cluster.topics.deleting[:] = deleting
    rows_by_batch = np.empty(len(order), np.int32)
    rows_by_batch[order] = rows
    ends = np.cumsum([len(batch["topic"]) for batch in batches])
    return cluster, np.split(rows_by_batch, ends[:-1])


def _add_brokers(cluster: ClusterState, batch: _Batch, facts: ClusterFacts) -> None:
    brokers, epochs = cluster.brokers, batch["broker_epoch"]
    brokers.index_of([broker.broker_id for broker in facts.brokers])
    brokers.register(
        [Registration(broker.broker_id, int(epochs[index]), broker.endpoints or (), broker.rack)
         for index, broker in enumerate(facts.brokers)]
    )  # fmt: skip
    brokers.registered[:], brokers.shutting_down[:] = batch["registered"], batch["shutting_down"]
    brokers.broker_epoch[:] = epochs


def _by_broker(
    batches: list[_Batch], position: list[Int32], column: str, flag: str, second_column: str | None = None
) -> tuple[BrokerRows, UInt8, Int32]:
    """The pairs of all batches by broker and row. Their other columns follow the same order."""
    broker = _concatenated(batches, lambda _, batch: batch[f"{column}_broker"])
    rows = _concatenated(batches, lambda index, batch: position[index][batch[column]])
    order = np.argsort(broker.astype(np.int64) << 32 | rows, kind="stable")
    brokers, counts = np.unique(broker, return_counts=True)
    flags = _concatenated(batches, lambda _, batch: batch[flag])[order]
    second_values = (
        np.empty(0, np.int32)
        if second_column is None
        else _concatenated(batches, lambda _, batch: batch[second_column])[order]
    )
    return BrokerRows(brokers.astype(np.int32), offsets_of(counts), rows[order]), flags, second_values


def _lists(batches: list[_Batch], column: str) -> Ragged:
    counts = _concatenated(batches, lambda _, batch: batch[f"{column}_count"])
    return Ragged(offsets_of(counts), _concatenated(batches, lambda _, batch: batch[column]))


def _concatenated(batches: list[_Batch], column: Callable[[int, _Batch], NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate([column(index, batch) for index, batch in enumerate(batches)])
