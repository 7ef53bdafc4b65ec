"""What stands in the znodes that a snapshot reads, as typed records (paths and schemas: Kafka 3.9 ``ZkData``)."""

from __future__ import annotations

import json
import re
from typing import Annotated, Final

import msgspec

from kframe.errors import SnapshotError
from kframe.model.brokers import Endpoint
from kframe.snapshot.checks import INT32_MAX, shown
from kframe.snapshot.decode import Count, LeaderField, Zxid, decode

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_ENDPOINT: Final = re.compile(r"([^:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})")


class Znode(msgspec.Struct):
    """One line of a dump."""

    path: str
    data: str | None
    version: Count
    czxid: Zxid


class TopicZnode(msgspec.Struct):
    """``/brokers/topics/T``; every key may be missing."""

    partitions: dict[Count, list[Count]] = {}
    adding_replicas: dict[Count, list[Count]] = {}
    removing_replicas: dict[Count, list[Count]] = {}
    topic_id: str | None = None


class StateZnode(msgspec.Struct):
    """``/brokers/topics/T/partitions/N/state``."""

    leader: LeaderField
    leader_epoch: Count
    isr: list[Count]
    controller_epoch: Count
    leader_recovery_state: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0


class BrokerZnode(msgspec.Struct):
    """``/brokers/ids/N``."""

    version: Annotated[int, msgspec.Meta(ge=1)]
    host: str | None = None
    port: Annotated[int, msgspec.Meta(ge=-1, le=65_535)] = -1
    endpoints: list[str] | None = None
    listener_security_protocol_map: dict[str, str] = {}
    rack: str | None = None


class ConfigZnode(msgspec.Struct):
    """``/config/topics/T`` and its like."""

    config: dict[str, str]


class ControllerZnode(msgspec.Struct):
    """``/controller``."""

    brokerid: Count


class ClusterIdZnode(msgspec.Struct):
    """``/cluster/id``."""

    id: str


ZNODE_DECODER: Final = msgspec.json.Decoder(Znode)
TOPIC_DECODER: Final = msgspec.json.Decoder(TopicZnode)
STATE_DECODER: Final = msgspec.json.Decoder(StateZnode)
BROKER_DECODER: Final = msgspec.json.Decoder(BrokerZnode)
CONFIG_DECODER: Final = msgspec.json.Decoder(ConfigZnode)
CONTROLLER_DECODER: Final = msgspec.json.Decoder(ControllerZnode)
CLUSTER_ID_DECODER: Final = msgspec.json.Decoder(ClusterIdZnode)


def configs_of(data: str | None, where: str) -> dict[str, str]:
    """The configs in a config znode; null data is none. Raises SnapshotError."""
    return {} if data is None else decode(CONFIG_DECODER, data, where).config


def number_of(text: str, where: str) -> int:
    """A canonical decimal int32 from 0. Raises SnapshotError."""
    if not _NUMBER.fullmatch(text) or int(text) > INT32_MAX:
        raise SnapshotError(where, shown(text), f"a number from 0 to {INT32_MAX}")
    return int(text)


def endpoints_of(registration: BrokerZnode, where: str) -> list[Endpoint]:
    """Where a broker listens; registrations of version 1 have one plaintext listener, named by host and port.

    Raises SnapshotError.
    """
    if registration.version == 1 or registration.endpoints is None:
        return [Endpoint("PLAINTEXT", registration.host or "", registration.port)]
    endpoints = []
    for text in registration.endpoints:
        parts = _ENDPOINT.fullmatch(text)
        if parts is None or int(parts[3]) > 65_535:
            raise SnapshotError(f"{where} field endpoints", shown(text), "LISTENER://host:port")
        listener = parts[1].upper()
        protocol = registration.listener_security_protocol_map.get(listener, listener)
        if protocol not in SECURITY_PROTOCOLS:
            field = f"{where} field listener_security_protocol_map"
            raise SnapshotError(field, f"{shown(protocol)} for {listener}", f"one of {', '.join(SECURITY_PROTOCOLS)}")
        endpoints.append(Endpoint(listener, parts[2], int(parts[3]), protocol))
    return endpoints


def refuse_repeated_keys(data: str, where: str) -> None:
    """Raise SnapshotError if a JSON object has a key twice: typed decoding keeps the last without a word.

    Only called where the count of lists makes it possible; the count also differs for keys that are not ours.
    """

    def checked(pairs: list[tuple[str, object]]) -> dict[str, object]:
        kept: dict[str, object] = {}
        for key, value in pairs:
            if key in kept:
                raise SnapshotError(where, f"key {shown(key)} twice in one object", "each partition once")
            kept[key] = value
        return kept

    json.loads(data, object_pairs_hook=checked)
