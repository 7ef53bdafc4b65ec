"""``/kframe/instances/N``: the instance of kframe that has an id. Kafka knows nothing of it."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from kframe.snapshot.decode import Count
from kframe.snapshot.instances import Instance
from kframe.snapshot.znodes import SchemaVersion, number_of
from kframe_zookeeper.paths import INSTANCES
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

_VERSION: Final = 1

Text = Annotated[str, msgspec.Meta(max_length=1024)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _InstanceZnode(msgspec.Struct, kw_only=True):
    version: SchemaVersion
    host: Text
    pid: Count
    started_ms: Milliseconds
    session_timeout_ms: Count
    token: Text
    machine: Text = ""
    birth: Text = ""
    metrics: Text | None = None


_INSTANCE: Final = msgspec.json.Decoder(_InstanceZnode)


def decode_instance(name: str, raw: bytes | None) -> tuple[Instance, int]:
    """The instance in the child ``name`` of ``/kframe/instances``, and the timeout of its session in milliseconds.
    Raises ZnodeError."""
    path = f"{INSTANCES}/{name}"
    controller_id = number_of(name, path)
    record, _ = decode_znode(_INSTANCE, raw, path)
    instance = Instance(
        controller_id, record.host, record.pid, record.started_ms, record.token, record.machine, record.birth,
        record.metrics,
    )  # fmt: skip
    return instance, record.session_timeout_ms


def encode_instance(instance: Instance, session_timeout_ms: int) -> bytes:
    """The record of an instance whose session has this timeout."""
    return encode_znode(_InstanceZnode(
        version=_VERSION,
        host=instance.host,
        pid=instance.pid,
        started_ms=instance.started_ms,
        session_timeout_ms=session_timeout_ms,
        token=instance.token,
        machine=instance.machine,
        birth=instance.birth,
        metrics=instance.metrics,
    ))  # fmt: skip
