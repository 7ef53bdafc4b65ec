"""Why this leader: which rule decided about one partition, and why each other replica was passed over.

A snapshot does not record which election chose; for the present leader, the rules that agree with what it shows are
named. In a what-if, every election is observed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import numpy as np

from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.elections import selector_name
from kframe.model.ids import NO_LEADER, NO_STATE, ElectionKind, RecoveryState, ReplicaFlag
from kframe.model.topics import UNSET
from kframe.whatif.engines.zookeeper.controller import ZookeeperController
from kframe.whatif.results.explanation import CandidateReplica, Decision


class LeaderRule(StrEnum):
    """Kafka's election rules by name. The values say what each looks for."""

    INITIAL = "initial election: the first live replica in assignment order"
    OFFLINE_CLEAN = (
        "clean election of an offline partition: the first live replica in assignment order that is in the ISR"
    )
    OFFLINE_UNCLEAN = (
        "unclean election of an offline partition: the first live replica in assignment order, in the ISR or not"
    )
    REASSIGN = "reassignment election: the first live target replica that is in the ISR"
    PREFERRED = "preferred election: the first replica of the assignment, if it is live and in the ISR"
    CONTROLLED_SHUTDOWN = "controlled shutdown election: the first live ISR member in assignment order that stays"
    STAYS = "no election: a leader stays while it is live; only a preferred election moves it back"


class CandidateStatus(StrEnum):
    """Why a replica was chosen or not."""

    CHOSEN = "chosen"
    LATER = "later in the assignment"
    EARLIER = "earlier in the assignment, but nothing was elected since"
    OUT_OF_SYNC = "not in the ISR"
    DEAD = "dead"
    SHUTTING_DOWN = "shutting down"
    OFFLINE_DIR = "log directory offline"
    REMOVING = "being removed"
    NOT_PREFERRED = "not the preferred replica"
    PASSED_OVER = "passed over by the leader selector"


