"""Who we are to brokers and clients: an id, the addresses that we advertise by listener, a rack.

Brokers find a controller that is no broker as the live broker of its id in the last UpdateMetadata, on the listener on
which controllers are reached, so every UpdateMetadata names it. Brokers before Kafka 3.0 look for it in
``/brokers/ids`` as well when they are to shut down (2.8 ``KafkaServer.controlledShutdown``): for them it stands there
while it has the role.
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
#: What security a listener may have (Kafka ``SecurityProtocol``); each is also the name of a listener by default.
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
REGISTER: Final = "kframe.register"
_ID: Final = "broker.id"
#: From which release on brokers find who shuts them down by what UpdateMetadata has told them.
_KNOWN_SINCE: Final = InterBrokerProtocol.parse("3.0")
_DEFAULTS: Final = {LISTENERS: "PLAINTEXT://:9092", PROTOCOL_MAP: ",".join(f"{one}:{one}" for one in PROTOCOLS)}
#: Kafka's own pattern of a listener, ports that no socket has left out.
_LISTENER: Final = re.compile(r"([^:/,\s]+)://(?:\[([0-9a-zA-Z%._:-]*)\]|([0-9a-zA-Z%._-]*)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Node:
    """Ourselves: where we listen, and as what we are told to brokers and clients."""

    bound: tuple[Endpoint, ...]
    """Where we listen; an empty host is every address, port 0 any that is free."""
    registration: Registration
    """Id, advertised endpoints and rack, as an UpdateMetadata names them. It stands nowhere in storage."""


def node_of(config: Mapping[str, str]) -> Node:
    """Ourselves by Kafka's keys. Raises ConfigError, also where we would not listen as brokers look for us."""
    bound = tuple(_endpoints(config, LISTENERS))
    advertised = tuple(_endpoints(config, ADVERTISED)) if config.get(ADVERTISED, "").strip() else bound
    endpoints = tuple(_reachable(one) for one in advertised)
    for listener in {inter_broker_listener(config), control_listener(config)}:
        if listener not in (one.listener for one in endpoints):
            names = ", ".join(one.listener for one in endpoints)
            raise ConfigError(f"config key {LISTENERS}", names, f"{listener}, on which brokers look for the controller")
    broker_id = whole(0)(f"config key {_ID}", config.get(_ID, config.get("node.id", "")))
    return Node(bound, Registration(broker_id, NO_BROKER_EPOCH, endpoints, config.get("broker.rack") or None))


def registers(config: Mapping[str, str]) -> bool:
    """Whether we stand in ``/brokers/ids`` while we have the role: ``kframe.register``, else where brokers may be of a
    release that looks for controllers there. Raises ConfigError."""
    protocol = InterBrokerProtocol.parse(config.get("inter.broker.protocol.version", "3.9").strip())
    return boolean(f"config key {REGISTER}", config.get(REGISTER, str(protocol < _KNOWN_SINCE)))


def inter_broker_listener(config: Mapping[str, str]) -> str:
    """The listener on which brokers talk to each other (``inter.broker.listener.name``, else the one that is called
    after ``security.inter.broker.protocol``). Raises ConfigError if both are set."""
    named, protocol = config.get(INTER_BROKER, "").strip(), config.get("security.inter.broker.protocol", "").strip()
    if named and protocol:
        raise ConfigError(f"config key {INTER_BROKER}", "security.inter.broker.protocol as well", "one of the two")
    return (named or protocol or PROTOCOLS[0]).upper()


def control_listener(config: Mapping[str, str]) -> str:
    """The listener on which brokers take control requests: a control plane of its own, else the inter-broker one."""
    return config.get(CONTROL_PLANE, "").strip().upper() or inter_broker_listener(config)


def security_protocol(config: Mapping[str, str], listener: str) -> str:
    """One of PROTOCOLS, as ``listener.security.protocol.map`` says. Raises ConfigError if it says nothing."""
    where, protocols = f"config key {PROTOCOL_MAP}", {}
    for one in filter(None, _texts(config.get(PROTOCOL_MAP, _DEFAULTS[PROTOCOL_MAP]))):
        name, _, protocol = one.partition(":")
        if protocol.strip().upper() not in PROTOCOLS:
            raise ConfigError(where, repr(one), f"LISTENER:PROTOCOL, the protocol one of {', '.join(PROTOCOLS)}")
        protocols[name.strip().upper()] = protocol.strip().upper()
    if listener not in protocols:
        raise ConfigError(where, ", ".join(protocols), f"an entry for listener {listener}")
    return protocols[listener]


def _endpoints(config: Mapping[str, str], key: str) -> Iterator[Endpoint]:
    where, seen = f"config key {key}", set()
    for one in _texts(config.get(key, _DEFAULTS.get(key, ""))):
        found = _LISTENER.fullmatch(one)
        if found is None or int(found[4]) > 65_535:
            raise ConfigError(where, repr(one), "LISTENER://HOST:PORT[,LISTENER://HOST:PORT]...")
        listener = found[1].upper()
        if listener in seen:
            raise ConfigError(where, f"listener {listener} twice", "each once")
        seen.add(listener)
        yield Endpoint(listener, found[2] or found[3] or "", int(found[4]), security_protocol(config, listener))


def _reachable(endpoint: Endpoint) -> Endpoint:
    """An empty host stands for this machine's own name. Raises ConfigError for one that nobody can connect to."""
    if endpoint.host in ("0.0.0.0", "::"):
        raise ConfigError(f"config key {ADVERTISED}", repr(endpoint.host), "an address that others can connect to")
    host = endpoint.host or socket.getfqdn()
    return Endpoint(endpoint.listener, host, endpoint.port, endpoint.security_protocol)


def _texts(value: str) -> list[str]:
    return [one.strip() for one in value.split(",")]
