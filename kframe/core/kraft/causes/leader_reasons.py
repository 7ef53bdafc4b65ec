"""Explain a leader: the rule that elected it, and why the other replicas were not elected."""

from __future__ import annotations

from typing import Final

from kframe.core.kraft.causes.change_causes import LEAVING, UNFENCED, ChangeCause
from kframe.core.kraft.causes.request_causes import PREFERRED
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.records import NO_LEADER_CHANGE, PartitionChangeRecord, PartitionRecord

NO_CANDIDATE: Final = "no replica may lead: none is active, online, and in the ISR or ELR"
UNCHANGED: Final = "the leader stays; its epoch rises because a replica left the partition"
PREFERRED_REPLICA: Final = "preferred election: the first replica is eligible"
IN_SYNC: Final = "first eligible in-sync replica in the order of replicas"
FROM_ELR: Final = "the ISR is empty: first eligible member of the ELR in the order of replicas"
LAST_KNOWN: Final = "ISR and ELR are empty: the last-known leader is online"
UNCLEAN_REPLICA: Final = "unclean: no member of ISR or ELR may lead, first online replica in the order of replicas"


def leader_rule(before: PartitionRecord, change: PartitionChangeRecord, cause: ChangeCause | None) -> str:
    """The rule that gave ``change`` its leader (Kafka ``PartitionChangeBuilder.electLeader``).

    ``before`` is the whole state before the change. The change must have a leader.
    """
    assert change.leader != NO_LEADER_CHANGE
    leader, elr = change.leader, before.eligible_leader_replicas or ()
    isr = _isr_of_election(before, change, cause)
    replicas = before.replicas if change.replicas is None else change.replicas
    if leader == NO_LEADER:
        return NO_CANDIDATE
    if leader == before.leader:
        return UNCHANGED
    if leader in isr:
        is_preferred = cause is not None and cause.event == PREFERRED and leader == replicas[0]
        return PREFERRED_REPLICA if is_preferred else IN_SYNC
    if not isr and (leader in elr or leader in before.isr):
        return FROM_ELR
    if not isr and leader in (before.last_known_elr or ()):
        return LAST_KNOWN
    return UNCLEAN_REPLICA


def reasons_not_elected(
    before: PartitionRecord,
    change: PartitionChangeRecord,
    cause: ChangeCause | None,
    registrations: dict[int, BrokerRegistration],
) -> dict[int, str]:
    """The reason why each other replica was not elected, by broker id in the order of replicas."""
    replicas = before.replicas if change.replicas is None else change.replicas
    directories = dict(zip(before.replicas, before.directories, strict=False))
    isr = _isr_of_election(before, change, cause)
    eligible = isr or before.eligible_leader_replicas or ()
    reasons: dict[int, str] = {}
    for replica in replicas:
        registration = registrations.get(replica)
        if replica == change.leader:
            continue
        if cause is not None and cause.event in LEAVING and replica == cause.broker:
            reasons[replica] = cause.event
        elif registration is None:
            reasons[replica] = "not registered"
        elif registration.fenced and not (cause and cause.event == UNFENCED and cause.broker == replica):
            reasons[replica] = "fenced"
        elif registration.in_controlled_shutdown:
            reasons[replica] = "in controlled shutdown"
        elif replica in directories and not registration.has_online_directory(directories[replica]):
            reasons[replica] = "its directory is offline"
        elif replica not in eligible:
            reasons[replica] = (
                "neither in the ISR nor in the ELR" if before.eligible_leader_replicas else "not in the ISR"
            )
        elif change.leader in replicas and replicas.index(replica) > replicas.index(change.leader):
            reasons[replica] = "later in the order of replicas"
        else:
            reasons[replica] = "eligible, but the present leader stays"
    return reasons


def _isr_of_election(
    before: PartitionRecord, change: PartitionChangeRecord, cause: ChangeCause | None
) -> tuple[int, ...]:
    """The ISR before the election. Unclean elections and elections from the ELR replace it afterwards."""
    leaving = cause.broker if cause is not None and cause.event in LEAVING else None
    stored = tuple(member for member in before.isr if member != leaving)
    if change.isr is None or (len(change.isr) == 1 and change.isr[0] == change.leader and not stored):
        return stored
    if change.isr == (change.leader,) and change.leader not in stored:
        return stored
    return change.isr
