"""The rules of a KRaft controller for plans.

Source: Kafka 4.4 ``ReplicationControlManager.alterPartitionReassignment`` and ``PartitionReassignmentReplicas``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.releases import (
    COMPLETION_CHANGES,
    RULES,
    CompletionRule,
    ReleaseRule,
    completion_rule,
    has_rule,
)
from kframe.model.lists import lists_at, members
from kframe.model.texts import ids_text
from kframe.plans.check.findings import Check, Findings, Severity
from kframe.plans.check.kraft_harm import new_harm
from kframe.plans.check.rules import CheckedPlan, Harm, StagedChange
from kframe.snapshot import Snapshot
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.settings import knows_min_insync
from kframe.whatif.results.release import ClusterRelease, ReleaseRecord


@dataclass(frozen=True, slots=True, eq=False)
class KraftRules:
    """Implements ``PlanRules`` by the state of brokers and topics. Arrays have broker ids.

    ``assignable``: registered, and not refused as cordoned by the ``release``. ``cordoned``: all log directories are
    cordoned. ``partly_cordoned``: some are. ``min_isr`` (t,): ``min.insync.replicas`` of each topic, or None if the
    snapshot does not have it. ``assumptions``: those of the rules.
    """

    name: str
    release: ClusterRelease
    assumptions: tuple[str, ...]
    assignable: Int32
    unregistered: Int32
    cordoned: Int32
    partly_cordoned: Int32
    fenced: Int32
    in_controlled_shutdown: Int32
    min_isr: Int32 | None

    @property
    def inactive(self) -> Int32:
        """Brokers that cannot be in an ISR until they start again."""
        return np.concatenate([self.fenced, self.in_controlled_shutdown])

    @staticmethod
    def of(snapshot: Snapshot, config: Mapping[str, object] | None = None) -> KraftRules:
        """The state of the brokers and topics in a snapshot of a KRaft cluster; ``config`` states what it lacks."""
        engine = KraftEngine(snapshot, config)
        registrations, release = engine.cluster.brokers.registrations, engine.known_release
        refuses_cordoned = has_rule(release.release, ReleaseRule.CORDONED_REFUSED)

        def brokers(has: Callable[[BrokerRegistration], bool]) -> Int32:
            return np.array([broker_id for broker_id, stored in registrations.items() if has(stored)], np.int32)

        known = [facts.broker_id for facts in snapshot.brokers]
        topics = np.arange(len(snapshot.topics), dtype=np.int32)
        return KraftRules(
            name=engine.rules,
            release=release,
            assumptions=engine.assumptions,
            assignable=brokers(lambda stored: not refuses_cordoned or stored.has_uncordoned_directory),
            unregistered=np.array([broker_id for broker_id in known if broker_id not in registrations], np.int32),
            cordoned=brokers(lambda stored: not stored.has_uncordoned_directory),
            partly_cordoned=brokers(lambda stored: stored.has_uncordoned_directory and bool(stored.cordoned)),
            fenced=brokers(lambda stored: stored.fenced),
            in_controlled_shutdown=brokers(lambda stored: not stored.fenced and stored.in_controlled_shutdown),
            min_isr=engine.context.configured_min_isr(topics) if knows_min_insync(snapshot.topics, config) else None,
        )

    def refused(self, targets: Ragged, adding: Ragged) -> Bool:
        """See ``PlanRules``."""
        return targets.any(~np.isin(targets.values, self.assignable))

    def findings(self, checked: CheckedPlan) -> list[Findings]:
        """See ``PlanRules``."""
        lists, moved = checked.plan.targets.replicas, (checked.rows >= 0) & ~checked.unchanged
        required, impossible = self._required_members(checked)
        cordoned = Findings.at(Check.CORDONED_BROKER, lists.any(np.isin(lists.values, self.cordoned)))
        if not has_rule(self.release.release, ReleaseRule.CORDONED_REFUSED):
            cordoned = replace(cordoned, lowered=Severity.WARNING)
        return [
            Findings.at(Check.DEAD_BROKER, lists.any(np.isin(lists.values, self.unregistered))),
            cordoned,
            Findings.at(Check.FENCED_BROKER, moved & required.any(np.isin(required.values, self.fenced))),
            Findings.at(
                Check.BROKER_SHUTTING_DOWN, moved & required.any(np.isin(required.values, self.in_controlled_shutdown))
            ),
            Findings.at(Check.CANNOT_COMPLETE, impossible),
            Findings.at(Check.MIN_ISR, moved & checked.valid & (self._active_counts(checked) < self._min_isr(checked))),
            Findings.at(
                Check.CORDONED_DIRECTORIES, checked.adding.any(np.isin(checked.adding.values, self.partly_cordoned))
            ),
            Findings.at(Check.NO_OP, checked.unchanged & ~checked.is_moving & ~checked.plan.names_directories()),
        ]

    def detail(self, checked: CheckedPlan, check: Check, position: int) -> str:
        """See ``PlanRules``."""
        targets = checked.plan.targets

        def named(ids: Int32, lists: Ragged = targets.replicas) -> str:
            return ids_text(lists[position][np.isin(lists[position], ids)])

        match check:
            case Check.DEAD_BROKER:
                return f"broker {named(self.unregistered)} is not registered"
            case Check.CORDONED_BROKER:
                detail = f"all log directories of broker {named(self.cordoned)} are cordoned"
                since = RULES[ReleaseRule.CORDONED_REFUSED].since
                accepted = f": Kafka {self.release.release} accepts the plan, {since} refuses it"
                return detail + (accepted if self.release.release < since else "")
            case Check.CORDONED_DIRECTORIES:
                adding = named(self.partly_cordoned, checked.adding)
                return f"some log directories of broker {adding} are cordoned: the others get the replica"
            case Check.FENCED_BROKER:
                fenced = named(self.fenced, self._required_members(checked)[0])
                return f"broker {fenced} is fenced: it must be unfenced and catch up"
            case Check.BROKER_SHUTTING_DOWN:
                stopping = named(self.in_controlled_shutdown, self._required_members(checked)[0])
                return f"broker {stopping} is in controlled shutdown: it must restart and catch up"
            case _:
                active = int(self._active_counts(checked)[position])
                minimum = int(self._min_isr(checked)[position])
                return f"{active} of its target brokers can be in the ISR, and min.insync.replicas is {minimum}"

    def release_record(self, checked: CheckedPlan) -> ReleaseRecord:
        """See ``PlanRules``."""
        lists = checked.plan.targets.replicas
        required = {rule: self._required_members(checked, rule)[0] for rule in CompletionRule}
        waits = {rule: brokers.any(np.isin(brokers.values, self.inactive)) for rule, brokers in required.items()}
        moved = (checked.rows >= 0) & ~checked.unchanged & checked.valid
        consulted = {
            rule for rule, before, since in COMPLETION_CHANGES if (moved & (waits[before] != waits[since])).any()
        }
        if np.isin(lists.values, self.cordoned).any():
            consulted.add(ReleaseRule.CORDONED_REFUSED)
        return self.release.record(consulted)

    def _required_members(self, checked: CheckedPlan, rule: CompletionRule | None = None) -> tuple[Ragged, Bool]:
        """The target brokers that must be in the ISR to complete the reassignment; (k,) whether it can never complete.

        An empty list of adding or removing replicas does not replace a stored one. So a replica can be in both, and a
        target can have a replica that is being removed.
        """
        lists, partitions = checked.plan.targets.replicas, checked.snapshot.partitions
        known = checked.rows >= 0
        adding = lists.keep(~members(lists, checked.current) & known[lists.owners])
        removing = checked.current.keep(~members(checked.current, lists))
        if partitions.adding_replicas is not None:
            adding = _replace_empty(adding, lists_at(partitions.adding_replicas, checked.rows))
        if partitions.removing_replicas is not None:
            removing = _replace_empty(removing, lists_at(partitions.removing_replicas, checked.rows))
        rule = completion_rule(self.release.release) if rule is None else rule
        all_required = ~lists.any(~np.isin(lists.values, self.inactive))  # One ISR member must remain.
        all_required |= (adding.counts < removing.counts) & (rule == CompletionRule.ALL_IF_FEWER_ADDED)
        all_required |= ((adding.counts > 0) | (removing.counts > 0)) & (rule == CompletionRule.ALL)
        required = lists.keep(all_required[lists.owners] | members(lists, adding))
        return required, adding.any(members(adding, removing)) | lists.any(members(lists, removing))

    def _active_counts(self, checked: CheckedPlan) -> Int32:
        """(k,) the target brokers that can be in the ISR."""
        lists = checked.plan.targets.replicas
        return lists.count(np.isin(lists.values, self.assignable) & ~np.isin(lists.values, self.inactive))

    def _min_isr(self, checked: CheckedPlan) -> Int32:
        """(k,) ``min.insync.replicas`` of each partition of the plan. 0 where it is not known."""
        if self.min_isr is None:
            return np.zeros(len(checked.plan), np.int32)
        minimum: Int32 = np.append(self.min_isr, 0)[checked.topics].astype(np.int32)
        return minimum

    def harm(self, change: StagedChange) -> Iterator[Harm]:
        """See ``PlanRules``."""
        return new_harm(change)


def _replace_empty(lists: Ragged, others: Ragged) -> Ragged:
    count = len(lists)
    return Ragged.chain([lists, others]).take(np.where(lists.counts > 0, np.arange(count), count + np.arange(count)))
