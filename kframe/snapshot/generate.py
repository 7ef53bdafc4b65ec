"""Synthetic clusters of any size from a seed, computed by array passes only.

Replicas are assigned as by Kafka 3.9 ``AdminUtils``. Leaders go round the brokers from a random one. Followers come
after the leader at a distance that grows by one with each round. With racks, a broker is skipped while its rack has a
replica and another rack has none.

All randomness is a hash of seed, purpose and position. A cluster is therefore the same on every platform and for every
version of numpy, and a larger cluster extends a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Ragged, UInt8, offsets_of, positions_within
from kframe.model.brokers import Endpoint
from kframe.model.slot_columns import REPLICAS_MAX, SLOTS_MAX
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.facts import MIN_INSYNC_CONFIG, UNCLEAN_CONFIG, BrokerFacts, PartitionFacts, Source, TopicFacts
from kframe.snapshot.placement import assign_replicas, assign_round_robin
from kframe.snapshot.seeded import Purpose, draw, hashed, sample_positions
from kframe.snapshot.snapshot import Snapshot

Layout = Literal["even", "peerbench"]

PARTITIONS_PER_TOPIC: Final = 100
#: 2^64 divided by the golden ratio: its multiples are spread evenly over all 64-bit numbers.
_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST_BROKER_EPOCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Health:
    """The degraded shares of a cluster, from 0 to 1, and the configs of topics.

    ``under_replicated`` is the share of partitions with one follower out of the ISR.
    ``preferred_replica_imbalance`` is the share of partitions led by another ISR member than the preferred replica.
    ``unclean`` is the share of topics with unclean elections enabled. ``min_insync`` is ``min.insync.replicas`` of
    every topic, or None for no setting.
    """

    under_replicated: float = 0.0
    preferred_replica_imbalance: float = 0.0
    unclean: float = 0.0
    min_insync: int | None = None


def generate(
    partitions: int,
    brokers: int,
    replication_factor: int = 3,
    *,
    topics: int | None = None,
    partitions_per_topic: int | None = None,
    racks: int = 0,
    seed: int = 0,
    layout: Layout = "even",
    health: Health | None = None,
) -> Snapshot:
    """Make a cluster of brokers 0 to ``brokers - 1``, all registered, and equally large topics.

    The number of topics is given, or follows from ``partitions_per_topic`` (default 100; the last topic has the
    remainder). ``racks`` 0 is none; otherwise broker ``i`` is in rack ``i % racks``. Layout ``peerbench`` is the
    cluster of the reference benchmark of Kafka's own classes: 100 partitions a topic, names that hash well, no seed in
    the placement. Raises ParameterError if the numbers make no cluster.
    """
    health = Health() if health is None else health
    sizes = _topic_sizes(partitions, topics, partitions_per_topic)
    _check(partitions, brokers, replication_factor, racks, layout, sizes, health)
    if layout == "peerbench":
        names, ids, order = _peerbench_topics(len(sizes))
        first_positions = order * PARTITIONS_PER_TOPIC
        position = (np.repeat(first_positions, sizes) + positions_within(sizes)).astype(np.int32)
        replicas = assign_round_robin(position % brokers, position // brokers, brokers, replication_factor)
    else:
        names, ids = _named_topics(len(sizes)), _topic_ids(seed, len(sizes))
        start = draw(seed, Purpose.START, len(sizes), brokers)
        shift = draw(seed, Purpose.SHIFT, len(sizes), brokers)
        numbers = positions_within(sizes)
        first = (numbers + np.repeat(start, sizes)) % np.int32(brokers)
        rounds = numbers // np.int32(brokers) + np.repeat(shift, sizes)
        replicas = assign_replicas(first, rounds, brokers, replication_factor, racks)
    shape = f"partitions={partitions}, brokers={brokers}, replication_factor={replication_factor}, racks={racks}"
    return Snapshot(
        _brokers(brokers, racks),
        TopicFacts(names, sizes, ids, np.zeros(len(sizes), np.uint8), _configs(len(sizes), seed, health)),
        _partitions(replicas, seed, health),
        Source("generated", f"{shape}, seed={seed}, layout={layout}"),
        cluster_id=topic_id_text(_topic_ids(seed, 1)[0].tobytes()),
        controller_epoch=1,
        provenance={"cluster.controller_id": "a generated cluster has no controller"},
    )


def _topic_sizes(partitions: int, topics: int | None, partitions_per_topic: int | None) -> Int32:
    if topics is not None and partitions_per_topic is not None:
        raise ParameterError("topics", "topics and the partitions of a topic", "one of them")
    _in_range("partitions", partitions, 1, SLOTS_MAX)
    if topics is not None:
        _in_range("topics", topics, 1, partitions)
        sizes = np.full(topics, partitions // topics, np.int32)
        sizes[: partitions % topics] += 1
        return sizes
    each = PARTITIONS_PER_TOPIC if partitions_per_topic is None else partitions_per_topic
    _in_range("partitions_per_topic", each, 1, SLOTS_MAX)
    sizes = np.full(-(-partitions // each), each, np.int32)
    sizes[-1] = partitions - each * (len(sizes) - 1)
    return sizes


def _check(
    partitions: int, brokers: int, replication_factor: int, racks: int, layout: str, sizes: Int32, health: Health
) -> None:
    _in_range("brokers", brokers, 1, SLOTS_MAX)
    _in_range("replication_factor", replication_factor, 1, min(brokers, REPLICAS_MAX))
    _in_range("partitions", partitions * replication_factor, 1, SLOTS_MAX, " times the replication factor")
    _in_range("racks", racks, 0, brokers)
    for name in ("under_replicated", "preferred_replica_imbalance", "unclean"):
        share = getattr(health, name)
        if not 0.0 <= share <= 1.0:
            raise ParameterError(name, str(share), "a share from 0 to 1")
    if health.min_insync is not None:
        _in_range("min_insync", health.min_insync, 1, REPLICAS_MAX)
    if layout not in ("even", "peerbench"):
        raise ParameterError("layout", repr(layout), "even or peerbench")
    if layout == "peerbench" and (racks or (sizes != PARTITIONS_PER_TOPIC).any() or brokers <= replication_factor):
        raise ParameterError(
            "layout", "peerbench", "whole topics of 100 partitions, no racks, more brokers than replicas"
        )


def _in_range(parameter: str, value: int, minimum: int, maximum: int, part: str = "") -> None:
    if not minimum <= value <= maximum:
        raise ParameterError(parameter, str(value), f"{minimum} to {maximum}", part)


def _named_topics(count: int) -> tuple[str, ...]:
    """Names that sort in their order."""
    width = max(5, len(str(count - 1)))
    return tuple(f"topic-{number:0{width}d}" for number in range(count))


def _topic_ids(seed: int, count: int) -> UInt8:
    """Random UUIDs of version 4. As in Kafka their text does not start with a dash."""
    halves = np.empty((count, 2), ">u8")
    halves[:, 0] = hashed(seed, Purpose.TOPIC_ID_HIGH, count)
    halves[:, 1] = hashed(seed, Purpose.TOPIC_ID_LOW, count)
    ids = halves.view(np.uint8).reshape(count, 16)
    ids[:, 6] = ids[:, 6] & 0x0F | 0x40
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    # The first of 22 characters holds the upper six bits. 62 is the dash.
    ids[ids[:, 0] >> 2 == 62, 0] &= 0x7F
    return ids


def _peerbench_topics(count: int) -> tuple[tuple[str, ...], UInt8, NDArray[np.int64]]:
    """Names in ascending order, their ids, and the number that the benchmark gives each."""
    bits = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    order = np.argsort(bits >> np.uint64(32), kind="stable")
    halves = np.empty((count, 2), ">u8")
    halves[:, 0] = bits[order]
    halves[:, 1] = 1
    names = tuple(f"topic-{number:08x}" for number in (bits[order] >> np.uint64(32)).tolist())
    return names, halves.view(np.uint8).reshape(count, 16), order


def _brokers(count: int, racks: int) -> tuple[BrokerFacts, ...]:
    return tuple(
        BrokerFacts(
            broker_id,
            True,
            _FIRST_BROKER_EPOCH + broker_id,
            (Endpoint("PLAINTEXT", f"broker-{broker_id:03d}.cluster.local", 9092),),
            f"rack-{broker_id % racks}" if racks else None,
        )
        for broker_id in range(count)
    )


def _configs(count: int, seed: int, health: Health) -> dict[int, dict[str, str]]:
    plain = {} if health.min_insync is None else {MIN_INSYNC_CONFIG: str(health.min_insync)}
    configs = dict.fromkeys(range(count), plain) if plain else {}
    unclean = {**plain, UNCLEAN_CONFIG: "true"}
    configs.update(dict.fromkeys(sample_positions(seed, Purpose.UNCLEAN, count, health.unclean).tolist(), unclean))
    return configs


def _partitions(replicas: Int32, seed: int, health: Health) -> PartitionFacts:
    """Leaders, ISRs and epochs over replicas of shape (n, rf). A full ISR shares the replicas' memory."""
    count, width = replicas.shape
    assigned = Ragged(np.arange(0, (count + 1) * width, width, dtype=np.int32), replicas.reshape(-1))
    leader, isr = replicas[:, 0].copy(), assigned
    leader_epoch, partition_epoch = np.zeros(count, np.int32), np.zeros(count, np.int32)
    if width > 1 and (health.under_replicated or health.preferred_replica_imbalance):
        short = sample_positions(seed, Purpose.UNDER_REPLICATED, count, health.under_replicated)
        lagging_position = np.full(count, -1, np.int32)
        lagging_position[short] = 1 + draw(seed, Purpose.LAGGING, count, width - 1)[short]
        in_sync = lagging_position[:, None] != np.arange(width, dtype=np.int32)
        isr = Ragged(offsets_of(in_sync.sum(axis=1)), replicas[in_sync])
        moved = sample_positions(seed, Purpose.OFF_PREFERRED, count, health.preferred_replica_imbalance)
        moved = moved[in_sync[moved].sum(axis=1) > 1]
        leader[moved] = replicas[moved, np.where(lagging_position[moved] == 1, 2, 1)]
        leader_epoch[moved] = 1
        partition_epoch[short] += 1
        partition_epoch[moved] += 1
    return PartitionFacts(
        assigned,
        leader,
        isr,
        leader_epoch,
        np.ones(count, np.int32),
        partition_epoch,
        np.zeros(count, np.int32),
        Ragged.empty(count),
        Ragged.empty(count),
    )
