"""A snapshot as plain rows for people and programs, a partition at a time. Never used in a bulk path."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kframe.model.columns import Bool, Int64, Ragged
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.summary import conditions_of, loads_of, summarize

_PAGE_ROWS: Final = 4_096


def summary_record(snapshot: Snapshot) -> dict[str, Any]:
    """The summary with where it came from and what it takes for granted."""
    return {
        "source": f"{snapshot.source.format}: {snapshot.source.name}",
        "mode": snapshot.mode,
        "cluster_id": snapshot.cluster_id,
        "controller_id": snapshot.controller_id,
        "controller_epoch": snapshot.controller_epoch,
        **asdict(summarize(snapshot)),
        "provenance": dict(snapshot.provenance),
        "assumptions": list(snapshot.assumptions),
    }


def broker_rows(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """A row a broker. It has what the broker carries."""
    loads = loads_of(snapshot)
    for index, facts in enumerate(snapshot.brokers):
        listeners = None
        if facts.endpoints is not None:
            listeners = [f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in facts.endpoints]
        yield {
            "broker_id": facts.broker_id,
            "registered": facts.registered,
            "rack": facts.rack,
            "leaders": _entry(loads.leaders, index),
            "preferred_leaders": _entry(loads.preferred, index),
            "replicas": _entry(loads.replicas, index),
            "in_sync_replicas": _entry(loads.in_sync, index),
            "broker_epoch": facts.broker_epoch,
            "endpoints": listeners,
        }


def topic_rows(snapshot: Snapshot, names: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """A row a topic, or one of ``names``. ``replication_factor`` is that of partition 0, as kafka-topics prints it:
    replicas that are being added do not count."""
    topics, conditions = snapshot.topics, conditions_of(snapshot)
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
        yield {
            "topic": name,
            "partitions": count,
            "replication_factor": int(widths[first_rows[index]]) if count else None,
            "offline": _entry(offline, index),
            "under_replicated": _entry(short, index),
            "deleting": None if topics.deleting is None else bool(topics.deleting[index]),
            "topic_id": topic_id_text(topic_id) if topic_id and any(topic_id) else None,
            "configs": None if topics.configs is None else dict(topics.configs.get(index, {})),
        }


def partition_rows(snapshot: Snapshot, names: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """A row a partition, of all topics or those of ``names``. Columns as in the Parquet table."""
    topics, partitions = snapshot.topics, snapshot.partitions
    topic, partition = topics.topic_of_rows(), topics.partition_of_rows()
    selected = np.array([names is None or name in names for name in topics.names], bool)
    rows = np.flatnonzero(selected[topic]) if len(topic) else np.empty(0, np.int64)
    lists: Mapping[str, Ragged | None] = {"replicas": partitions.replicas, **partitions.lists()}
    for page in np.array_split(rows, range(_PAGE_ROWS, len(rows), _PAGE_ROWS)):
        columns: dict[str, list[Any]] = {
            "topic": [topics.names[index] for index in topic[page].tolist()],
            "partition": partition[page].tolist(),
        }
        for name, numbers in partitions.numbers().items():
            columns[name] = [None] * len(page) if numbers is None else numbers[page].tolist()
        for name, lists_of_column in lists.items():
            columns[name] = [None] * len(page) if lists_of_column is None else _listed(lists_of_column, page)
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))


def _listed(lists: Ragged, rows: Int64) -> list[list[int]]:
    chosen = lists.take(rows)
    values = chosen.values.tolist()
    return [values[first:last] for first, last in pairwise(chosen.offsets.tolist())]


def _per_topic(mask: Bool | None, snapshot: Snapshot) -> Int64 | None:
    """How many partitions of each topic a mask holds."""
    if mask is None:
        return None
    topics = snapshot.topics
    return np.bincount(topics.topic_of_rows()[mask], minlength=len(topics)).astype(np.int64)


def _entry(column: Int64 | None, index: int) -> int | None:
    return None if column is None else int(column[index])
