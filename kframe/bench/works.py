"""What is timed: for each bench the cluster that it begins with, what comes before the timed event, and the event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from kframe.bench.life import Life
from kframe.errors import ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    Event,
    ReassignmentRequested,
)
from kframe.model.ids import RecoveryState
from kframe.model.tables import Targets
from kframe.snapshot.generate import PARTITIONS_PER_TOPIC, generate

REPLICATION_FACTOR: Final = 3
#: How many AlterPartition requests one run times; a single one is too short.
ALTERATIONS: Final = 200
#: How long a caller waits, on a clock that stands still: no request is answered before it is done.
_PATIENCE_MS: Final = 1_000
#: The last version of AlterPartition that names topics by name.
_BY_NAME: Final = 1

Timed: TypeAlias = Callable[[], None]
"""The event, once all is ready for it."""


@dataclass(frozen=True, slots=True)
class Work:
    """One bench. ``cluster`` makes what storage holds of so many partitions and brokers; ``prepare`` goes up to the
    event and returns it; ``check`` says afterwards whether it did what it should; ``events`` is how many it is."""

    cluster: Callable[[int, int], ClusterState]
    prepare: Callable[[Life, int], Timed]
    check: Callable[[Life, int], None]
    events: int = 1


def whole_cluster(partitions: int, brokers: int) -> ClusterState:
    """The same cluster as the peers' (``benchmarks/peers``): all in order, loads spread evenly."""
    return generate(partitions, brokers, REPLICATION_FACTOR, layout="peerbench").to_cluster()


def _led_by_second(partitions: int, brokers: int) -> ClusterState:
    """The same, but every partition is led by its second replica."""
    cluster = whole_cluster(partitions, brokers)
    p = cluster.partitions
    p.leader[:] = p.replica[p.slot_start + 1]
    return cluster


def _one_topic(_partitions: int, brokers: int) -> ClusterState:
    """Brokers with next to nothing on them."""
    return whole_cluster(PARTITIONS_PER_TOPIC, brokers)


# -- the benches


def _failover(life: Life, _partitions: int) -> Timed:
    life.stand()
    return life.rest


