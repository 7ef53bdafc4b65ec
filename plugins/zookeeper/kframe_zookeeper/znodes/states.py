"""``/brokers/topics/T/partitions/N/state``: leader and ISR of a partition (``docs/reference/controller/zookeeper.md``
3.5)."""

from __future__ import annotations

from typing import Final

from kframe.plugin import ZnodeError
from kframe.plugin.columns import REPLICAS_MAX
from kframe.plugin.znodes import STATE_DECODER, StateZnode
from kframe_zookeeper.znodes.strict import decode_znode, encode_znode

#: Written by every release of Kafka.
STATE_VERSION: Final = 1


def decode_state(raw: bytes | None, path: str) -> StateZnode:
    """A partition's state. Raises ZnodeError.

    Brokers are ids, distinct within the ISR. The caller checks whether they are replicas.
    """
    state, _ = decode_znode(STATE_DECODER, raw, path)
    if len(set(state.isr)) != len(state.isr) or len(state.isr) > REPLICAS_MAX:
        raise ZnodeError(f"{path} field isr", f"{len(state.isr)} brokers, some of them twice", "each broker once")
    return state


def encode_state(leader: int, leader_epoch: int, isr: list[int], controller_epoch: int, recovery: int = 0) -> bytes:
    """A partition's state as Kafka writes it; ``recovery`` is a RecoveryState, written only while RECOVERING."""
    record = StateZnode(
        controller_epoch=controller_epoch,
        leader=leader,
        version=STATE_VERSION,
        leader_recovery_state=recovery,
        leader_epoch=leader_epoch,
        isr=isr,
    )
    return encode_znode(record)
