"""``/brokers/ids/N``: a broker's registration (``docs/reference/controller/zookeeper.md`` 3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import UNSET

from kframe.plugin.cluster import Endpoint, Registration
from kframe.plugin.znodes import BROKER_DECODER, BrokerZnode, endpoints_of, number_of, rack_of
from kframe_zookeeper.znodes.paths import BROKER_IDS
from kframe_zookeeper.znodes.strict import NO_EXTRA, Extra, decode_znode, encode_znode

#: Written by Kafka 2.7 and later.
BROKER_VERSION: Final = 5
_WITH_FEATURES: Final = 5
_WITH_PROTOCOLS: Final = 4
_WITH_RACK: Final = 3
_WITH_ENDPOINTS: Final = 2


def decode_broker(name: str, raw: bytes | None, czxid: int) -> Registration:
    """The registration in the child ``name`` of ``/brokers/ids``; ``czxid`` is its broker epoch. Raises ZnodeError."""
    path = f"{BROKER_IDS}/{name}"
    broker_id = number_of(name, path)
    record, _ = decode_znode(BROKER_DECODER, raw, path)
    return Registration(broker_id, czxid, tuple(endpoints_of(record, path)), rack_of(record))


def encode_broker(
    registration: Registration,
    timestamp_ms: int,
    *,
    version: int = BROKER_VERSION,
    jmx_port: int = -1,
    features: Mapping[str, Mapping[str, int]] | None = None,
    extra: Extra = NO_EXTRA,
) -> bytes:
    """A registration as a broker writes it. ``features`` has ``min_version`` and ``max_version`` by name.

    Version 5 of the schema added features, version 4 security protocols, version 3 the rack and version 2 the list of
    endpoints. ``extra`` are fields outside the schema.
    """
    endpoints = registration.endpoints
    plain = next((endpoint for endpoint in endpoints if endpoint.security_protocol == "PLAINTEXT"), None)
    record = BrokerZnode(
        features=_raw(features or {}) if version >= _WITH_FEATURES else UNSET,
        listener_security_protocol_map=(
            {endpoint.listener: endpoint.security_protocol for endpoint in endpoints}
            if version >= _WITH_PROTOCOLS
            else UNSET
        ),
        endpoints=[_text(endpoint) for endpoint in endpoints] if version >= _WITH_ENDPOINTS else UNSET,
        rack=registration.rack if registration.rack is not None and version >= _WITH_RACK else UNSET,
        jmx_port=_raw(jmx_port),
        port=-1 if plain is None else plain.port,
        host=None if plain is None else plain.host,
        version=version,
        timestamp=_raw(str(timestamp_ms)),
    )
    return encode_znode(record, extra)


def _text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
