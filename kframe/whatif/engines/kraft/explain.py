"""Explain the leader of a partition in a KRaft cluster: the rule, and why the other replicas were not elected.

The rules are those of Kafka 4.4 ``PartitionChangeBuilder.electLeader``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from kframe.core.kraft.replication.leader_selection import Candidates, LeaderSelection
from kframe.model.arrays import Int32, UInt8
from kframe.model.elections import selector_name
from kframe.model.ids import NO_LEADER, ElectionKind, RecoveryState
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import PartitionRecord
from kframe.model.kraft.views import partition_record
from kframe.whatif.engines.kraft.controller import WhatIfController
from kframe.whatif.results.explanation import CandidateReplica, Decision


class KraftRule(StrEnum):
    """The rules by which a KRaft controller chooses leaders; the values describe them."""

    STAYS = "no election: a leader stays while it is active, its log directory is online and it is in the ISR"
    ISR = "clean election: the first active replica in assignment order that is in the ISR"
    ELR = "election from the ELR: the ISR is empty, so the first active replica in assignment order that is in the ELR"
    LAST_KNOWN = "election of the last-known leader: ISR and ELR are empty, and it is active again; unclean"
    UNCLEAN = "unclean election: the first active replica in assignment order, in sync or not"
    PREFERRED = "preferred election: the first replica of the assignment, if it is active and in the ISR"
    NONE = "no replica may lead: the partition waits"


class KraftCandidateStatus(StrEnum):
    """The outcome for a replica."""

    CHOSEN = "chosen"
    LATER = "later in the assignment"
    EARLIER = "earlier in the assignment, but no election was held since"
    OUT_OF_SYNC = "neither in the ISR nor in the ELR"
    NOT_NEEDED = "in the ELR, which counts only while the ISR is empty"
    UNREGISTERED = "not registered"
    FENCED = "fenced"
    SHUTTING_DOWN = "in controlled shutdown"
    OFFLINE_DIRECTORY = "log directory offline"
    NOT_PREFERRED = "not the preferred replica"
    PASSED_OVER = "passed over by the leader selector"


@dataclass(frozen=True, slots=True)
class _Choice:
    """The input of an election: broker ids, and the active brokers at that time."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    active: frozenset[int]
    former: int
    kind: KraftElection


