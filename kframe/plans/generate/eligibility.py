"""Which brokers receive new replicas, and why the others do not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kframe.errors import ParameterError
from kframe.model.texts import counted
from kframe.plans.generate.request import PlanRequest
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import BrokerFacts


def refusals(snapshot: Snapshot, request: PlanRequest, racks: Mapping[int, str | None]) -> dict[int, str]:
    """Why each broker receives no replica, by id, such as ``is fenced``. Brokers that receive replicas are left out.

    ``racks`` has the rack of every broker of the plan.
    """
    facts = {broker.broker_id: broker for broker in snapshot.brokers}
    reasons = {}
    for broker_id, rack in racks.items():
        reason: str | None
        if broker_id in snapshot.controllers:
            reason = "is an instance of kframe"
        elif broker_id in request.remove_brokers or broker_id in request.replace:
            reason = "is removed"
        elif rack in request.evacuate_racks:
            reason = f"is in {rack}, which is evacuated"
        elif broker_id in request.exclude_brokers:
            reason = "is excluded"
        else:
            reason = _state(snapshot, facts[broker_id]) if broker_id in facts else None
        if reason is not None:
            reasons[broker_id] = reason
    return reasons


def check_targets(snapshot: Snapshot, request: PlanRequest, reasons: Mapping[int, str]) -> None:
    """Raise InputError for a replacement or an added broker that cannot receive replicas, or that is no new broker.

    ``reasons`` are those of ``refusals``.
    """
    targets = (("replace", tuple(request.replace.values())), ("add_brokers", request.add_brokers))
    for name, brokers in targets:
        for broker_id in brokers:
            if broker_id in reasons:
                raise ParameterError(
                    name, f"broker {broker_id}, which {reasons[broker_id]}", "a broker that can receive replicas"
                )
    for broker_id in request.add_brokers:
        if count := int(np.count_nonzero(snapshot.partitions.replicas.values == broker_id)):
            replicas = counted(count, "replica")
            raise ParameterError(
                "add_brokers",
                f"broker {broker_id}, which is in the cluster with {replicas}",
                "a broker without replicas; rebalance gives every broker its share",
            )


def broker_racks(snapshot: Snapshot, request: PlanRequest) -> dict[int, str | None]:
    """The rack of every broker, ascending by id: of those of the snapshot, and of added ones and replacements.

    A replacement that the snapshot does not have takes the rack of the replaced broker, unless the request has its
    rack. Raises InputError for an added broker whose rack in the snapshot is another.
    """
    racks = {broker.broker_id: broker.rack for broker in snapshot.brokers}
    for broker_id in (*request.add_brokers, *request.replace.values()):
        stated, known = request.racks.get(broker_id), racks.get(broker_id)
        if stated is not None and known not in (None, stated):
            raise ParameterError("racks", f"broker {broker_id} in {stated}", f"{known}, its rack in the snapshot")
        racks[broker_id] = known or stated
    for old, new in assumed_racks(snapshot, request).items():
        racks[new] = racks[old]
    return dict(sorted(racks.items()))


def assumed_racks(snapshot: Snapshot, request: PlanRequest) -> dict[int, int]:
    """The replacements that are assumed to be in the rack of the broker that they replace, by that broker."""
    racks = {broker.broker_id: broker.rack for broker in snapshot.brokers}
    return {
        old: new
        for old, new in request.replace.items()
        if new not in racks and new not in request.racks and racks.get(old) is not None
    }


def _state(snapshot: Snapshot, facts: BrokerFacts) -> str | None:
    """Why a controller accepts no new replica on a broker, or a replica would not join the ISR; None if it does.

    Kafka 4.4 ``ReplicationControlManager.validateManualPartitionAssignment``; KIP-1066 for cordoned directories. A
    broker whose registration is unknown is assumed to run if the snapshot has no ISRs to show that.
    """
    registration = facts.registration
    if registration is None:
        if facts.registered is False:
            return "is not registered"
        unknown = facts.registered is None and snapshot.partitions.leader is not None
        return "is not known to run: it leads no partition and is in no ISR" if unknown else None
    if registration.fenced:
        return "is fenced"
    if registration.in_controlled_shutdown:
        return "is in controlled shutdown"
    return None if registration.has_uncordoned_directory else "has only cordoned log directories"
