"""Reference of ``kframe.kernels._selectors`` for native selectors, in plain Python with a ctypes struct."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int16, c_int32, c_uint8, c_uint32, c_void_p
from typing import Any

from kframe.kernels._selectors import INVALID_POSITION
from kframe.model.arrays import Int32
from kframe.model.elections import ElectionBatch
from kframe.model.ids import NO_LEADER, ReplicaFlag


class Election(ctypes.Structure):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_int32),
        ("candidate_count", c_int32),
        ("isr_count", c_int32),
        ("candidates", POINTER(c_int16)),
        ("candidate_flags", POINTER(c_uint8)),
        ("isr", POINTER(c_int16)),
        ("broker_ids", POINTER(c_int32)),
        ("broker_rack", POINTER(c_int32)),
        ("broker_live", POINTER(c_uint8)),
        ("broker_shutting_down", POINTER(c_uint8)),
        ("topics", POINTER(c_int32)),
        ("partitions", POINTER(c_int32)),
        ("leaders", POINTER(c_int16)),
        ("leader_epochs", POINTER(c_int32)),
        ("row", c_int32),
        ("broker_count", c_int32),
        ("seed", c_uint32),
        ("unclean_allowed", c_uint8),
    ]


#: The C function type of a native selector.
SELECT = ctypes.CFUNCTYPE(c_int32, POINTER(Election), c_void_p)


def elect(function: int, user_data: int, batch: ElectionBatch, leader: Int32) -> int:
    """See ``kframe.kernels._selectors.elect``."""
    select: Any = SELECT(function)
    count = 0
    for i in range(len(batch)):
        first, last = int(batch.candidates.offsets[i]), int(batch.candidates.offsets[i + 1])
        candidates, isr = batch.candidates[i].tolist(), batch.isr[i].tolist()
        election = Election(
            size=ctypes.sizeof(Election),
            kind=int(batch.kind),
            candidate_count=last - first,
            isr_count=len(isr),
            candidates=(c_int16 * len(candidates))(*candidates),
            candidate_flags=(c_uint8 * len(candidates))(
                *(0 if may else ReplicaFlag.OFFLINE_DIR for may in batch.eligible[first:last].tolist())
            ),
            isr=(c_int16 * len(isr))(*isr),
            broker_ids=(c_int32 * len(batch.broker_ids))(*batch.broker_ids.tolist()),
            broker_rack=(c_int32 * len(batch.broker_ids))(*batch.broker_rack.tolist()),
            broker_live=(c_uint8 * len(batch.broker_ids))(*batch.broker_live.tolist()),
            broker_shutting_down=(c_uint8 * len(batch.broker_ids))(*batch.broker_shutting_down.tolist()),
            broker_count=len(batch.broker_ids),
            topics=(c_int32 * 1)(batch.topic[i]),
            partitions=(c_int32 * 1)(batch.partition[i]),
            leaders=(c_int16 * 1)(batch.leader[i]),
            leader_epochs=(c_int32 * 1)(batch.leader_epoch[i]),
            seed=batch.seed,
            unclean_allowed=int(batch.unclean_allowed[i]),
        )
        position = select(ctypes.byref(election), user_data)
        if 0 <= position < len(candidates):
            leader[i] = candidates[position]
            count += 1
        else:
            leader[i] = NO_LEADER if position == NO_LEADER else INVALID_POSITION
    return count