def _broker_failure(life: Life, _partitions: int) -> Timed:
    life.stand()
    life.rest()
    life.ensemble.unregister_brokers([len(life.cluster.brokers) // 2])
    return life.rest


def _preferred_election(life: Life, _partitions: int) -> Timed:
    life.stand()
    life.rest()

    def elect() -> None:
        response = life.ask(lambda token: ElectionRequested(ElectionType.PREFERRED, None, token))
        life.expect(response.error == ErrorCode.NONE and not response.codes.any(), "every election goes well")

    return elect


def _creation(life: Life, partitions: int) -> Timed:
    life.adopt()
    count = partitions // PARTITIONS_PER_TOPIC
    topics = tuple(NewTopic(f"new-{number}", PARTITIONS_PER_TOPIC, REPLICATION_FACTOR) for number in range(count))

    def create() -> None:
        response = life.ask(lambda token: CreateTopicsRequested(topics, _PATIENCE_MS, token=token))
        life.expect(set(response.codes.values()) == {ErrorCode.NONE}, "every topic is created")

    return create


def _reassignment_start(life: Life, _partitions: int) -> Timed:
    life.adopt()
    targets = _moved(life.cluster)

    def reassign() -> None:
        response = life.ask(lambda token: ReassignmentRequested(targets, token))
        life.expect(not response.codes.any(), "every reassignment begins")

    return reassign


def _reassignment_completion(life: Life, partitions: int) -> Timed:
    """Each leader proposes that all replicas of its partitions are in sync, in one request."""
    _reassignment_start(life, partitions)()
    p = life.cluster.partitions
    order = np.argsort(p.leader, kind="stable").astype(np.int32)
    _, starts = np.unique(p.leader[order], return_index=True)
    proposals = [_proposal(life.cluster, rows) for rows in np.split(order, starts[1:])]

    def complete() -> None:
        for proposal in proposals:
            life.expect(not life.ask(proposal).codes.any(), "every ISR is accepted")

    return complete


def _deletion(life: Life, _partitions: int) -> Timed:
    life.adopt()
    life.transport.answers_deletions = True
    names = tuple(life.cluster.topics.names)

    def delete() -> None:
        response = life.ask(lambda token: DeleteTopicsRequested(names, _PATIENCE_MS, token=token))
        life.expect(set(response.codes.values()) == {ErrorCode.NONE}, "every topic is deleted")

    return delete


def _alterations(life: Life, _partitions: int) -> Timed:
    """The leader of one partition takes a follower out of the ISR and back in, again and again."""
    life.adopt()

    def alter() -> None:
        for number in range(ALTERATIONS):
            size = REPLICATION_FACTOR - 1 + number % 2
            proposal = _proposal(life.cluster, np.zeros(1, np.int32), size)
            life.expect(not life.ask(proposal).codes.any(), "the ISR is accepted")

    return alter


def _moved(cluster: ClusterState) -> Targets:
    """Every replica of every partition on the broker half way round."""
    p, brokers = cluster.partitions, cluster.brokers
    replicas = p.lists("replica", np.arange(len(p), dtype=np.int32))
    places = (replicas.values + np.int32(len(brokers) // 2)) % np.int32(len(brokers))
    target = Ragged(replicas.offsets, brokers.ids[places])
    return Targets(tuple(cluster.topics.names), p.topic.copy(), p.partition.copy(), target, np.zeros(len(p), np.bool_))


def _proposal(cluster: ClusterState, rows: Int32, size: int | None = None) -> Callable[[int], Event]:
    """AlterPartition of the leader of ``rows``: all assigned replicas are in sync, or of one row the first ``size``."""
    p, brokers = cluster.partitions, cluster.brokers
    leader = int(p.leader[rows[0]])
    isr = p.lists("replica", rows)
    if size is not None:
        isr = Ragged.of([isr[0][:size].tolist()])
    names = [cluster.topics.names[topic] for topic in p.topic[rows].tolist()]
    return partial(
        AlterPartitionRequested, int(brokers.ids[leader]), int(brokers.broker_epoch[leader]), _BY_NAME,
        tuple(zip(names, p.partition[rows].tolist(), strict=True)), p.leader_epoch[rows], p.partition_epoch[rows],
        np.full(len(rows), RecoveryState.RECOVERED, np.uint8), Ragged(isr.offsets, brokers.ids[isr.values]),
    )  # fmt: skip


# -- what must hold afterwards


def _all_led(life: Life, partitions: int) -> None:
    life.expect_led(partitions)


def _all_preferred(life: Life, partitions: int) -> None:
    life.expect_led(partitions, preferred=True)


def _created(life: Life, partitions: int) -> None:
    life.expect_led(partitions // PARTITIONS_PER_TOPIC * PARTITIONS_PER_TOPIC + PARTITIONS_PER_TOPIC)


def _moving(life: Life, partitions: int) -> None:
    life.expect(np.count_nonzero(life.cluster.partitions.reassigning) == partitions, "every partition is on its way")


def _arrived(life: Life, partitions: int) -> None:
    p = life.cluster.partitions
    life.expect(not p.reassigning.any() and (p.replica_count == REPLICATION_FACTOR).all(), "every move is over")
    life.expect_led(partitions)


def _gone(life: Life, _partitions: int) -> None:
    topics = life.cluster.topics
    life.expect(not any(name in topics for name in topics.names), "no topic is left")


WORKS: Final[Mapping[str, Work]] = {
    "broker-failure": Work(whole_cluster, _broker_failure, _all_led),
    "controller-failover": Work(whole_cluster, _failover, _all_led),
    "preferred-election": Work(_led_by_second, _preferred_election, _all_preferred),
    "topic-creation": Work(_one_topic, _creation, _created),
    "reassignment-start": Work(whole_cluster, _reassignment_start, _moving),
    "reassignment-completion": Work(whole_cluster, _reassignment_completion, _arrived),
    "topic-deletion": Work(whole_cluster, _deletion, _gone),
    "alter-partition": Work(whole_cluster, _alterations, _all_led, ALTERATIONS),
}
