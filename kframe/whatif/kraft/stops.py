"""Restarts of brokers."""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.registration import BrokerRegistrationRequest
from kframe.errors import InputError
from kframe.snapshot import Snapshot

#: ``previousBrokerEpoch`` of a broker after an unclean shutdown (Kafka ``BrokerRegistrationRequest``).
NO_PREVIOUS_EPOCH = -1


def registration_request(
    context: KraftContext, snapshot: Snapshot, broker_id: int, clean: bool, offset: int
) -> BrokerRegistrationRequest:
    """The registration of a new process of a broker with the directories of the former one.

    The session of the former process has expired. Raises InputError for a broker without a registration.
    """
    registration = context.metadata.brokers.registrations.get(broker_id)
    if registration is None:
        raise InputError("brokers", f"broker {broker_id}", "a broker with a registration")
    context.heartbeats.contact_ns.pop((broker_id, registration.broker_epoch), None)
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=context.settings.cluster_id,
        incarnation_id=uuid5(NAMESPACE_OID, f"{snapshot.source.name}/{broker_id}/{offset}"),
        end_points=registration.end_points,
        features=registration.features,
        rack=registration.rack,
        directories=registration.directories,
        previous_broker_epoch=registration.broker_epoch if clean else NO_PREVIOUS_EPOCH,
    )