class ElectionExplainer:
    """Applies the rules to one partition in the present state of its cluster."""

    def __init__(self, controller: ZookeeperController, row: int) -> None:
        self._controller = controller
        self._cluster = controller.cluster
        self._config = controller.config
        self._row = row

    @property
    def replicas(self) -> tuple[int, ...]:
        """The assigned replicas now, by broker id."""
        return self._cluster.view(self._row).replicas

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas now, by broker id."""
        return self._cluster.view(self._row).isr

    @property
    def leader(self) -> int | None:
        """The leader now, or None."""
        return _leader(self._cluster.view(self._row))

    @contextmanager
    def observe(self, step: str) -> Iterator[list[Decision]]:
        """Collect the elections of the partition that are held in the context; ``step`` names their cause."""
        elections: list[Decision] = []

        def watch(_: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8, leader: Int32) -> None:
            for position in np.flatnonzero(rows == self._row):
                selector = selector_name(self._controller.selectors, kind)
                elections.append(
                    self.election(step, kind, bool(unclean_allowed[position]), int(leader[position]), selector)
                )

        self._controller.election_watch = watch
        try:
            yield elections
        finally:
            self._controller.election_watch = None

    def current_decision(self) -> Decision:
        """The present leader: the rule that would choose it now, or that it stays."""
        view, allowed = self._cluster.view(self._row), self._unclean_allowed()
        leader = _leader(view)
        if view.partition_epoch == NO_STATE:
            text = "no partition state yet; the controller elects by this rule once a replica is live"
            return self._decision(None, LeaderRule.INITIAL, leader, text)
        alive = leader is not None and self._obstacle(leader) is None
        if leader is None or not alive:
            absence = "no leader" if leader is None else f"leader {leader}, which is down"
            text = f"it has {absence}: {self._why_no_leader(view, allowed)}"
            return self._decision(None, LeaderRule.OFFLINE_CLEAN, None, text)
        if view.recovery is RecoveryState.RECOVERING:
            text = f"broker {leader} was elected from outside the ISR and is still recovering"
            return self._decision(None, LeaderRule.OFFLINE_UNCLEAN, leader, text)
        eligible = (broker for broker in view.replicas if broker in view.isr and self._obstacle(broker) is None)
        first = next(eligible, None)
        if first == leader:
            suffix = "as the preferred replica" if leader == view.replicas[0] else "as the first eligible replica"
            return self._decision(None, LeaderRule.OFFLINE_CLEAN, leader, f"broker {leader} leads {suffix}")
        other = "no replica" if first is None else f"broker {first}"
        text = f"broker {leader} was elected earlier; an election now would elect {other}"
        return self._decision(None, LeaderRule.STAYS, leader, text)

    def election(
        self, step: str, kind: ElectionKind, unclean_allowed: bool, leader_index: int, selector: str | None
    ) -> Decision:
        """The decision of an election."""
        view = self._cluster.view(self._row)
        chosen = None if leader_index == NO_LEADER else int(self._cluster.brokers.ids[leader_index])
        rule = LeaderRule[kind.name] if kind is not ElectionKind.OFFLINE else LeaderRule.OFFLINE_CLEAN
        if kind is ElectionKind.OFFLINE and unclean_allowed and chosen is not None:
            rule = LeaderRule.OFFLINE_UNCLEAN
        if chosen is None:
            text = f"no replica can lead: {self._why_no_leader(view, unclean_allowed)}"
        else:
            text = f"broker {chosen} is elected"
            text += " from outside the ISR: acknowledged records may be lost" if chosen not in view.isr else ""
        return self._decision(step, rule, chosen, text, selector)

    def _decision(
        self, step: str | None, rule: LeaderRule, leader: int | None, text: str, selector: str | None = None
    ) -> Decision:
        view = self._cluster.view(self._row)
        return Decision(
            step, rule, leader, text, view.isr, tuple(self._candidates(view, rule, leader, selector)), selector
        )

    def _candidates(
        self, view: PartitionView, rule: LeaderRule, leader: int | None, selector: str | None
    ) -> Iterator[CandidateReplica]:
        leader_position = view.replicas.index(leader) if leader in view.replicas else None
        for position, broker_id in enumerate(view.replicas):
            obstacle = self._obstacle(broker_id)
            if broker_id == leader:
                status, reason = CandidateStatus.CHOSEN, _why_chosen(position, broker_id in view.isr)
            elif obstacle is not None:
                status, reason = obstacle
            elif rule is LeaderRule.REASSIGN and broker_id in view.removing_replicas:
                status, reason = CandidateStatus.REMOVING, "it leaves the partition in this reassignment"
            elif rule is LeaderRule.PREFERRED and position:
                status, reason = CandidateStatus.NOT_PREFERRED, f"the preferred replica is broker {view.replicas[0]}"
            elif rule not in (LeaderRule.INITIAL, LeaderRule.OFFLINE_UNCLEAN) and broker_id not in view.isr:
                status, reason = CandidateStatus.OUT_OF_SYNC, self._out_of_sync(view)
            elif leader_position is not None and position > leader_position:
                status, reason = CandidateStatus.LATER, f"broker {leader} comes first in the assignment"
            elif rule is LeaderRule.STAYS:
                status, reason = (
                    CandidateStatus.EARLIER,
                    "it is live and in the ISR: a preferred election or a failure could move leadership",
                )
            else:
                status, reason = (
                    CandidateStatus.PASSED_OVER,
                    f"it could lead, but selector {selector or 'built-in'} chose otherwise",
                )
            yield CandidateReplica(broker_id, position, status, reason)

    def _obstacle(self, broker_id: int) -> tuple[CandidateStatus, str] | None:
        """Why a replica cannot lead with any ISR. None if it can."""
        brokers, p = self._cluster.brokers, self._cluster.partitions
        index = brokers.find(broker_id)
        if index is None or not brokers.registered[index]:
            return CandidateStatus.DEAD, f"broker {broker_id} is not registered"
        if brokers.shutting_down[index]:
            return CandidateStatus.SHUTTING_DOWN, f"broker {broker_id} has asked for controlled shutdown"
        if index in p.flagged_replicas(self._row, ReplicaFlag.OFFLINE_DIR):
            return CandidateStatus.OFFLINE_DIR, f"the log directory of broker {broker_id} that holds it is offline"
        return None

    def _out_of_sync(self, view: PartitionView) -> str:
        isr = ",".join(map(str, view.isr)) or "empty"
        return f"it is live, but not in the ISR ({isr}); {self._unclean_setting()}"

    def _why_no_leader(self, view: PartitionView, unclean_allowed: bool) -> str:
        live = [broker_id for broker_id in view.replicas if self._obstacle(broker_id) is None]
        if not view.replicas:
            return "no replica is assigned"
        if not live:
            return "no live replica"
        if any(broker_id in view.isr for broker_id in live):
            return "a live replica is in the ISR, so the next election will choose it"
        wait = "an election now would be unclean" if unclean_allowed else self._unclean_setting()
        return f"no live replica is in the ISR; {wait}"

    def _unclean_allowed(self) -> bool:
        topics = self._cluster.topics
        setting = int(topics.unclean[self._cluster.partitions.topic[self._row]])
        return self._config.unclean_by_default if setting == UNSET else setting == 1

    def _unclean_setting(self) -> str:
        if self._unclean_allowed():
            return "unclean elections are allowed, but only when no ISR member is live"
        return "unclean.leader.election.enable is false"


def _leader(view: PartitionView) -> int | None:
    return None if view.leader in (None, NO_LEADER) else view.leader


def _why_chosen(position: int, in_sync: bool) -> str:
    position_text = "the preferred replica" if position == 0 else f"number {position + 1} in the assignment"
    return f"{position_text}, live and {'in' if in_sync else 'outside'} the ISR"
