"""What the controller must answer to registrations of brokers, and to their removal."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import (
    RequestRefused,
    registration,
)
from verification.kraft.simulation.expected.responses import difference, error_of
from verification.kraft.simulation.image import Image
from verification.kraft.simulation.requests import Decided


def compare_registration(
    request: registration.BrokerRegistrationRequest, image: Image, end: int, decided: Decided
) -> str | None:
    """The response to BrokerRegistration: the epoch of the process, or the end of the log; or a valid session."""
    broker = image.brokers.get(request.broker_id)
    is_same = broker is not None and broker.incarnation_id == request.incarnation_id
    if isinstance(decided, RequestRefused):
        if decided.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION and broker is not None and not is_same:
            return None
        return f"a registration is refused: {decided}"
    return difference(broker.broker_epoch if broker is not None and is_same else end, decided.response)


def compare_unregistration(broker_id: int, image: Image, end: int, decided: Decided) -> str | None:
    """The response to UnregisterBroker."""
    expected = ErrorCode.NONE if broker_id in image.brokers else ErrorCode.BROKER_ID_NOT_REGISTERED
    return difference(expected, error_of(decided))
