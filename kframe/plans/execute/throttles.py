"""The configurations that throttle the replication of moving partitions.

Kafka's brokers throttle the replicas that ``leader.`` and ``follower.replication.throttled.replicas`` of a topic list,
to the rates of the broker (``ReassignPartitionsCommand``, ``ReplicationQuotaManager``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from kframe.plans.execute.entries import ConfigKey, ExecutedPartition, ResourceKind

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
#: Values of a list of replicas: all of the topic, and none.
_ALL: Final = "*"
_NONE: Final = ("", "none")


def throttle_values(
    partitions: Iterable[ExecutedPartition], rolls_back: bool, rate: int, originals: Mapping[ConfigKey, str | None]
) -> dict[ConfigKey, str]:
    """The values that throttle these partitions to ``rate`` bytes per second and broker.

    Followers are the replicas that are added, leaders all that exist before. Replicas that operators throttle stay
    throttled.
    """
    values: dict[ConfigKey, str] = {}
    replicas: dict[ConfigKey, set[str]] = defaultdict(set)
    for partition in partitions:
        leaders, end = partition.ends(rolls_back)
        if set(leaders) != set(end):
            for broker_id in {*leaders, *end}:
                for name in (LEADER_RATE, FOLLOWER_RATE):
                    values[ConfigKey(ResourceKind.BROKER, str(broker_id), name)] = str(rate)
        if followers := partition.added(rolls_back):
            for name, broker_ids in ((LEADER_REPLICAS, leaders), (FOLLOWER_REPLICAS, followers)):
                key = ConfigKey(ResourceKind.TOPIC, partition.topic, name)
                replicas[key] |= {f"{partition.partition}:{broker_id}" for broker_id in broker_ids}
    for key, throttled in replicas.items():
        original = originals.get(key) or ""
        configured = set() if original in _NONE else set(original.split(","))
        values[key] = _ALL if _ALL in configured else ",".join(sorted(configured | throttled))
    return values
