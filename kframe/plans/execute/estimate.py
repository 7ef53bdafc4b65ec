"""The expected duration of an execution, from the sizes of its copies and its throttle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import ExecutedPartition


def expected_seconds(
    stages: Iterable[Sequence[ExecutedPartition]],
    settled: Collection[TopicPartition],
    throttle: int | None,
    *,
    rolls_back: bool,
) -> float | None:
    """Seconds that the copies of partitions that are not ``settled`` take, stage by stage.

    In each stage a broker receives at most ``throttle`` bytes per second, sends as many as the leader of partitions,
    and copies as many between its log directories. Each has a quota of its own (Kafka
    ``follower.replication.throttled.rate``, ``leader.replication.throttled.rate``,
    ``replica.alter.log.dirs.io.max.bytes.per.second``). A partition that is reassigned moves between log directories
    later. None without a throttle, or if the size of a copied replica is unknown.
    """
    if throttle is None:
        return None
    seconds = 0.0
    for stage in stages:
        sent, received, within, later = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
        for partition in stage:
            added = partition.added(rolls_back)
            if not partition.copies(rolls_back) or partition.name in settled:
                continue
            if partition.replica_bytes is None:
                return None
            sent[partition.leader] += partition.replica_bytes * len(added)
            for broker_id in added:
                received[broker_id] += partition.replica_bytes
            for move in partition.copied_within:
                within[move.broker_id] += partition.replica_bytes
                later[move.broker_id] += partition.replica_bytes if added else 0
        between = max((*sent.values(), *received.values()), default=0) + max(later.values(), default=0)
        seconds += max((between, *within.values())) / throttle
    return seconds
