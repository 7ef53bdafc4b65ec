"""Checks of a plan by the rules of a KRaft controller.

Source: Kafka 4.4 ``ReplicationControlManager.alterPartitionReassignment`` and ``PartitionReassignmentReplicas``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.kraft.releases import REFUSES_CORDONED, CompletionRule, completion_rule
from kframe.model.lists import members
from kframe.plans.check.findings import Check, Findings, Severity
from kframe.plans.check.kraft_targets import KraftTargets
from kframe.plans.check.resolve import CheckedPlan, findings_at, is_among, is_moving, lists_at


def check_kraft_rules(checked: CheckedPlan, kraft: KraftTargets) -> list[Findings]:
    """The findings that depend on KRaft rules. ``checked`` is a plan for a KRaft cluster."""
    lists, moved = checked.plan.targets.replicas, (checked.rows >= 0) & ~checked.unchanged
    required, impossible = _required_members(checked, kraft)
    cordoned = findings_at(Check.CORDONED_BROKER, lists.any(is_among(lists, kraft.cordoned)))
    if kraft.release < REFUSES_CORDONED:
        cordoned = replace(cordoned, lowered=Severity.WARNING)
    findings = [
        findings_at(Check.DEAD_BROKER, lists.any(is_among(lists, kraft.unregistered))),
        cordoned,
        findings_at(Check.FENCED_BROKER, moved & required.any(is_among(required, kraft.fenced))),
        findings_at(Check.BROKER_SHUTTING_DOWN, moved & required.any(is_among(required, kraft.in_controlled_shutdown))),
        findings_at(Check.CANNOT_COMPLETE, impossible),
        findings_at(Check.MIN_ISR, moved & _below_min_isr(checked, kraft)),
        findings_at(Check.CORDONED_DIRECTORIES, checked.adding.any(is_among(checked.adding, kraft.partly_cordoned))),
        findings_at(Check.NO_OP, checked.unchanged & ~is_moving(checked)),
    ]
    return [finding for finding in findings if len(finding)]


def kraft_detail(checked: CheckedPlan, kraft: KraftTargets, check: Check, position: int) -> str:
    """The text of a finding about the partition at ``position`` of the plan."""
    targets = checked.plan.targets

    def named(ids: Int32, lists: Ragged = targets.replicas) -> str:
        return ", ".join(map(str, lists[position][np.isin(lists[position], ids)].tolist()))

    match check:
        case Check.DEAD_BROKER:
            return f"broker {named(kraft.unregistered)} is not registered"
        case Check.CORDONED_BROKER:
            detail = f"all log directories of broker {named(kraft.cordoned)} are cordoned"
            accepted = f": Kafka {kraft.release} accepts the plan, {REFUSES_CORDONED} refuses it"
            return detail + (accepted if kraft.release < REFUSES_CORDONED else "")
        case Check.CORDONED_DIRECTORIES:
            adding = named(kraft.partly_cordoned, checked.adding)
            return f"some log directories of broker {adding} are cordoned: the others get the replica"
        case Check.FENCED_BROKER:
            fenced = named(kraft.fenced, _required_members(checked, kraft)[0])
            return f"broker {fenced} is fenced: it must be unfenced and catch up"
        case Check.BROKER_SHUTTING_DOWN:
            stopping = named(kraft.in_controlled_shutdown, _required_members(checked, kraft)[0])
            return f"broker {stopping} is in controlled shutdown: it must restart and catch up"
        case _:
            active = int(_active_counts(checked, kraft)[position])
            minimum = int(_min_isr(checked, kraft)[position])
            return f"{active} of its target brokers can be in the ISR, and min.insync.replicas is {minimum}"


def _required_members(checked: CheckedPlan, kraft: KraftTargets) -> tuple[Ragged, Bool]:
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
    rule = completion_rule(kraft.release)
    all_required = ~lists.any(~is_among(lists, kraft.inactive))  # One ISR member must remain.
    all_required |= (adding.counts < removing.counts) & (rule == CompletionRule.ALL_IF_FEWER_ADDED)
    all_required |= ((adding.counts > 0) | (removing.counts > 0)) & (rule == CompletionRule.ALL)
    required = lists.keep(all_required[lists.owners] | members(lists, adding))
    return required, adding.any(members(adding, removing)) | lists.any(members(lists, removing))


def _replace_empty(lists: Ragged, others: Ragged) -> Ragged:
    count = len(lists)
    return Ragged.chain([lists, others]).take(np.where(lists.counts > 0, np.arange(count), count + np.arange(count)))


def _active_counts(checked: CheckedPlan, kraft: KraftTargets) -> Int32:
    """(k,) the target brokers that can be in the ISR."""
    lists = checked.plan.targets.replicas
    return lists.count(is_among(lists, kraft.assignable) & ~is_among(lists, kraft.inactive))


def _min_isr(checked: CheckedPlan, kraft: KraftTargets) -> Int32:
    """(k,) ``min.insync.replicas`` of each partition of the plan. 0 where it is not known."""
    if kraft.min_isr is None:
        return np.zeros(len(checked.plan), np.int32)
    minimum: Int32 = np.append(kraft.min_isr, 0)[checked.topics].astype(np.int32)
    return minimum


def _below_min_isr(checked: CheckedPlan, kraft: KraftTargets) -> Bool:
    below: Bool = checked.valid & (_active_counts(checked, kraft) < _min_isr(checked, kraft))
    return below
