"""``/kframe/instances/N``: the instance of kframe with controller id N. Kafka never reads it."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec

from kframe.plugin.live import Instance
from kframe.plugin.znodes import Count, SchemaVersion, number_of
from kframe_zookeeper.znodes.paths import INSTANCES
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

_VERSION: Final = 1

Text = Annotated[str, msgspec.Meta(max_length=1024)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
#: As ``Instance.of_this_process`` makes them: 16 random bytes in hexadecimal.
Token = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]


class ListenerAddress(msgspec.Struct, frozen=True):
    """Where an instance listens. Standbys notice the end of its process there."""

    host: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)]


class RegisteredInstance(NamedTuple):
    """The content of one record."""

    instance: Instance
    session_timeout_ms: int
    listener: ListenerAddress | None = None
    """None until the instance contends before brokers, or where it cannot open a port."""


class _InstanceZnode(msgspec.Struct, kw_only=True):
    version: SchemaVersion
    host: Text
    pid: Count
    started_ms: Milliseconds
    session_timeout_ms: Count
    token: Token
    machine: Text = ""
    birth: Text = ""
    metrics: Text | None = None
    listener: ListenerAddress | None = None


_INSTANCE: Final = msgspec.json.Decoder(_InstanceZnode)


def decode_instance(name: str, raw: bytes | None) -> RegisteredInstance:
    """The record in the child ``name`` of ``/kframe/instances``. Raises ZnodeError."""
    path = f"{INSTANCES}/{name}"
    controller_id = number_of(name, path)
    record, _ = decode_znode(_INSTANCE, raw, path)
    instance = Instance(
        controller_id,
        record.host,
        record.pid,
        record.started_ms,
        record.token,
        record.machine,
        record.birth,
        record.metrics,
    )
    return RegisteredInstance(instance, record.session_timeout_ms, record.listener)


def encode_instance(registered: RegisteredInstance) -> bytes:
    """The bytes of a record."""
    instance = registered.instance
    return encode_znode(
        _InstanceZnode(
            version=_VERSION,
            host=instance.host,
            pid=instance.pid,
            started_ms=instance.started_ms,
            session_timeout_ms=registered.session_timeout_ms,
            token=instance.token,
            machine=instance.machine,
            birth=instance.birth,
            metrics=instance.metrics,
            listener=registered.listener,
        )
    )
