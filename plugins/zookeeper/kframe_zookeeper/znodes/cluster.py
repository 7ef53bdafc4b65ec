"""The znodes of the whole cluster: controller, controller epoch, cluster id, producer ids, features.

The reference is ``docs/reference/controller/zookeeper.md``, sections 3.1, 3.2, 3.9 and 3.10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import UNSET

from kframe.plugin import ZnodeError
from kframe.plugin.settings import short_repr
from kframe.plugin.znodes import (
    CLUSTER_ID_DECODER,
    CONTROLLER_DECODER,
    ControllerZnode,
    SchemaVersion,
    number_of,
)
from kframe_zookeeper.znodes.paths import CLUSTER_ID, CONTROLLER, CONTROLLER_EPOCH, PRODUCER_IDS
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

#: Written by Kafka 3.4 and later.
CONTROLLER_VERSION: Final = 2
#: No KRaft controller has taken over. With a value above 0, Kafka 3.9's brokers would refuse config changes.
NO_KRAFT_EPOCH: Final = -1
#: A KRaft controller writes its epoch; any other writes -1 or nothing (3.9 ``KafkaZkClient``, ``kraftEpoch``).
_KRAFT_EPOCH_MIN: Final = 1
#: ``/feature`` without finalized features, as Kafka writes it with inter-broker protocol 3.3 or later.
NO_FEATURES: Final = b'{"features":{},"version":2,"status":1}'
_INT64_MAX: Final = 2**63 - 1
#: Bytes of the longest valid number, including a sign.
_NUMBER_BYTES: Final = 20

Int64Text = Annotated[str, msgspec.Meta(pattern=r"^(0|[1-9][0-9]{0,18})\Z")]


class _ProducerIdsZnode(msgspec.Struct):
    version: SchemaVersion
    broker: Annotated[int, msgspec.Meta(ge=-1, le=2**31 - 1)]
    block_start: Int64Text
    block_end: Int64Text


_PRODUCER_IDS: Final = msgspec.json.Decoder(_ProducerIdsZnode)


@dataclass(frozen=True, slots=True)
class ProducerIdBlock:
    """The last allocated block of producer ids: its broker, first id and last id."""

    broker_id: int
    first: int
    last: int


def decode_controller(raw: bytes | None) -> ControllerZnode:
    """The record of the controller. Only ``brokerid`` is mandatory. Raises ZnodeError.

    Kafka 0.7 wrote the bare broker id, which 0.8 still reads.
    """
    if raw is not None and raw.strip().isdigit():
        return ControllerZnode(brokerid=_number(raw.strip(), CONTROLLER))
    return decode_znode(CONTROLLER_DECODER, raw, CONTROLLER)[0]


def kraft_epoch(record: ControllerZnode) -> int | None:
    """The epoch of the KRaft controller that owns ``/controller`` during a migration. None for any other controller."""
    epoch = record.kraft_controller_epoch
    return None if epoch is UNSET or epoch < _KRAFT_EPOCH_MIN else epoch


def encode_controller(controller_id: int, timestamp_ms: int) -> bytes:
    """The record of a controller as Kafka 3.4 and later write it."""
    return encode_znode(
        ControllerZnode(
            version=CONTROLLER_VERSION,
            brokerid=controller_id,
            timestamp=str(timestamp_ms),
            kraft_controller_epoch=NO_KRAFT_EPOCH,
        )
    )


def decode_controller_epoch(raw: bytes | None) -> int:
    """The controller epoch, 0 or more. Raises ZnodeError."""
    return _number(raw or b"", CONTROLLER_EPOCH)


def encode_controller_epoch(controller_epoch: int) -> bytes:
    """A controller epoch, as plain text."""
    return str(controller_epoch).encode()


def decode_cluster_id(raw: bytes | None) -> str:
    """The cluster's id. Raises ZnodeError."""
    return decode_znode(CLUSTER_ID_DECODER, raw, CLUSTER_ID)[0].id


def decode_producer_ids(raw: bytes | None) -> ProducerIdBlock | None:
    """The last allocated block; None before the first allocation. Raises ZnodeError."""
    if not raw:
        return None
    record, _ = decode_znode(_PRODUCER_IDS, raw, PRODUCER_IDS)
    first, last = int(record.block_start), int(record.block_end)
    if not first <= last <= _INT64_MAX:
        raise ZnodeError(f"{PRODUCER_IDS} field block_end", str(last), f"{first} to {_INT64_MAX}")
    return ProducerIdBlock(record.broker, first, last)


def encode_producer_ids(block: ProducerIdBlock) -> bytes:
    """The record of a block."""
    return encode_znode(_ProducerIdsZnode(1, block.broker_id, str(block.first), str(block.last)))


def _number(raw: bytes, path: str) -> int:
    try:
        return number_of(raw[:_NUMBER_BYTES].decode("ascii"), path)
    except UnicodeDecodeError:
        raise ZnodeError(path, short_repr(raw[:_NUMBER_BYTES]).removeprefix("b"), "a number") from None
