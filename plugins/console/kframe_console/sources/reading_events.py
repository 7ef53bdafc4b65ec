"""Events between two readings of a cluster, such as elections, ISR changes and fenced brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import numpy as np

from kframe.plugin import NO_LEADER, counted
from kframe.plugin.snapshot import BrokerFacts, Snapshot
from kframe_console.sources.differences import common_rows

EventKind: TypeAlias = Literal["fencing", "broker", "election", "offline", "isr", "topic", "controller"]
#: Most names in a text.
_NAMES_MAX: Final = 3


def events_between(before: Snapshot, after: Snapshot) -> Iterator[tuple[EventKind, str]]:
    """The kind and the text of each event."""
    yield from _broker_events(before, after)
    yield from _topic_events(before, after)
    yield from _partition_events(before, after)


def _broker_events(before: Snapshot, after: Snapshot) -> Iterator[tuple[EventKind, str]]:
    old_brokers = {broker.broker_id: broker for broker in before.brokers}
    for broker in after.brokers:
        old = old_brokers.get(broker.broker_id)
        state, name = broker_state(broker), f"broker {broker.broker_id}"
        if state != (None if old is None else broker_state(old)):
            yield "fencing" if state in ("fenced", "unregistered") else "broker", f"{name} is {state}"
        elif old is not None and broker.registered and old.broker_epoch != broker.broker_epoch:
            yield "broker", f"{name} has registered again"
        lost = 0 if old is None else _directories(old) - _directories(broker)
        if lost > 0:
            yield "broker", f"{name} has lost {counted(lost, 'log directory', 'log directories')}"


def broker_state(broker: BrokerFacts) -> str:
    """``active``, ``in controlled shutdown``, ``fenced`` or ``unregistered``."""
    if not broker.registered:
        return "unregistered"
    if broker.registration is not None and broker.registration.fenced:
        return "fenced"
    if broker.registration is not None and broker.registration.in_controlled_shutdown:
        return "in controlled shutdown"
    return "active"


def _directories(broker: BrokerFacts) -> int:
    return 0 if broker.registration is None else len(broker.registration.directories)


def _topic_events(before: Snapshot, after: Snapshot) -> Iterator[tuple[EventKind, str]]:
    for verb, names in (
        ("created", set(after.topics.names) - set(before.topics.names)),
        ("deleted", set(before.topics.names) - set(after.topics.names)),
    ):
        if names:
            shown = ", ".join(sorted(names)[:_NAMES_MAX]) + (", …" if len(names) > _NAMES_MAX else "")
            yield "topic", f"{counted(len(names), 'topic')} {verb}: {shown}"


def _partition_events(before: Snapshot, after: Snapshot) -> Iterator[tuple[EventKind, str]]:
    rows_before, rows_after = common_rows(before, after)
    if before.partitions.leader is None or after.partitions.leader is None:
        return
    old, new = before.partitions.leader[rows_before], after.partitions.leader[rows_after]
    changed = np.flatnonzero(old != new)
    elected = int((new[changed] != NO_LEADER).sum())
    if elected:
        leaders, counts = np.unique(old[changed], return_counts=True)
        largest = sorted(zip(counts.tolist(), leaders.tolist(), strict=True), reverse=True)[:_NAMES_MAX]
        names = (f"{count:,} of {'none' if leader == NO_LEADER else f'broker {leader}'}" for count, leader in largest)
        yield "election", f"{counted(elected, 'leader')} elected, in place of {', '.join(names)}"
    if elected < len(changed):
        yield "offline", f"{counted(len(changed) - elected, 'partition')} without a leader"
    if before.partitions.isr is not None and after.partitions.isr is not None:
        sizes = after.partitions.isr.counts[rows_after] - before.partitions.isr.counts[rows_before]
        for verb, count in (("shrunk", int((sizes < 0).sum())), ("expanded", int((sizes > 0).sum()))):
            if count:
                yield "isr", f"{counted(count, 'ISR')} {verb}"
