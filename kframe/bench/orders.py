"""What administrators ask for: each function goes up to the request and returns it; and what must hold afterwards."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.bench.clusters import REPLICATION_FACTOR
from kframe.bench.isrs import alterations_by_leader
from kframe.bench.life import Life
from kframe.bench.work import Timed
from kframe.errors import ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.events import (
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    ReassignmentRequested,
)
from kframe.model.tables import Targets
from kframe.snapshot.generate import PARTITIONS_PER_TOPIC

#: How many requests a storm of new topics is, each for one topic of 100 partitions.
CREATIONS: Final = 100
#: How long a caller waits, on a clock that stands still: no request is answered before it is done.
_PATIENCE_MS: Final = 1_000


def preferred_election(life: Life, _partitions: int) -> Timed:
    """Every partition is to be led by its first replica."""
    life.stand()
    life.rest()
    return _electing(life, ElectionType.PREFERRED)


def election_of_all(life: Life, _partitions: int) -> Timed:
    """Every partition is to be led by somebody, out of sync if need be."""
    life.adopt()
    return _electing(life, ElectionType.UNCLEAN)


def creation(life: Life, partitions: int) -> Timed:
    """So many partitions are created by one request."""
    topics = _new_topics(partitions // PARTITIONS_PER_TOPIC)
    life.adopt()
    return lambda: _create(life, topics)


def creation_storm(life: Life, _partitions: int) -> Timed:
    """Topics are created one by one."""
    topics = _new_topics(CREATIONS)
    life.adopt()

    def create() -> None:
        for topic in topics:
            _create(life, (topic,))

    return create


def reassignment_start(life: Life, _partitions: int) -> Timed:
    """Every replica of every partition is to move."""
    life.adopt()
    targets = _moved(life.cluster)

    def reassign() -> None:
        response = life.ask(lambda token: ReassignmentRequested(targets, token))
        life.expect(not response.codes.any(), "every reassignment begins")

    return reassign


def reassignment_completion(life: Life, partitions: int) -> Timed:
    """Each leader proposes that all replicas of its partitions are in sync, in one request."""
    reassignment_start(life, partitions)()
    return alterations_by_leader(life)


def deletion(life: Life, _partitions: int) -> Timed:
    """Every topic is deleted by one request; brokers answer at once."""
    life.adopt()
    life.transport.answers_deletions = True
    names = tuple(life.cluster.topics.names)

    def delete() -> None:
        response = life.ask(lambda token: DeleteTopicsRequested(names, _PATIENCE_MS, token=token))
        life.expect(set(response.codes.values()) == {ErrorCode.NONE}, "every topic is deleted")

    return delete


def all_preferred(life: Life, partitions: int) -> None:
    """Every partition is led by its first replica."""
    life.expect_led(partitions, preferred=True)


def created(life: Life, partitions: int) -> None:
    """The new partitions are led, and those of the one topic that was there."""
    life.expect_led(partitions // PARTITIONS_PER_TOPIC * PARTITIONS_PER_TOPIC + PARTITIONS_PER_TOPIC)


def created_beside(life: Life, partitions: int) -> None:
    """The new partitions are led, and all that were there."""
    life.expect_led(partitions + CREATIONS * PARTITIONS_PER_TOPIC)


def moving(life: Life, partitions: int) -> None:
    """Every partition is being reassigned."""
    life.expect(np.count_nonzero(life.cluster.partitions.reassigning) == partitions, "every partition is on its way")


def arrived(life: Life, partitions: int) -> None:
    """Every reassignment has ended."""
    p = life.cluster.partitions
    life.expect(not p.reassigning.any() and (p.replica_count == REPLICATION_FACTOR).all(), "every move is over")
    life.expect_led(partitions)


def gone(life: Life, _partitions: int) -> None:
    """No topic is left."""
    topics = life.cluster.topics
    life.expect(not any(name in topics for name in topics.names), "no topic is left")


def _electing(life: Life, election_type: ElectionType) -> Timed:
    """An election of one type in all partitions that need it."""

    def elect() -> None:
        response = life.ask(lambda token: ElectionRequested(election_type, None, token))
        life.expect(response.error == ErrorCode.NONE and not response.codes.any(), "every election goes well")

    return elect


def _new_topics(count: int) -> tuple[NewTopic, ...]:
    return tuple(NewTopic(f"new-{number}", PARTITIONS_PER_TOPIC, REPLICATION_FACTOR) for number in range(count))


def _create(life: Life, topics: tuple[NewTopic, ...]) -> None:
    response = life.ask(lambda token: CreateTopicsRequested(topics, _PATIENCE_MS, token=token))
    life.expect(set(response.codes.values()) == {ErrorCode.NONE}, "every topic is created")


def _moved(cluster: ClusterState) -> Targets:
    """Every replica of every partition on the broker half way round."""
    p, brokers = cluster.partitions, cluster.brokers
    replicas = p.lists("replica", np.arange(len(p), dtype=np.int32))
    places = (replicas.values + np.int32(len(brokers) // 2)) % np.int32(len(brokers))
    target = Ragged(replicas.offsets, brokers.ids[places])
    return Targets(tuple(cluster.topics.names), p.topic.copy(), p.partition.copy(), target, np.zeros(len(p), np.bool_))
