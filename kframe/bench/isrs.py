"""ISR changes: by AlterPartition, or by notifications in ZooKeeper as before Kafka 2.7."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from kframe.bench.clusters import REPLICATION_FACTOR
from kframe.bench.controller import TimedController
from kframe.bench.workload import Action
from kframe.model.arrays import Int32, Ragged, positions_within
from kframe.model.cluster import ClusterState
from kframe.model.events import AlterPartitionRequested, Event
from kframe.model.ids import RecoveryState
from kframe.model.texts import counted

#: AlterPartition requests in one run; a single request is too short to time.
ALTERATIONS: Final = 200
#: The most partitions with ISR change notifications, and the partitions of each notification.
NOTIFIED_MAX: Final = 10_000
NOTIFICATION_SIZE: Final = 100
#: The last version of AlterPartition that names topics by name.
_BY_NAME: Final = 1


def alterations(controller: TimedController, _partitions: int) -> Action:
    """The leader of one partition removes a follower from the ISR and adds it again, repeatedly."""
    controller.adopt()

    def alter() -> None:
        for number in range(ALTERATIONS):
            size = REPLICATION_FACTOR - 1 + number % 2
            proposal = _proposal(controller.cluster, np.zeros(1, np.int32), size)
            controller.expect(not controller.request(proposal).codes.any(), "the ISR is accepted")

    return alter


def alteration_storm(controller: TimedController, _partitions: int) -> Action:
    """Each leader removes the last follower from the ISRs of all its partitions, in one request."""
    controller.adopt()
    return alterations_by_leader(controller, REPLICATION_FACTOR - 1)


def alterations_by_leader(controller: TimedController, size: int | None = None) -> Action:
    """Each leader proposes the first ``size`` replicas of its partitions as their ISRs, by default all."""
    p = controller.cluster.partitions
    order = np.argsort(p.leader, kind="stable").astype(np.int32)
    _, starts = np.unique(p.leader[order], return_index=True)
    proposals = [_proposal(controller.cluster, rows, size) for rows in np.split(order, starts[1:])]

    def alter() -> None:
        for proposal in proposals:
            controller.expect(not controller.request(proposal).codes.any(), "every ISR is accepted")

    return alter


def notifications(controller: TimedController, partitions: int) -> Action:
    """Leaders have removed their last follower from stored ISRs and written notifications."""
    controller.open()
    controller.run_until_idle()
    p, names = controller.cluster.partitions, controller.cluster.topics.names
    rows = range(_notified(partitions))
    changed = [(names[p.topic[row]], int(p.partition[row])) for row in rows]
    for row, (topic, number) in zip(rows, changed, strict=True):
        isr = controller.cluster.brokers.ids[p.replica[p.slot_start[row] :][: REPLICATION_FACTOR - 1]].tolist()
        controller.ensemble.write_state(topic, number, isr=isr)
    batches = [changed[start : start + NOTIFICATION_SIZE] for start in range(0, len(changed), NOTIFICATION_SIZE)]

    def notify() -> None:
        for batch in batches:
            controller.ensemble.notify_isr_changes(batch)
        controller.run_until_idle()

    return notify


def expect_isrs_shrunk(controller: TimedController, partitions: int) -> None:
    """Every ISR lacks its last follower."""
    _expect_shrunk(controller, partitions)


def expect_notified_isrs_shrunk(controller: TimedController, partitions: int) -> None:
    """The ISRs with notifications have shrunk, and no other ISR has changed."""
    _expect_shrunk(controller, _notified(partitions))


def _expect_shrunk(controller: TimedController, partitions: int) -> None:
    count = np.count_nonzero(controller.cluster.partitions.isr_count == REPLICATION_FACTOR - 1)
    controller.expect(count == partitions, f"{counted(partitions, 'partition')} without their last follower in the ISR")


def _notified(partitions: int) -> int:
    return min(partitions, NOTIFIED_MAX)


def _proposal(cluster: ClusterState, rows: Int32, size: int | None = None) -> Callable[[int], Event]:
    """AlterPartition of the leader of ``rows``: the first ``size`` replicas are in sync, by default all."""
    p, brokers = cluster.partitions, cluster.brokers
    leader = int(p.leader[rows[0]])
    isr = p.lists("replica", rows)
    if size is not None:
        isr = isr.keep(positions_within(isr.counts) < size)
    return partial(
        AlterPartitionRequested,
        int(brokers.ids[leader]),
        int(brokers.broker_epoch[leader]),
        _BY_NAME,
        cluster.requested(rows),
        p.leader_epoch[rows],
        p.partition_epoch[rows],
        np.full(len(rows), RecoveryState.RECOVERED, np.uint8),
        Ragged(isr.offsets, brokers.ids[isr.values]),
    )
