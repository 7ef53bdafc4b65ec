"""The configurations that throttle the replication of moving partitions.

Kafka's brokers throttle the replicas that ``leader.`` and ``follower.replication.throttled.replicas`` of a topic list,
to the rates of the broker (``ReassignPartitionsCommand``, ``ReplicationQuotaManager``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from kframe.plans.execute.entries import ConfigKey, ExecutedPartition, ResourceKind

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
#: The names of these configurations by the kind of their resource.
NAMES: Final = {
    ResourceKind.TOPIC: (LEADER_REPLICAS, FOLLOWER_REPLICAS),
    ResourceKind.BROKER: (LEADER_RATE, FOLLOWER_RATE),
}
#: Values of a list of replicas: all of the topic, and none.
_ALL: Final = "*"
_NONE: Final = ("", "none")


def throttled_replicas(partitions: Iterable[ExecutedPartition], rolls_back: bool) -> dict[ConfigKey, set[str]]:
    """The replicas to throttle, ``partition:broker``, by configuration.

    Followers are the replicas that are added, leaders all that exist before.
    """
    replicas: dict[ConfigKey, set[str]] = defaultdict(set)
    for partition in partitions:
        leaders, _ = partition.ends(rolls_back)
        if followers := partition.added(rolls_back):
            for name, broker_ids in ((LEADER_REPLICAS, leaders), (FOLLOWER_REPLICAS, followers)):
                key = ConfigKey(ResourceKind.TOPIC, partition.topic, name)
                replicas[key] |= {f"{partition.partition}:{broker_id}" for broker_id in broker_ids}
    return dict(replicas)


def throttled_brokers(partitions: Iterable[ExecutedPartition]) -> set[int]:
    """The brokers that send or receive replicas."""
    return {
        broker_id
        for partition in partitions
        if set(partition.target) != set(partition.origin)
        for broker_id in {*partition.origin, *partition.target}
    }


def throttle_keys(partitions: Collection[ExecutedPartition], rolls_back: bool) -> set[ConfigKey]:
    """The configurations that a throttle of these partitions changes."""
    return {
        *throttled_replicas(partitions, rolls_back),
        *(
            ConfigKey(ResourceKind.BROKER, str(broker_id), name)
            for broker_id in throttled_brokers(partitions)
            for name in NAMES[ResourceKind.BROKER]
        ),
    }


def throttle_values(
    partitions: Collection[ExecutedPartition], rolls_back: bool, rate: int, originals: Mapping[ConfigKey, str | None]
) -> dict[ConfigKey, str]:
    """The values that throttle these partitions to ``rate`` bytes per second and broker.

    Replicas that operators throttle stay throttled.
    """
    values = {key: str(rate) for key in throttle_keys(partitions, rolls_back) if key.kind is ResourceKind.BROKER}
    for key, replicas in throttled_replicas(partitions, rolls_back).items():
        original = originals.get(key) or ""
        configured = set() if original in _NONE else set(original.split(","))
        values[key] = _ALL if _ALL in configured else ",".join(sorted(configured | replicas))
    return values
