"""What if these partitions were reassigned? Both phases of a reassignment, with the new replicas catching up in
between.

Phase A stores the assignment with its adding and removing replicas, raises leader epochs and notifies the replicas.
Then all live replicas of the target catch up: each leader proposes its new ISRs in one AlterPartition. In phase B, once
a whole target is in sync, the controller makes it the assignment. It elects a leader from the target where the old
leader leaves, and stops the removed replicas.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.core.operations.topic_requests import ReassignmentResponse
from kframe.core.state import stored_states
from kframe.errors import ErrorCode
from kframe.model.arrays import Bool, Int32, Ragged, UInt8, offsets_of
from kframe.model.changes import StateChange
from kframe.model.cluster import ClusterState
from kframe.model.events import AlterPartitionRequested, ReassignmentRequested
from kframe.model.ids import RecoveryState, ReplicaFlag
from kframe.model.lists import distinct_values, members
from kframe.model.tables import Targets
from kframe.whatif.engines.reassignment import ReassignmentScript
from kframe.whatif.engines.zookeeper.controller import ZookeeperController
from kframe.whatif.results.outcome import ControllerResponse, Outcome, StepReport
from kframe.whatif.results.timeline import MergedTimeline

#: The last version of AlterPartition that names topics by name.
_BY_NAME: Final = 1
_MOVING: Final = np.uint8(ReplicaFlag.ADDING | ReplicaFlag.REMOVING)
#: How many partitions a response names.
_NAMED: Final = 20


class ZookeeperReassignment(ReassignmentScript):
    """A reassignment that is played, with its results so far."""

    def __init__(self, controller: ZookeeperController, targets: Targets) -> None:
        cluster = controller.cluster
        topics = [-1 if (topic := cluster.topics.find(name)) is None else topic for name in targets.names]
        index = np.array(topics, np.int32)[targets.topic]
        rows = np.full(len(targets), -1, np.int32)
        rows[index >= 0] = cluster.topics.locate(index[index >= 0], targets.partition[index >= 0])
        known = rows[rows >= 0]
        super().__init__(
            targets,
            [
                ("phase A: the reassignment begins", self._begin),
                ("the new replicas catch up", self._catch_up),
                ("phase B: target replicas in sync become the assignment", self._finish),
            ],
            rows,
            _ids(cluster, cluster.partitions.lists("replica", known)),
            (_flags(cluster, known) & np.uint8(ReplicaFlag.ADDING)) != 0,
            frozenset(cluster.brokers.ids[cluster.brokers.live != 0].tolist()),
            controller.health().replicas,
        )
        self._controller = controller
        self._known_topics = frozenset(
            name
            for name, index in zip(targets.names, topics, strict=True)
            if index >= 0 and not cluster.topics.deleting[index]
        )
        self._after_responses = MergedTimeline()

    def _begin(self) -> ControllerResponse:
        """Phase A, and phase B of partitions that need no copying."""
        response: ReassignmentResponse = self._controller.call(lambda token: ReassignmentRequested(self.targets, token))
        self.codes = response.codes
        targets, refused = self.targets, np.flatnonzero(response.codes != ErrorCode.NONE)[:_NAMED].tolist()
        named = tuple(f"{targets.names[targets.topic[i]]}-{int(targets.partition[i])}" for i in refused)
        return ControllerResponse(ErrorCode(response.error), np.empty(0, np.int32), response.codes, named)

    def _catch_up(self) -> StepReport:
        """Every leader proposes ISRs. The events after the responses are saved for ``finish``."""
        controller, until_responses = self._controller, MergedTimeline()
        cluster = controller.cluster
        p, brokers = cluster.partitions, cluster.brokers
        rows = self.rows
        ongoing = np.flatnonzero((self.codes == ErrorCode.NONE) & (rows >= 0))
        ongoing = ongoing[p.reassigning(rows[ongoing])]
        leader = p.leader[rows[ongoing]]
        led = (leader >= 0) & (brokers.registered[leader] != 0)
        self.led[ongoing] = led
        isr, grows = _grown_isr(cluster, rows[ongoing])
        proposing = led & grows
        columns, accepted = cluster.partitions.copy(), []
        leaders = distinct_values(leader[proposing]).tolist()
        for done, broker in enumerate(leaders, 1):
            chosen = np.flatnonzero(proposing & (leader == broker))
            change = self._propose(
                broker, rows[ongoing[chosen]], isr.take(chosen), (until_responses, self._after_responses)
            )
            self.isr_codes[ongoing[chosen]] = change[0].codes
            accepted.append(change[1].take(change[0].codes == ErrorCode.NONE))
            self.progress(done, len(leaders))
        caught_up = ClusterState()
        caught_up.brokers, caught_up.topics, caught_up.partitions = brokers, cluster.topics, columns
        for state_change in accepted:
            stored_states.apply(caught_up, state_change, state_change.expected + np.int32(1))
        return StepReport(events=until_responses.events(), health=controller.health_of(caught_up))

    def _finish(self) -> StepReport:
        """The events after each response."""
        return StepReport(events=self._after_responses.events())

    def _propose(
        self, leader: int, rows: Int32, isr: Ragged, timelines: tuple[MergedTimeline, MergedTimeline]
    ) -> tuple[AlterPartitionResponse, StateChange]:
        """One leader's AlterPartition: its response, and the requested change."""
        cluster = self._controller.cluster
        p, brokers = cluster.partitions, cluster.brokers
        partitions = cluster.requested(rows)
        change = StateChange(
            rows,
            p.leaders_of(rows),
            p.leader_epoch[rows],
            np.full(len(rows), RecoveryState.RECOVERED, np.uint8),
            isr,
            p.partition_epoch[rows],
            self._controller.controller_epoch,
        )
        response: AlterPartitionResponse = self._controller.call(
            lambda token: AlterPartitionRequested(
                int(brokers.ids[leader]),
                int(brokers.broker_epoch[leader]),
                _BY_NAME,
                partitions,
                change.leader_epoch,
                change.expected,
                change.recovery,
                _ids(cluster, isr),
                token,
            ),
            timelines,
        )
        return response, change

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        cluster, rows = self._controller.cluster, self.rows[self.known]
        now = _ids(cluster, cluster.partitions.lists("replica", rows))
        ongoing = now.any((_flags(cluster, rows) & _MOVING) != 0)
        return replace(outcome, reassignment=self.result(now, ongoing, self._known_topics, outcome))


