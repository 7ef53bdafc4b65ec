"""Requests of administrators, and checks of their results. Each function prepares the request and returns it."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.bench.clusters import REPLICATION_FACTOR
from kframe.bench.controller import TimedController
from kframe.bench.isrs import alterations_by_leader
from kframe.bench.workload import Action
from kframe.errors import ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.arrays import Ragged
from kframe.model.cluster import ClusterState
from kframe.model.events import (
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    ReassignmentRequested,
)
from kframe.model.tables import Targets
from kframe.snapshot.generate import PARTITIONS_PER_TOPIC

#: CreateTopics requests in one run, each for one topic of 100 partitions.
CREATIONS: Final = 100
#: Timeout of each request. The virtual clock stands still, so no request times out.
_TIMEOUT_MS: Final = 1_000


def preferred_election(controller: TimedController, _partitions: int) -> Action:
    """Elect the first replica of every partition."""
    controller.open()
    controller.run_until_idle()
    return _elect(controller, ElectionType.PREFERRED)


def election_of_all(controller: TimedController, _partitions: int) -> Action:
    """Elect a leader for every partition, unclean if necessary."""
    controller.adopt()
    return _elect(controller, ElectionType.UNCLEAN)


def creation(controller: TimedController, partitions: int) -> Action:
    """Create all partitions by one request."""
    topics = _new_topics(partitions // PARTITIONS_PER_TOPIC)
    controller.adopt()
    return lambda: _create(controller, topics)


def creation_storm(controller: TimedController, _partitions: int) -> Action:
    """Create topics one by one."""
    topics = _new_topics(CREATIONS)
    controller.adopt()

    def create() -> None:
        for topic in topics:
            _create(controller, (topic,))

    return create


def reassignment_start(controller: TimedController, _partitions: int) -> Action:
    """Reassign every replica of every partition."""
    controller.adopt()
    targets = _target_assignments(controller.cluster)

    def reassign() -> None:
        response = controller.request(lambda token: ReassignmentRequested(targets, token))
        controller.expect(not response.codes.any(), "every reassignment begins")

    return reassign


def reassignment_completion(controller: TimedController, partitions: int) -> Action:
    """Each leader proposes that all replicas of its partitions are in sync, in one request."""
    reassignment_start(controller, partitions)()
    return alterations_by_leader(controller)


def deletion(controller: TimedController, _partitions: int) -> Action:
    """Delete every topic by one request. Brokers answer at once."""
    controller.adopt()
    controller.transport.responds_to_deletions = True
    names = tuple(controller.cluster.topics.names)

    def delete() -> None:
        response = controller.request(lambda token: DeleteTopicsRequested(names, _TIMEOUT_MS, token=token))
        controller.expect(set(response.codes.values()) == {ErrorCode.NONE}, "every topic is deleted")

    return delete


def expect_preferred_leaders(controller: TimedController, partitions: int) -> None:
    """Every partition is led by its first replica."""
    controller.expect_led(partitions, preferred=True)


def expect_topics(controller: TimedController, partitions: int) -> None:
    """The new partitions and those of the existing topic have leaders."""
    controller.expect_led(partitions // PARTITIONS_PER_TOPIC * PARTITIONS_PER_TOPIC + PARTITIONS_PER_TOPIC)


def expect_storm_topics(controller: TimedController, partitions: int) -> None:
    """The new partitions and all existing ones have leaders."""
    controller.expect_led(partitions + CREATIONS * PARTITIONS_PER_TOPIC)


def expect_reassigning(controller: TimedController, partitions: int) -> None:
    """Every partition is being reassigned."""
    controller.expect(
        len(controller.cluster.partitions.reassigning_rows()) == partitions, "every partition is being reassigned"
    )


def expect_reassigned(controller: TimedController, partitions: int) -> None:
    """Every reassignment has ended."""
    p = controller.cluster.partitions
    controller.expect(
        not len(p.reassigning_rows()) and (p.replica_count == REPLICATION_FACTOR).all(),
        "every reassignment is complete",
    )
    controller.expect_led(partitions)


def expect_no_topics(controller: TimedController, _partitions: int) -> None:
    """No topic is left."""
    topics = controller.cluster.topics
    controller.expect(not any(name in topics for name in topics.names), "no topic is left")


def _elect(controller: TimedController, election_type: ElectionType) -> Action:
    """Elect leaders of one type in all partitions that need it."""

    def elect() -> None:
        response = controller.request(lambda token: ElectionRequested(election_type, None, token))
        controller.expect(response.error == ErrorCode.NONE and not response.codes.any(), "every election succeeds")

    return elect


def _new_topics(count: int) -> tuple[NewTopic, ...]:
    return tuple(NewTopic(f"new-{number}", PARTITIONS_PER_TOPIC, REPLICATION_FACTOR) for number in range(count))


def _create(controller: TimedController, topics: tuple[NewTopic, ...]) -> None:
    response = controller.request(lambda token: CreateTopicsRequested(topics, _TIMEOUT_MS, token=token))
    controller.expect(set(response.codes.values()) == {ErrorCode.NONE}, "every topic is created")


def _target_assignments(cluster: ClusterState) -> Targets:
    """Target replicas: every replica moves on by half the number of brokers."""
    p, brokers = cluster.partitions, cluster.brokers
    replicas = p.lists("replica", np.arange(len(p), dtype=np.int32))
    shifted = (replicas.values + np.int32(len(brokers) // 2)) % np.int32(len(brokers))
    target = Ragged(replicas.offsets, brokers.ids[shifted])
    return Targets(tuple(cluster.topics.names), p.topic.copy(), p.partition.copy(), target, np.zeros(len(p), np.bool_))
