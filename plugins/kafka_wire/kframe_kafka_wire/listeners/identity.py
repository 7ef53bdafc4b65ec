"""The controller's identity: broker id, advertised listeners and rack.

Brokers find the controller as a live broker of the last UpdateMetadata, so every UpdateMetadata names this node.
Brokers before Kafka 3.0 read ``/brokers/ids`` before a controlled shutdown (2.8 ``KafkaServer.controlledShutdown``);
for them the active controller registers there.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kframe.plugin import ConfigError
from kframe.plugin.cluster import NO_BROKER_EPOCH, Endpoint, Registration
from kframe.plugin.settings import boolean, whole
from kframe.plugin.wire import InterBrokerProtocol

LISTENERS: Final = "listeners"
ADVERTISED: Final = "advertised.listeners"
PROTOCOL_MAP: Final = "listener.security.protocol.map"
INTER_BROKER: Final = "inter.broker.listener.name"
CONTROL_PLANE: Final = "control.plane.listener.name"
#: Security protocols of listeners (Kafka ``SecurityProtocol``). By default each is also a listener name.
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
REGISTER: Final = "kframe.register"
_ID: Final = "broker.id"
#: Brokers since this release find the controller by UpdateMetadata alone.
_KNOWN_SINCE: Final = InterBrokerProtocol.parse("3.0")
_DEFAULTS: Final = {
    LISTENERS: "PLAINTEXT://:9092",
    PROTOCOL_MAP: ",".join(f"{protocol}:{protocol}" for protocol in PROTOCOLS),
}
#: Kafka's own pattern of a listener, without ports that no socket has.
_LISTENER: Final = re.compile(r"([^:/,\s]+)://(?:\[([0-9a-zA-Z%._:-]*)\]|([0-9a-zA-Z%._-]*)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class ControllerNode:
    """The controller as a node: its listeners, and its registration as brokers and clients see it."""

    bound: tuple[Endpoint, ...]
    """Listeners. An empty host means all addresses, port 0 any free port."""
    registration: Registration
    """Id, advertised endpoints and rack, as UpdateMetadata names them."""


def node_of(config: Mapping[str, str]) -> ControllerNode:
    """The node by Kafka's keys. Raises ConfigError, also if a listener that brokers use is missing."""
    bound = tuple(endpoints_of(config, LISTENERS))
    advertised = tuple(endpoints_of(config, ADVERTISED)) if config.get(ADVERTISED, "").strip() else bound
    endpoints = tuple(reachable(endpoint) for endpoint in advertised)
    for listener in {inter_broker_listener(config), control_listener(config)}:
        if listener not in (endpoint.listener for endpoint in endpoints):
            names = ", ".join(endpoint.listener for endpoint in endpoints)
            raise ConfigError(f"config key {LISTENERS}", names, f"{listener}, on which brokers look for the controller")
    broker_id = whole(0)(f"config key {_ID}", config.get(_ID, config.get("node.id", "")))
    return ControllerNode(bound, Registration(broker_id, NO_BROKER_EPOCH, endpoints, config.get("broker.rack") or None))


def should_register(config: Mapping[str, str]) -> bool:
    """Whether the active controller registers in ``/brokers/ids``.

    By ``kframe.register``; by default if the inter-broker protocol is older than 3.0. Raises ConfigError.
    """
    protocol = InterBrokerProtocol.parse(config.get("inter.broker.protocol.version", "3.9").strip())
    return boolean(f"config key {REGISTER}", config.get(REGISTER, str(protocol < _KNOWN_SINCE)))


def inter_broker_listener(config: Mapping[str, str]) -> str:
    """The inter-broker listener (``inter.broker.listener.name``, else the listener named
    after ``security.inter.broker.protocol``). Raises ConfigError if both are set."""
    named, protocol = config.get(INTER_BROKER, "").strip(), config.get("security.inter.broker.protocol", "").strip()
    if named and protocol:
        raise ConfigError(f"config key {INTER_BROKER}", "security.inter.broker.protocol as well", "one of the two")
    return (named or protocol or PROTOCOLS[0]).upper()


def control_listener(config: Mapping[str, str]) -> str:
    """The listener for control requests: the control plane listener if configured, else the inter-broker one."""
    return config.get(CONTROL_PLANE, "").strip().upper() or inter_broker_listener(config)


def security_protocol(config: Mapping[str, str], listener: str) -> str:
    """The protocol of a listener by ``listener.security.protocol.map``. Raises ConfigError if it is missing."""
    where, protocols = f"config key {PROTOCOL_MAP}", {}
    for entry in filter(None, _split(config.get(PROTOCOL_MAP, _DEFAULTS[PROTOCOL_MAP]))):
        name, _, protocol = entry.partition(":")
        if protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(where, repr(entry), f"LISTENER:PROTOCOL, the protocol one of {', '.join(PROTOCOLS)}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    if listener not in protocols:
        raise ConfigError(where, ", ".join(protocols), f"an entry for listener {listener}")
    return protocols[listener]


def endpoints_of(config: Mapping[str, str], key: str) -> Iterator[Endpoint]:
    """The endpoints in ``listeners`` or ``advertised.listeners``. Raises ConfigError."""
    where, seen = f"config key {key}", set()
    for entry in _split(config.get(key, _DEFAULTS.get(key, ""))):
        match = _LISTENER.fullmatch(entry)
        if match is None or int(match[4]) > 65_535:
            raise ConfigError(where, repr(entry), "LISTENER://HOST:PORT[,LISTENER://HOST:PORT]...")
        listener = match[1].upper()
        if listener in seen:
            raise ConfigError(where, f"listener {listener} twice", "each once")
        seen.add(listener)
        yield Endpoint(listener, match[2] or match[3] or "", int(match[4]), security_protocol(config, listener))


def reachable(endpoint: Endpoint) -> Endpoint:
    """The endpoint with this machine's name in place of an empty host. Raises ConfigError for a wildcard address."""
    if endpoint.host in ("0.0.0.0", "::"):
        raise ConfigError(f"config key {ADVERTISED}", repr(endpoint.host), "an address that others can connect to")
    host = endpoint.host or socket.getfqdn()
    return Endpoint(endpoint.listener, host, endpoint.port, endpoint.security_protocol)


def _split(value: str) -> list[str]:
    return [entry.strip() for entry in value.split(",")]
