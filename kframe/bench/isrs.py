"""ISRs that change: leaders ask the controller, or leave word in storage as they did before Kafka 2.7."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from kframe.bench.clusters import REPLICATION_FACTOR
from kframe.bench.life import Life
from kframe.bench.work import Timed
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged, positions_within
from kframe.model.events import AlterPartitionRequested, Event
from kframe.model.ids import RecoveryState

#: How many AlterPartition requests one run times; a single one is too short.
ALTERATIONS: Final = 200
#: Of how many partitions at most leaders leave word in storage, and how many each word names.
NOTIFIED_MAX: Final = 10_000
NOTIFIED_TOGETHER: Final = 100
#: The last version of AlterPartition that names topics by name.
_BY_NAME: Final = 1


def alterations(life: Life, _partitions: int) -> Timed:
    """The leader of one partition takes a follower out of the ISR and back in, again and again."""
    life.adopt()

    def alter() -> None:
        for number in range(ALTERATIONS):
            size = REPLICATION_FACTOR - 1 + number % 2
            proposal = _proposal(life.cluster, np.zeros(1, np.int32), size)
            life.expect(not life.ask(proposal).codes.any(), "the ISR is accepted")

    return alter


def alteration_storm(life: Life, _partitions: int) -> Timed:
    """Each leader takes the last follower out of the ISRs of all its partitions, in one request."""
    life.adopt()
    return alterations_by_leader(life, REPLICATION_FACTOR - 1)


def alterations_by_leader(life: Life, size: int | None = None) -> Timed:
    """Each leader proposes the first ``size`` replicas of its partitions as their ISRs, by default all of them."""
    p = life.cluster.partitions
    order = np.argsort(p.leader, kind="stable").astype(np.int32)
    _, starts = np.unique(p.leader[order], return_index=True)
    proposals = [_proposal(life.cluster, rows, size) for rows in np.split(order, starts[1:])]

    def alter() -> None:
        for proposal in proposals:
            life.expect(not life.ask(proposal).codes.any(), "every ISR is accepted")

    return alter


def notifications(life: Life, partitions: int) -> Timed:
    """Leaders have taken their last follower out of ISRs in storage, and left word of it."""
    life.stand()
    life.rest()
    p, names = life.cluster.partitions, life.cluster.topics.names
    rows = range(_notified(partitions))
    changed = [(names[p.topic[row]], int(p.partition[row])) for row in rows]
    for row, (topic, number) in zip(rows, changed, strict=True):
        isr = life.cluster.brokers.ids[p.replica[p.slot_start[row] :][: REPLICATION_FACTOR - 1]].tolist()
        life.ensemble.write_state(topic, number, isr=isr)
    words = [changed[start : start + NOTIFIED_TOGETHER] for start in range(0, len(changed), NOTIFIED_TOGETHER)]

    def notify() -> None:
        for word in words:
            life.ensemble.notify_isr_changes(word)
        life.rest()

    return notify


def shrunk(life: Life, partitions: int) -> None:
    """No ISR has its last follower."""
    _expect_shrunk(life, partitions)


def some_shrunk(life: Life, partitions: int) -> None:
    """The ISRs of which word was left are known, and no other has changed."""
    _expect_shrunk(life, _notified(partitions))


def _expect_shrunk(life: Life, partitions: int) -> None:
    found = np.count_nonzero(life.cluster.partitions.isr_count == REPLICATION_FACTOR - 1)
    life.expect(found == partitions, f"{partitions} partitions without their last follower in the ISR")


def _notified(partitions: int) -> int:
    return min(partitions, NOTIFIED_MAX)


def _proposal(cluster: ClusterState, rows: Int32, size: int | None = None) -> Callable[[int], Event]:
    """AlterPartition of the leader of ``rows``: the first ``size`` assigned replicas are in sync, by default all."""
    p, brokers = cluster.partitions, cluster.brokers
    leader = int(p.leader[rows[0]])
    isr = p.lists("replica", rows)
    if size is not None:
        isr = isr.keep(positions_within(isr.counts) < size)
    names = [cluster.topics.names[topic] for topic in p.topic[rows].tolist()]
    return partial(
        AlterPartitionRequested, int(brokers.ids[leader]), int(brokers.broker_epoch[leader]), _BY_NAME,
        tuple(zip(names, p.partition[rows].tolist(), strict=True)), p.leader_epoch[rows], p.partition_epoch[rows],
        np.full(len(rows), RecoveryState.RECOVERED, np.uint8), Ragged(isr.offsets, brokers.ids[isr.values]),
    )  # fmt: skip
