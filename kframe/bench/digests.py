"""Digests of the engine's decisions and encoded bytes: equal for equal results, on every platform."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.model.arrays import Int32
from kframe.model.cluster import ClusterState
from kframe.model.columns import Partitions

DIGEST_BYTES: Final = 8
#: Row values of partitions that a digest covers. Slot positions are an implementation detail and left out.
_ROW_COLUMNS: Final = (
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "controller_epoch",
    "partition_epoch",
)
Digest: TypeAlias = blake2b


def new_digest() -> Digest:
    """An empty digest."""
    return blake2b(digest_size=DIGEST_BYTES)


def digest_of(parts: Iterable[NDArray[Any] | bytes | memoryview | str]) -> str:
    """The hex digest of arrays (values, little-endian), bytes and texts. Each item includes its length."""
    digest = new_digest()
    for part in parts:
        data = _data(part)
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def digest_of_cluster(cluster: ClusterState, *extra_texts: str) -> str:
    """The hex digest of ``extra_texts``, the topics, the registered brokers and the partitions."""
    p, topics, brokers = cluster.partitions, cluster.topics, cluster.brokers
    rows = np.flatnonzero(p.topic >= 0).astype(np.int32)
    replicas, isr, slots = p.lists("replica", rows), p.lists("isr", rows), p.slots_of(rows)
    return digest_of(
        [
            *extra_texts,
            "\n".join(topics.names),
            brokers.ids,
            brokers.registered,
            brokers.shutting_down,
            *(_row_values(p, name, rows) for name in _ROW_COLUMNS),
            p.states_of(rows),
            p.recovery_of(rows),
            p.reassigning(rows).view(np.uint8),
            replicas.offsets,
            replicas.values,
            isr.offsets,
            isr.values,
            p.replica_states(slots),
            p.replica_flags(slots),
        ]
    )


def _row_values(p: Partitions, name: str, rows: Int32) -> NDArray[Any]:
    """One value per row. Leaders are int32 broker indexes for any dtype of their column."""
    if name == "controller_epoch":
        return p.controller_epochs_of(rows)
    values: NDArray[Any] = p.leaders_of(rows) if name == "leader" else getattr(p, name)[rows]
    return values


def _data(part: NDArray[Any] | bytes | memoryview | str) -> Any:
    if isinstance(part, str):
        return part.encode()
    if isinstance(part, np.ndarray):
        return np.ascontiguousarray(part, part.dtype.newbyteorder("<")).view(np.uint8).reshape(-1)
    return part
