"""The content of the znodes that a snapshot reads, as typed records (paths and schemas: Kafka 3.9 ``ZkData``).

Fields are in the order in which Kafka 3.9 writes them, so that a record encodes to Kafka's own bytes. The ZooKeeper
plugin reads and writes by these records too.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from kframe.errors import ZnodeError
from kframe.model.brokers import SECURITY_PROTOCOLS, Endpoint
from kframe.model.texts import short_repr
from kframe.snapshot.checks import INT32_MAX
from kframe.snapshot.decode import Count, LeaderField, Zxid, decode

SchemaVersion: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=INT32_MAX)]
"""The schema version that a writer states. Readers ignore it and go by the fields."""

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_ENDPOINT: Final = re.compile(r"([^:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]{1,5})")


class Znode(msgspec.Struct):
    """One line of a dump."""

    path: str
    data: str | None
    version: Count
    czxid: Zxid


ReplicaId: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=INT32_MAX)]
"""A broker id that Kafka lets a client assign a partition to: any int32, registered or not."""


class TopicZnode(msgspec.Struct, kw_only=True):
    """``/brokers/topics/T``; every key may be missing."""

    partitions: dict[Count, list[ReplicaId]] = {}
    topic_id: str | UnsetType = UNSET
    adding_replicas: dict[Count, list[Count]] = {}
    removing_replicas: dict[Count, list[Count]] = {}
    version: SchemaVersion | UnsetType = UNSET


class StateZnode(msgspec.Struct, kw_only=True, omit_defaults=True):
    """``/brokers/topics/T/partitions/N/state``."""

    controller_epoch: Count
    leader: LeaderField
    version: SchemaVersion | UnsetType = UNSET
    leader_recovery_state: Annotated[int, msgspec.Meta(ge=0, le=1)] = 0
    leader_epoch: Count
    isr: list[Count]


class BrokerZnode(msgspec.Struct, kw_only=True):
    """``/brokers/ids/N``; fields that no controller reads have any value."""

    features: msgspec.Raw | UnsetType = UNSET
    listener_security_protocol_map: dict[str, str] | UnsetType = UNSET
    endpoints: list[str] | UnsetType = UNSET
    rack: str | UnsetType | None = UNSET
    jmx_port: msgspec.Raw | UnsetType = UNSET
    port: Annotated[int, msgspec.Meta(ge=-1, le=65_535)] = -1
    host: str | None = None
    version: Annotated[int, msgspec.Meta(ge=1, le=INT32_MAX)]
    timestamp: msgspec.Raw | UnsetType = UNSET


#: The field that marks the registration of a controller without a broker. Kafka ignores it.
CONTROLLER_FIELD: Final = "kframe_controller"


class _ControllerMark(msgspec.Struct):
    kframe_controller: bool = False


class ConfigZnode(msgspec.Struct, kw_only=True):
    """``/config/topics/T`` and its like."""

    version: SchemaVersion | UnsetType = UNSET
    config: dict[str, str]


class ControllerZnode(msgspec.Struct, kw_only=True):
    """``/controller``."""

    version: SchemaVersion | UnsetType = UNSET
    brokerid: Count
    timestamp: str | UnsetType = UNSET
    kraft_controller_epoch: Annotated[int, msgspec.Meta(ge=-1, le=INT32_MAX)] | UnsetType = msgspec.field(
        default=UNSET, name="kraftControllerEpoch"
    )


class ClusterIdZnode(msgspec.Struct, kw_only=True):
    """``/cluster/id``. The version is a text."""

    version: str | UnsetType = UNSET
    id: str


ZNODE_DECODER: Final = msgspec.json.Decoder(Znode)
TOPIC_DECODER: Final = msgspec.json.Decoder(TopicZnode)
STATE_DECODER: Final = msgspec.json.Decoder(StateZnode)
BROKER_DECODER: Final = msgspec.json.Decoder(BrokerZnode)
CONFIG_DECODER: Final = msgspec.json.Decoder(ConfigZnode)
CONTROLLER_DECODER: Final = msgspec.json.Decoder(ControllerZnode)
CLUSTER_ID_DECODER: Final = msgspec.json.Decoder(ClusterIdZnode)
_CONTROLLER_MARK: Final = msgspec.json.Decoder(_ControllerMark)


def is_controller_only(data: str | bytes | None) -> bool:
    """Whether this is the registration of a controller that is not a broker: of an instance of kframe."""
    try:
        return data is not None and _CONTROLLER_MARK.decode(data).kframe_controller
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def configs_of(data: str | bytes | None, where: str) -> dict[str, str]:
    """The configs in a config znode; null data is none. Raises ZnodeError."""
    return {} if data is None else decode(CONFIG_DECODER, data, where, ZnodeError).config


def number_of(text: str, where: str) -> int:
    """A canonical decimal int32 from 0. Raises ZnodeError."""
    if not _NUMBER.fullmatch(text) or int(text) > INT32_MAX:
        raise ZnodeError(where, short_repr(text), f"a number from 0 to {INT32_MAX}")
    return int(text)


def rack_of(registration: BrokerZnode) -> str | None:
    """The rack that a broker names, if it does."""
    return None if registration.rack is UNSET else registration.rack


def endpoints_of(registration: BrokerZnode, where: str) -> list[Endpoint]:
    """Where a broker listens; registrations of version 1 have one plaintext listener, named by host and port.

    Raises ZnodeError.
    """
    if registration.version == 1 or registration.endpoints is UNSET:
        return [Endpoint("PLAINTEXT", registration.host or "", registration.port)]
    endpoints = []
    protocols = registration.listener_security_protocol_map or {}
    for text in registration.endpoints:
        parts = _ENDPOINT.fullmatch(text)
        if parts is None or int(parts[3]) > 65_535:
            raise ZnodeError(f"{where} field endpoints", short_repr(text), "LISTENER://host:port")
        listener = parts[1].upper()
        protocol = protocols.get(listener, listener)
        if protocol not in SECURITY_PROTOCOLS:
            field = f"{where} field listener_security_protocol_map"
            raise ZnodeError(
                field, f"{short_repr(protocol)} for {short_repr(listener)}", f"one of {', '.join(SECURITY_PROTOCOLS)}"
            )
        endpoints.append(Endpoint(listener, parts[2], int(parts[3]), protocol))
    return endpoints