def _grown_isr(cluster: ClusterState, rows: Int32) -> tuple[Ragged, Bool]:
    """Broker indexes in sync once every live replica of the target has caught up. Also which ISRs grow.

    Those in sync now come first, but for the dead: a controller refuses an ISR that names one.
    """
    p, live = cluster.partitions, cluster.brokers.live
    isr = p.lists("isr", rows)
    isr = isr.keep(live[isr.values] != 0)
    replicas = p.lists("replica", rows)
    stays = (_flags(cluster, rows) & np.uint8(ReplicaFlag.REMOVING)) == 0
    joining = replicas.keep(stays & (live[replicas.values] != 0) & ~members(replicas, isr))
    owner = np.concatenate([isr.owners, joining.owners])
    order = np.argsort(owner, kind="stable")
    offsets = offsets_of(isr.counts + joining.counts)
    grown = Ragged(offsets, np.concatenate([isr.values, joining.values])[order])
    return grown, joining.counts > 0


def _flags(cluster: ClusterState, rows: Int32) -> UInt8:
    """Flags of the assigned replicas of ``rows``."""
    p = cluster.partitions
    return p.replica_status[p.slots_of(rows)]


def _ids(cluster: ClusterState, lists: Ragged) -> Ragged:
    """Lists of broker indexes as lists of ids."""
    return Ragged(lists.offsets, cluster.brokers.ids[lists.values])
