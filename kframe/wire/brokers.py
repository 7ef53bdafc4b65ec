"""Brokers in requests: the live leaders of LeaderAndIsr, the live brokers of UpdateMetadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from kframe.errors import ConfigError
from kframe.model.brokers import SECURITY_PROTOCOLS, Brokers, Endpoint, Registration
from kframe.wire.apis import LEADER_AND_ISR, UPDATE_METADATA
from kframe.wire.primitives import array, end_of_struct, int16, int32, nullable_string, string

#: The only listener in UpdateMetadata 0.
V0_LISTENER: Final = "PLAINTEXT"


class EncodedBrokers:
    """Encoded brokers of one kind of request. A broker is encoded at first use, and again after a new registration."""

    def __init__(self, encode: Callable[[Registration], bytes], others: Sequence[Registration] = ()) -> None:
        """``others`` are added to all registered brokers. No broker may have their ids. Raises ConfigError as
        ``encode`` does."""
        self._encode = encode
        self._others = {other.broker_id: encode(other) for other in others}
        self._encoded: dict[int, tuple[Registration, bytes]] = {}
        self._registered, self._registrations = b"", list[Registration | None]()
        self._by_id: list[tuple[int, Registration]] = []
        self._all_entries: list[bytes] | None = None

    def registered(self, brokers: Brokers) -> list[tuple[int, Registration]]:
        """Index and registration of registered brokers, ascending by id; the same list until they change."""
        registered = brokers.registered.tobytes()
        if registered != self._registered or brokers.registrations != self._registrations:
            self._registered, self._registrations = registered, list(brokers.registrations)
            self._by_id, self._all_entries = _registered_by_id(brokers), None
        return self._by_id

    def all_entries(self, brokers: Brokers) -> list[bytes]:
        """All registered brokers and the others, ascending by id. Raises ConfigError as ``encode`` does."""
        registered = self.registered(brokers)
        if self._all_entries is None:
            encoded = {registration.broker_id: self.of(index, registration) for index, registration in registered}
            self._all_entries = [entry for _, entry in sorted({**self._others, **encoded}.items())]
        return self._all_entries

    def of(self, index: int, registration: Registration) -> bytes:
        """The encoded broker of an index and registration. Raises ConfigError as ``encode`` does."""
        known = self._encoded.get(index)
        if known is None or known[0] is not registration:
            self._encoded[index] = known = registration, self._encode(registration)
        return known[1]


def live_leaders(api_version: int, listener: str) -> EncodedBrokers:
    """Brokers as live leaders of a LeaderAndIsr request: their addresses on the inter-broker listener.

    Raises ConfigError for a broker without that listener.
    """
    compact = api_version >= LEADER_AND_ISR.flexible

    def encode(registration: Registration) -> bytes:
        endpoint = endpoint_on(registration, listener)
        host = string(endpoint.host, compact=compact)
        return int32(registration.broker_id) + host + int32(endpoint.port) + end_of_struct(compact=compact)

    return EncodedBrokers(encode)


def live_brokers(api_version: int, others: Sequence[Registration] = ()) -> EncodedBrokers:
    """Brokers as live brokers of an UpdateMetadata request, including ``others``.

    Version 0 has the address on listener PLAINTEXT, later versions all endpoints. Raises ConfigError for endpoints that
    the version cannot encode: 0 without that listener, 1 and 2 with a listener not named after its protocol.
    """
    return EncodedBrokers(partial(_live_broker, api_version), others)


def endpoint_on(registration: Registration, listener: str) -> Endpoint:
    """The broker's endpoint on ``listener``. Raises ConfigError, naming both, if it has none."""
    for endpoint in registration.endpoints:
        if endpoint.listener == listener:
            return endpoint
    names = ", ".join(endpoint.listener for endpoint in registration.endpoints) or "none"
    raise ConfigError(f"listeners of broker {registration.broker_id}", names, f"a listener named {listener}")


def _registered_by_id(brokers: Brokers) -> list[tuple[int, Registration]]:
    rows = np.flatnonzero(brokers.registered)
    by_id = rows[np.argsort(brokers.ids[rows])].tolist()
    registered = [(index, brokers.registrations[index]) for index in by_id]
    return [(index, registration) for index, registration in registered if registration is not None]


def _live_broker(api_version: int, registration: Registration) -> bytes:
    broker_id = int32(registration.broker_id)
    if api_version == 0:
        endpoint = endpoint_on(registration, V0_LISTENER)
        return broker_id + string(endpoint.host, compact=False) + int32(endpoint.port)
    compact = api_version >= UPDATE_METADATA.flexible
    endpoints = [_endpoint(registration.broker_id, endpoint, api_version) for endpoint in registration.endpoints]
    rack = nullable_string(registration.rack, compact=compact) if api_version >= 2 else b""
    return broker_id + array(endpoints, compact=compact) + rack + end_of_struct(compact=compact)


def _endpoint(broker_id: int, endpoint: Endpoint, api_version: int) -> bytes:
    compact = api_version >= UPDATE_METADATA.flexible
    where = f"listener {endpoint.listener} of broker {broker_id}"
    security_protocol = SECURITY_PROTOCOLS.get(endpoint.security_protocol)
    if security_protocol is None:
        raise ConfigError(where, f"security protocol {endpoint.security_protocol}", ", ".join(SECURITY_PROTOCOLS))
    if api_version < 3 and endpoint.listener != endpoint.security_protocol:
        # These versions have no listener name: brokers use the protocol's name.
        raise ConfigError(where, f"UpdateMetadata {api_version}", "version 3 or later for a listener of that name")
    listener = string(endpoint.listener, compact=compact) if api_version >= 3 else b""
    address = int32(endpoint.port) + string(endpoint.host, compact=compact)
    return address + listener + int16(security_protocol) + end_of_struct(compact=compact)
