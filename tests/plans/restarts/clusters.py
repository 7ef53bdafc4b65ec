"""Small clusters with given in-sync replicas, and the fewest batches of their restarts by trying all orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from kframe.model.arrays import Ragged
from kframe.model.kraft.ids import MetadataLevel
from kframe.plans.restarts.request import RestartRequest
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import BrokerFacts, KraftFacts, PartitionFacts, Source, TopicFacts

#: In-sync replicas, further replicas, and ``min.insync.replicas``.
Sample = tuple[Sequence[int], Sequence[int], int]


def cluster(
    partitions: Sequence[Sample], brokers: Mapping[int, str | None], dead: Iterable[int] = (), *, kraft: bool = False
) -> Snapshot:
    """A cluster with a topic for each partition. The first in-sync replica leads."""
    replicas = Ragged.of([[*isr, *others] for isr, others, _ in partitions])
    isr = Ragged.of([list(isr) for isr, _, _ in partitions])
    leader = np.array([members[0] if members else -1 for members, _, _ in partitions], np.int32)
    names = tuple(f"t{number:03}" for number in range(len(partitions)))
    configs = {number: {"min.insync.replicas": str(minimum)} for number, (_, _, minimum) in enumerate(partitions)}
    absent = set(dead)
    snapshot = Snapshot(
        tuple(BrokerFacts(broker, broker not in absent, 1, (), rack) for broker, rack in sorted(brokers.items())),
        TopicFacts(names, np.ones(len(names), np.int32), configs=configs),
        PartitionFacts(replicas, leader, isr),
        Source("test", "sample"),
    )
    if not kraft:
        return snapshot
    return replace(snapshot, kraft=KraftFacts(features={"metadata.version": int(MetadataLevel.LATEST)}))


def is_safe(partitions: Sequence[Sample], down: Iterable[int]) -> bool:
    """Whether each partition keeps a leader and ``min.insync.replicas``, if it had them, while brokers are down."""
    stopped = set(down)
    for isr, others, minimum in partitions:
        effective, left = min(minimum, len(isr) + len(others)), len(set(isr) - stopped)
        if isr and (left == 0 or (left < effective <= len(isr))):
            return False
    return True


def fewest_batches(partitions: Sequence[Sample], brokers: Sequence[int], request: RestartRequest) -> int:
    """The fewest batches of these brokers, none of which is blocked, by trying all."""

    def at_min(down: Sequence[int]) -> int:
        stopped = set(down)
        return sum(
            len(set(isr) - stopped) == min(minimum, len(isr) + len(others)) and bool(stopped & set(isr))
            for isr, others, minimum in partitions
            if len(isr) >= min(minimum, len(isr) + len(others))
        )

    def allowed(down: Sequence[int]) -> bool:
        return (
            is_safe(partitions, down)
            and len(down) <= (request.max_batch or len(down))
            and (request.max_at_min_isr is None or at_min(down) <= request.max_at_min_isr)
        )

    def needed(remaining: tuple[int, ...]) -> int:
        if not remaining:
            return 0
        first, others = remaining[0], remaining[1:]
        return 1 + min(
            needed(tuple(broker for broker in others if broker not in chosen))
            for chosen in _subsets(others)
            if allowed((first, *chosen))
        )

    return needed(tuple(brokers))


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(items) + 1):
        yield from combinations(items, size)
