"""Differences between two states of a cluster, where the later one continues the replay of the earlier one.

Rows, brokers and topics then have the same numbers in both, so columns are compared without lookups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from kframe.plugin.kraft import ClusterMetadata, uuid_text
from kframe.plugin.live import Difference

_LISTS: Final = {
    "replica": "replicas",
    "isr": "isr",
    "elr": "elr",
    "last_known_elr": "last_known_elr",
    "adding": "adding",
    "removing": "removing",
    "directory": "directories",
}
_STATES: Final = ("fenced", "in_controlled_shutdown", "rack", "broker_epoch")
COLUMNS: Final = ("kind", "name", "change", "before", "after")


def differences(before: ClusterMetadata, after: ClusterMetadata) -> Iterator[Difference]:
    """Yield the differences: features, brokers, configurations, topics, then partitions in the order of rows."""
    for name in sorted({*before.features, *after.features}):
        if before.features.get(name) != after.features.get(name):
            yield Difference("feature", name, "level", before.features.get(name), after.features.get(name))
    yield from _broker_differences(before, after)
    yield from _config_differences(before, after)
    for kind in ("controllers", "acls", "scram", "tokens", "quotas"):
        yield from _other_differences(kind, getattr(before, kind), getattr(after, kind))
    old, new = before.topics.index_by_name, after.topics.index_by_name
    for name in sorted({*old, *new}):
        if name not in new:
            yield Difference("topic", name, "deleted", topic=name)
        elif name not in old:
            yield Difference("topic", name, "created", topic=name)
        elif before.topics.ids[old[name]] != after.topics.ids[new[name]]:
            yield Difference("topic", name, "recreated", topic=name)
    yield from _partition_differences(before, after)


def summarize(changes: Iterator[Difference], scope: str, racks: dict[int, str | None]) -> list[dict[str, Any]]:
    """The number of differences by topic, broker or rack: a row for each, with a count for each kind of change."""
    counts: dict[str, Counter[str]] = {}
    for difference in changes:
        for name in _names(difference, scope, racks):
            counts.setdefault(name, Counter())[f"{difference.kind} {difference.change}"] += 1
    return [
        {scope: name, "changes": sum(counter.values()), "by_change": dict(sorted(counter.items()))}
        for name, counter in sorted(counts.items())
    ]


def _names(difference: Difference, scope: str, racks: dict[int, str | None]) -> set[str]:
    if scope == "topic":
        return {difference.topic} if difference.topic is not None else set()
    if scope == "broker":
        return {str(broker) for broker in difference.brokers}
    return {racks.get(broker) or "no rack" for broker in difference.brokers}


def _broker_differences(before: ClusterMetadata, after: ClusterMetadata) -> Iterator[Difference]:
    old, new = before.brokers.registrations, after.brokers.registrations
    for broker_id in sorted({*old, *new}):
        name, brokers = str(broker_id), (broker_id,)
        if broker_id not in new:
            yield Difference("broker", name, "unregistered", brokers=brokers)
            continue
        if broker_id not in old:
            yield Difference("broker", name, "registered", brokers=brokers)
            continue
        for field in _STATES:
            values = getattr(old[broker_id], field), getattr(new[broker_id], field)
            if values[0] != values[1]:
                yield Difference("broker", name, field, *values, brokers=brokers)
        for field in ("directories", "cordoned"):
            texts = [list(map(uuid_text, getattr(state[broker_id], field) or ())) for state in (old, new)]
            if texts[0] != texts[1]:
                yield Difference("broker", name, field, texts[0], texts[1], brokers=brokers)


def _config_differences(before: ClusterMetadata, after: ClusterMetadata) -> Iterator[Difference]:
    kinds = {2: "topic", 4: "broker", 16: "client-metrics", 32: "group"}
    for kind, name in sorted({*before.configs, *after.configs}):
        old, new = before.configs.get((kind, name), {}), after.configs.get((kind, name), {})
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                label = f"{kinds.get(kind, kind)} {name or 'default'}"
                brokers = (int(name),) if kind == 4 and name.isdecimal() else ()
                topic = name if kind == 2 else None
                yield Difference("config", label, key, old.get(key), new.get(key), topic, brokers)


def _other_differences(kind: str, old: dict[Any, Any], new: dict[Any, Any]) -> Iterator[Difference]:
    for key in sorted({*old, *new}, key=str):
        if old.get(key) != new.get(key):
            change = "removed" if key not in new else "added" if key not in old else "changed"
            yield Difference(kind, str(key), change)


def _partition_differences(before: ClusterMetadata, after: ClusterMetadata) -> Iterator[Difference]:
    p, q = before.partitions, after.partitions
    count = len(p)
    live: np.ndarray[Any, Any] = np.flatnonzero((p.topic >= 0) & (q.topic[:count] == p.topic))
    changed = live[
        (p.partition_epoch[live] != q.partition_epoch[live]) | (p.leader_epoch[live] != q.leader_epoch[live])
    ]
    for row in changed.tolist():
        yield from _row_differences(before, after, row)
    added = count + np.flatnonzero(q.topic[count:] >= 0)
    for row in added.tolist():
        topic = after.topics.names[int(q.topic[row])]
        if topic in before.topics.index_by_name:
            brokers = after.brokers.ids_of(q.list_of("replica", row))
            yield Difference("partition", after.name(row), "created", topic=topic, brokers=brokers)


def _row_differences(before: ClusterMetadata, after: ClusterMetadata, row: int) -> Iterator[Difference]:
    p, q = before.partitions, after.partitions
    name, topic = after.name(row), after.topics.names[int(q.topic[row])]
    leaders = after.brokers.ids_of([int(p.leader[row]), int(q.leader[row])])
    if leaders[0] != leaders[1]:
        yield Difference("partition", name, "leader", leaders[0], leaders[1], topic, tuple(sorted(set(leaders) - {-1})))
    elif p.leader_epoch[row] != q.leader_epoch[row]:
        epochs = int(p.leader_epoch[row]), int(q.leader_epoch[row])
        yield Difference("partition", name, "leader_epoch", *epochs, topic, leaders[1:])
    for column, label in _LISTS.items():
        old, new = p.list_of(column, row), q.list_of(column, row)
        if old == new:
            continue
        if column == "directory":
            yield _directory_difference(before, after, row)
            continue
        ids = [list(after.brokers.ids_of(values)) for values in (old, new)]
        moved = tuple(sorted(set(ids[0]) ^ set(ids[1])))
        yield Difference("partition", name, label, ids[0], ids[1], topic, moved)
    if p.recovery[row] != q.recovery[row]:
        yield Difference("partition", name, "recovery", int(p.recovery[row]), int(q.recovery[row]), topic)


def _directory_difference(before: ClusterMetadata, after: ClusterMetadata, row: int) -> Difference:
    """The directories of a partition's replicas, in the order of the replicas. Its brokers are those whose directory
    differs."""
    directories: list[list[str]] = []
    by_broker: list[set[tuple[int, str]]] = []
    for metadata in (before, after):
        replicas = metadata.brokers.ids_of(metadata.partitions.list_of("replica", row))
        texts = [*map(uuid_text, metadata.directories.ids_of(metadata.partitions.list_of("directory", row)))]
        directories.append(texts)
        by_broker.append(set(zip(replicas, texts, strict=True)))
    brokers = tuple(sorted({broker for broker, _ in by_broker[0] ^ by_broker[1]}))
    topic = after.topics.names[int(after.partitions.topic[row])]
    return Difference("partition", after.name(row), "directories", directories[0], directories[1], topic, brokers)