class _ObservedSelection:
    """Chooses as another selection does, and reports each choice before it is stored."""

    def __init__(self, selection: LeaderSelection, on_choice: Callable[[Candidates, Int32], None]) -> None:
        self._selection = selection
        self._on_choice = on_choice

    def choose(self, metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        """See ``LeaderSelection``."""
        leader, unclean = self._selection.choose(metadata, candidates)
        self._on_choice(candidates, leader)
        return leader, unclean


class KraftElectionExplainer:
    """Explains elections of one partition by the rules."""

    def __init__(self, controller: WhatIfController, row: int) -> None:
        self._selectors = controller.selectors
        self._context = controller.context
        self._row = row

    @property
    def replicas(self) -> tuple[int, ...]:
        """See ``ElectionExplainer``."""
        return self._state().replicas

    @property
    def isr(self) -> tuple[int, ...]:
        """See ``ElectionExplainer``."""
        return self._state().isr

    @property
    def leader(self) -> int | None:
        """See ``ElectionExplainer``."""
        leader = self._state().leader
        return None if leader == NO_LEADER else leader

    @contextmanager
    def observe(self, step: str) -> Iterator[list[Decision]]:
        """See ``ElectionExplainer``."""
        elections: list[Decision] = []

        def on_choice(candidates: Candidates, leader: Int32) -> None:
            for position in np.flatnonzero(candidates.rows == self._row).tolist():
                selector = selector_name(self._selectors, ElectionKind.OFFLINE)
                decision = self.election(step, candidates, position, int(leader[position]), selector)
                if decision is not None:
                    elections.append(decision)

        selection = self._context.selection
        self._context.selection = _ObservedSelection(selection, on_choice)
        try:
            yield elections
        finally:
            self._context.selection = selection

    def current_decision(self) -> Decision:
        """The current leader: the rule that would elect it now, or STAYS."""
        state = self._state()
        brokers = self._context.metadata.brokers
        active = frozenset(broker_id for broker_id in state.replicas if brokers.is_active(broker_id))
        choice = _Choice(
            state.replicas,
            state.isr,
            state.eligible_leader_replicas or (),
            state.last_known_elr or (),
            active,
            state.leader,
            self._kind(),
        )
        leader = state.leader
        if leader == NO_LEADER:
            text = f"it has no leader: {self._no_leader_reason(choice)}"
            return self._decision(None, KraftRule.NONE, None, text, choice, None)
        if state.leader_recovery_state == RecoveryState.RECOVERING:
            text = f"broker {leader} was elected uncleanly and is still recovering"
            return self._decision(None, KraftRule.UNCLEAN, leader, text, choice, None)
        first = next((replica for replica in choice.replicas if self._may_lead(replica, choice)), None)
        if first == leader:
            suffix = "as the preferred replica" if leader == state.replicas[0] else "as the first eligible replica"
            return self._decision(None, KraftRule.ISR, leader, f"broker {leader} leads {suffix}", choice, None)
        other = "no broker" if first is None else f"broker {first}"
        text = f"broker {leader} was elected earlier; without a present leader, {other} would be elected now"
        return self._decision(None, KraftRule.STAYS, leader, text, choice, None)

    def election(
        self, step: str, candidates: Candidates, position: int, chosen: int, selector: str | None
    ) -> Decision | None:
        """The election of a leader that differs from the current one; None if the leader stays."""
        metadata, state = self._context.metadata, self._state()
        ids_of = metadata.brokers.ids_of
        leader = ids_of([chosen])[0]
        if leader == state.leader:
            return None
        choice = _Choice(
            ids_of(candidates.replicas[position].tolist()),
            ids_of(candidates.isr[position].tolist()),
            tuple(sorted(ids_of(candidates.elr[position].tolist()))),
            state.last_known_elr or (),
            frozenset(ids_of(np.flatnonzero(candidates.active).tolist())),
            state.leader,
            KraftElection(int(candidates.kinds[position])),
        )
        if leader == NO_LEADER:
            text = f"no broker can lead: {self._no_leader_reason(choice)}"
            return self._decision(step, KraftRule.NONE, None, text, choice, selector)
        if leader in choice.isr:
            is_preferred = choice.kind is KraftElection.PREFERRED and leader == choice.replicas[0]
            rule = KraftRule.PREFERRED if is_preferred else KraftRule.ISR
            return self._decision(step, rule, leader, f"broker {leader} is elected", choice, selector)
        if leader in choice.elr:
            text = f"broker {leader} is elected from the ELR: it has all committed records"
            return self._decision(step, KraftRule.ELR, leader, text, choice, selector)
        rule = KraftRule.LAST_KNOWN if choice.last_known_elr == (leader,) else KraftRule.UNCLEAN
        text = f"broker {leader} is elected from outside ISR and ELR: committed records may be lost"
        return self._decision(step, rule, leader, text, choice, selector)

    def _state(self) -> PartitionRecord:
        return partition_record(self._context.metadata, self._row)

    def _kind(self) -> KraftElection:
        allowed = self._context.unclean_enabled(np.array([self._row], np.int32))[0]
        return KraftElection.UNCLEAN if allowed else KraftElection.ONLINE

    def _decision(
        self, step: str | None, rule: KraftRule, leader: int | None, text: str, choice: _Choice, selector: str | None
    ) -> Decision:
        candidates = tuple(self._candidates(rule, leader, choice, selector))
        return Decision(step, rule, leader, text, choice.isr, candidates, selector, choice.elr, choice.last_known_elr)

    def _candidates(
        self, rule: KraftRule, leader: int | None, choice: _Choice, selector: str | None
    ) -> Iterator[CandidateReplica]:
        leader_position = choice.replicas.index(leader) if leader in choice.replicas else None
        needs_member = rule not in (KraftRule.UNCLEAN, KraftRule.LAST_KNOWN)
        for position, broker_id in enumerate(choice.replicas):
            obstacle = self._obstacle(broker_id, choice)
            status, reason = (
                KraftCandidateStatus.PASSED_OVER,
                f"it could lead, but selector {selector or 'built-in'} chose otherwise",
            )
            if broker_id == leader:
                status, reason = KraftCandidateStatus.CHOSEN, _choice_reason(position, broker_id, choice)
            elif obstacle is not None:
                status, reason = obstacle
            elif rule is KraftRule.PREFERRED and position:
                status = KraftCandidateStatus.NOT_PREFERRED
                reason = f"the preferred replica is broker {choice.replicas[0]}"
            elif needs_member and choice.isr and broker_id not in choice.isr and broker_id in choice.elr:
                status, reason = KraftCandidateStatus.NOT_NEEDED, f"the ISR ({_ids(choice.isr)}) is not empty"
            elif needs_member and broker_id not in (choice.isr or choice.elr):
                status, reason = KraftCandidateStatus.OUT_OF_SYNC, self._out_of_sync(choice)
            elif leader_position is not None and position > leader_position:
                status, reason = KraftCandidateStatus.LATER, f"broker {leader} precedes it in the assignment"
            elif rule is KraftRule.STAYS:
                status = KraftCandidateStatus.EARLIER
                reason = "it is active and in sync: a preferred election could elect it"
            elif rule is KraftRule.LAST_KNOWN:
                status = KraftCandidateStatus.OUT_OF_SYNC
                reason = f"only broker {leader} is known to have led last"
            yield CandidateReplica(broker_id, position, status, reason)

    def _obstacle(self, broker_id: int, choice: _Choice) -> tuple[KraftCandidateStatus, str] | None:
        """Why a replica cannot lead with any ISR and ELR; None if it can."""
        metadata = self._context.metadata
        registration = metadata.brokers.registrations.get(broker_id)
        if registration is None:
            return KraftCandidateStatus.UNREGISTERED, f"broker {broker_id} is not registered"
        if broker_id not in choice.active:
            if registration.in_controlled_shutdown and not registration.fenced:
                return KraftCandidateStatus.SHUTTING_DOWN, f"broker {broker_id} is in controlled shutdown"
            return KraftCandidateStatus.FENCED, f"broker {broker_id} is fenced"
        state = self._state()
        if broker_id in state.replicas:
            directory = state.directories[state.replicas.index(broker_id)]
            if not registration.has_online_directory(directory):
                return KraftCandidateStatus.OFFLINE_DIRECTORY, f"its log directory {uuid_text(directory)} is offline"
        return None

    def _may_lead(self, broker_id: int, choice: _Choice) -> bool:
        return broker_id in (choice.isr or choice.elr) and self._obstacle(broker_id, choice) is None

    def _no_leader_reason(self, choice: _Choice) -> str:
        active = [broker_id for broker_id in choice.replicas if self._obstacle(broker_id, choice) is None]
        if not active:
            return "no replica is active"
        if any(self._may_lead(broker_id, choice) for broker_id in active):
            return "an active replica is eligible, so the next election will choose it"
        members = f"ISR ({_ids(choice.isr)}) and ELR ({_ids(choice.elr)}) have no active member"
        allowed = choice.kind is KraftElection.UNCLEAN
        return f"{members}; {'an election now would be unclean' if allowed else _DISABLED}"

    def _out_of_sync(self, choice: _Choice) -> str:
        setting = (
            "unclean elections are allowed, but only without an active member"
            if choice.kind is KraftElection.UNCLEAN
            else _DISABLED
        )
        return f"it is active, but not in ISR ({_ids(choice.isr)}) or ELR ({_ids(choice.elr)}); {setting}"


_DISABLED = "unclean.leader.election.enable is false"


def _ids(broker_ids: tuple[int, ...]) -> str:
    return ",".join(map(str, broker_ids)) or "empty"


def _choice_reason(position: int, broker_id: int, choice: _Choice) -> str:
    position_text = "the preferred replica" if position == 0 else f"number {position + 1} in the assignment"
    where = "in the ISR" if broker_id in choice.isr else "in the ELR" if broker_id in choice.elr else "out of sync"
    return f"{position_text}, active and {where}"
