"""A snapshot as plain rows for people and programs, a partition at a time. Never used in a bulk path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

import numpy as np
from msgspec.structs import asdict

from kframe.model.arrays import Bool, Int64, Ragged
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.levels import level_name
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.facts import ELR_COLUMNS, KraftFacts
from kframe.snapshot.row_types import SnapshotBroker, SnapshotPartition, SnapshotTopic
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.summary import Conditions, Loads, Summary, conditions_of, loads_of, summarize

_PAGE_ROWS: Final = 4_096
_BROKER_COLUMNS: Final = SnapshotBroker.__struct_fields__
#: Columns of brokers that only KRaft clusters have.
KRAFT_BROKER_COLUMNS: Final = _BROKER_COLUMNS[_BROKER_COLUMNS.index("fenced") :]
_PARTITION_COLUMNS: Final = (
    "topic",
    "partition",
    "leader",
    "replicas",
    "isr",
    "observers",
    "leader_epoch",
    "adding_replicas",
    "removing_replicas",
    "controller_epoch",
    "partition_epoch",
    "leader_recovery_state",
    *ELR_COLUMNS,
    "directories",
)


def columns_of(snapshot: Snapshot, listed: str) -> tuple[list[str], frozenset[str]]:
    """The columns of a list of ``brokers``, ``topics`` or ``partitions`` in the order of tables, and those of them
    without a value in the mode of the cluster."""
    columns = {
        "brokers": _BROKER_COLUMNS,
        "topics": SnapshotTopic.__struct_fields__,
        "partitions": _PARTITION_COLUMNS,
    }[listed]
    absent = set() if snapshot.is_kraft else {*KRAFT_BROKER_COLUMNS, "directories"}
    if snapshot.partitions.observers is None:
        absent.add("observers")
    return [name for name in columns if name not in absent], frozenset(() if snapshot.is_kraft else ELR_COLUMNS)


def summary_record(snapshot: Snapshot, summary: Summary | None = None) -> dict[str, Any]:
    """The summary, which is counted unless it is known, with the source and the assumptions."""
    observers = snapshot.partitions.observers
    return {
        "source": f"{snapshot.source.format}: {snapshot.source.name}",
        "mode": snapshot.mode,
        "cluster_id": snapshot.cluster_id,
        "controller_id": snapshot.controller_id,
        "controller_epoch": snapshot.controller_epoch,
        "controllers": list(snapshot.controllers),
        **_kraft_summary(snapshot),
        **asdict(summary or summarize(snapshot)),
        **({} if observers is None else {"observers": len(observers.values)}),
        "provenance": dict(snapshot.provenance),
        "assumptions": list(snapshot.assumptions),
    }


def _kraft_summary(snapshot: Snapshot) -> dict[str, Any]:
    """The facts that only a KRaft cluster has; empty in ZooKeeper mode."""
    if not snapshot.is_kraft:
        return {}
    facts = snapshot.kraft or KraftFacts()
    registrations = [broker.registration for broker in snapshot.brokers if broker.registration is not None]
    elr = snapshot.partitions.elr
    records = None if facts.records is None else Counter(type(record).__name__ for record in facts.records)
    return {
        "metadata_version": None if facts.features is None else level_name(facts.features.get(METADATA_VERSION, 0)),
        "features": None if facts.features is None else dict(sorted(facts.features.items())),
        "offset": facts.offset,
        "voters": None if facts.voters is None else list(facts.voters),
        "fenced_brokers": sum(registration.fenced for registration in registrations) if registrations else None,
        "elr_partitions": None if elr is None else snapshot.elr_partitions,
        "other_records": None if records is None else dict(sorted(records.items())),
    }


def _kraft_broker(registration: BrokerRegistration | None) -> dict[str, Any]:
    if registration is None:
        return dict.fromkeys(KRAFT_BROKER_COLUMNS)
    return {
        "fenced": registration.fenced,
        "in_controlled_shutdown": registration.in_controlled_shutdown,
        "log_dirs": [uuid_text(directory) for directory in registration.directories],
        "cordoned_log_dirs": _directory_texts(registration.cordoned),
        "incarnation_id": uuid_text(registration.incarnation_id),
        "features": {
            feature.name: [feature.min_supported_version, feature.max_supported_version]
            for feature in registration.features
        },
    }


def _directory_texts(directories: tuple[UUID, ...] | None) -> list[str] | None:
    return None if directories is None else [uuid_text(directory) for directory in directories]


def broker_rows(snapshot: Snapshot, loads: Loads | None = None) -> Iterator[SnapshotBroker]:
    """A row a broker, with its load, which is counted unless it is known."""
    loads = loads or loads_of(snapshot)
    for index, facts in enumerate(snapshot.brokers):
        listeners = None
        if facts.endpoints is not None:
            listeners = [f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in facts.endpoints]
        yield SnapshotBroker(
            broker_id=facts.broker_id,
            registered=facts.registered,
            rack=facts.rack,
            leaders=_entry(loads.leaders, index),
            preferred_leaders=_entry(loads.preferred, index),
            replicas=_entry(loads.replicas, index),
            in_sync_replicas=_entry(loads.in_sync, index),
            broker_epoch=facts.broker_epoch,
            endpoints=listeners,
            **(_kraft_broker(facts.registration) if snapshot.is_kraft else {}),
        )


def topic_rows(
    snapshot: Snapshot, names: Collection[str] | None = None, conditions: Conditions | None = None
) -> Iterator[SnapshotTopic]:
    """A row a topic, or one of ``names``. ``replication_factor`` is that of partition 0, as kafka-topics prints it:
    replicas that are being added do not count. ``conditions`` are those of the snapshot, if they are known already."""
    topics, conditions = snapshot.topics, conditions or conditions_of(snapshot)
    first_rows, widths, adding = (
        topics.first_rows,
        snapshot.partitions.replicas.counts,
        snapshot.partitions.adding_replicas,
    )
    if adding is not None:
        widths = widths - adding.counts
    offline, short = (_per_topic(mask, snapshot) for mask in (conditions.offline, conditions.under_replicated))
    for index, name in enumerate(topics.names):
        if names is not None and name not in names:
            continue
        count = int(topics.partition_counts[index])
        topic_id = None if topics.topic_ids is None else topics.topic_ids[index].tobytes()
        yield SnapshotTopic(
            topic=name,
            partition_count=count,
            replication_factor=int(widths[first_rows[index]]) if count else None,
            offline=_entry(offline, index),
            under_replicated=_entry(short, index),
            deleting=None if topics.deleting is None else bool(topics.deleting[index]),
            topic_id=topic_id_text(topic_id) if topic_id and any(topic_id) else None,
            configs=None if topics.configs is None else dict(topics.configs.get(index, {})),
        )


def partition_rows(snapshot: Snapshot, names: Collection[str] | None = None) -> Iterator[SnapshotPartition]:
    """A row a partition, of all topics or those of ``names``. Columns as in the Parquet table."""
    topics, partitions = snapshot.topics, snapshot.partitions
    topic, partition = topics.topic_of_rows(), topics.partition_of_rows()
    selected = np.array([names is None or name in names for name in topics.names], bool)
    rows = np.flatnonzero(selected[topic]) if len(topic) else np.empty(0, np.int64)
    lists: Mapping[str, Ragged | None] = {"replicas": partitions.replicas, **partitions.lists()}
    directories = snapshot.partitions.directories
    for page in np.array_split(rows, range(_PAGE_ROWS, len(rows), _PAGE_ROWS)):
        columns: dict[str, list[Any]] = {
            "topic": [topics.names[index] for index in topic[page].tolist()],
            "partition": partition[page].tolist(),
        }
        for name, numbers in partitions.numbers().items():
            columns[name] = [None] * len(page) if numbers is None else numbers[page].tolist()
        for name, lists_of_column in lists.items():
            columns[name] = [None] * len(page) if lists_of_column is None else _lists_of_rows(lists_of_column, page)
        if snapshot.is_kraft:
            columns["directories"] = [None] * len(page)
        if partitions.observers is not None:
            columns["observers"] = _lists_of_rows(partitions.observers, page)
        if directories is not None and snapshot.kraft is not None:
            texts = [uuid_text(directory) for directory in snapshot.kraft.directory_ids]
            columns["directories"] = [[texts[index] for index in row] for row in _lists_of_rows(directories, page)]
        for values in zip(*columns.values(), strict=True):
            yield SnapshotPartition(**dict(zip(columns, values, strict=True)))


def _lists_of_rows(lists: Ragged, rows: Int64) -> list[list[int]]:
    selected = lists.take(rows)
    values = selected.values.tolist()
    return [values[first:last] for first, last in pairwise(selected.offsets.tolist())]


def _per_topic(mask: Bool | None, snapshot: Snapshot) -> Int64 | None:
    """The number of partitions of each topic that a mask selects."""
    if mask is None:
        return None
    topics = snapshot.topics
    return np.bincount(topics.topic_of_rows()[mask], minlength=len(topics)).astype(np.int64)


def _entry(column: Int64 | None, index: int) -> int | None:
    return None if column is None else int(column[index])
