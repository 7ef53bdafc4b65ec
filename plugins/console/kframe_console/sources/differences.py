"""Differences between two snapshots of a cluster, in columns: their counts, and the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.plugin.columns import Bool, Ragged, ragged_positions, same_lists
from kframe.plugin.live import Difference
from kframe.plugin.snapshot import BrokerFacts, Snapshot
from kframe_console.sources.reading import EXAMPLES_MAX, ClusterChanges

#: The compared columns of partitions, and fields of brokers.
_COLUMNS: Final = ("leader", "replicas", "isr", "elr", "adding_replicas", "removing_replicas")
_STATES: Final = ("registered", "rack", "broker_epoch")


def differences_between(since: datetime, before: Snapshot, after: Snapshot) -> ClusterChanges:
    """The differences of brokers, topics, and partitions of topics that both have."""
    changes = ClusterChanges.of(since, [*_broker_differences(before, after), *_topic_differences(before, after)])
    rows = common_rows(before, after)
    for name in _COLUMNS:
        old, new = getattr(before.partitions, name), getattr(after.partitions, name)
        if old is None or new is None:
            continue
        changed = np.flatnonzero(_differ(old, new, rows))
        if not len(changed):
            continue
        changes.counts[f"partition {name}"] = len(changed)
        for position in changed[: EXAMPLES_MAX - len(changes.examples)].tolist():
            row_before, row = int(rows[0][position]), int(rows[1][position])
            partition = after.topics.name_of_row(row)
            values = _value(old, row_before), _value(new, row)
            topic = partition.rpartition("-")[0]
            changes.examples.append(Difference("partition", partition, name, *values, topic))
    return changes


def _differ(old: Any, new: Any, rows: tuple[NDArray[Any], NDArray[Any]]) -> Bool:
    if isinstance(old, Ragged):
        return ~same_lists(_take(old, rows[0]), _take(new, rows[1]))
    differ: Bool = old[rows[0]] != new[rows[1]]
    return differ


def _value(column: Any, row: int) -> Any:
    return column[row].tolist() if isinstance(column, Ragged) else int(column[row])


def _take(lists: Ragged, rows: NDArray[Any]) -> Ragged:
    return lists if len(rows) == len(lists) and bool((rows == np.arange(len(rows))).all()) else lists.take(rows)


def common_rows(before: Snapshot, after: Snapshot) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows of the partitions that both have, in the order of both. Partitions are numbered from 0 without gaps."""
    old, new = before.topics, after.topics
    if old.names == new.names and bool((old.partition_counts == new.partition_counts).all()):
        rows = np.arange(len(before))
        return rows, rows
    numbers = {name: index for index, name in enumerate(old.names)}
    pairs = [(numbers[name], index) for index, name in enumerate(new.names) if name in numbers]
    indexes = np.array(pairs, np.int64).reshape(-1, 2)
    counts = np.minimum(old.partition_counts[indexes[:, 0]], new.partition_counts[indexes[:, 1]])
    return (
        ragged_positions(old.first_rows[indexes[:, 0]], counts),
        ragged_positions(new.first_rows[indexes[:, 1]], counts),
    )


def _topic_differences(before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    old, new = set(before.topics.names), set(after.topics.names)
    for name in sorted(old ^ new):
        yield Difference("topic", name, "created" if name in new else "deleted", topic=name)


def _broker_differences(before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    old = {facts.broker_id: facts for facts in before.brokers}
    new = {facts.broker_id: facts for facts in after.brokers}
    for broker_id in sorted({*old, *new}):
        values = _states(old.get(broker_id)), _states(new.get(broker_id))
        for name in (name for name in values[0] if name in values[1]):
            pair = values[0][name], values[1][name]
            if pair[0] != pair[1]:
                yield Difference("broker", str(broker_id), name, *pair, brokers=(broker_id,))


def _states(facts: BrokerFacts | None) -> dict[str, Any]:
    if facts is None:
        return {"registered": False}
    states = {name: getattr(facts, name) for name in _STATES}
    if facts.registration is not None:
        states["fenced"] = facts.registration.fenced
        states["in_controlled_shutdown"] = facts.registration.in_controlled_shutdown
    return states
