"""A what-if creates no Python object per partition."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

from kframe.snapshot import Health, generate
from kframe.whatif import WhatIf
from tests.fresh import in_fresh_process

PARTITIONS = 200_000
#: Largest number of objects above the start. Brokers, topics and steps create some.
BLOCKS_MAX = 20_000
#: Largest peak of bytes per partition: saved rows (nearly a third change), masks, and array temporaries.
BYTES_MAX = 170


def large() -> WhatIf:
    health = Health(under_replicated=0.05, preferred_replica_imbalance=0.05, unclean=0.1, min_insync=2)
    return WhatIf(generate(PARTITIONS, 20, 3, racks=4, health=health))


def peak_blocks(act: Callable[[], object]) -> int:
    """Return the peak of allocated blocks at any function return, above the start."""
    gc.collect()
    worst = before = sys.getallocatedblocks()

    def record_blocks(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal worst
        if event in ("return", "c_return"):
            worst = max(worst, sys.getallocatedblocks())

    sys.setprofile(record_blocks)
    try:
        act()
    finally:
        sys.setprofile(None)
    return worst - before


def test_no_object_per_partition() -> None:
    failed, restarted, shut_down = in_fresh_process(_peaks)
    assert 0 < failed < BLOCKS_MAX
    assert 0 < restarted < BLOCKS_MAX
    assert 0 < shut_down < BLOCKS_MAX


def _peaks() -> tuple[int, int, int]:
    whatif = large()
    return (
        peak_blocks(lambda: whatif.fail([3, 7])),
        peak_blocks(lambda: whatif.restart([3, 7])),
        peak_blocks(lambda: whatif.shutdown([5])),
    )


def test_peak_memory_is_bounded() -> None:
    whatif = large()
    tracemalloc.start()
    try:
        outcome = whatif.fail([3, 7])
        _, peak = tracemalloc.get_traced_memory()
        traces = len(tracemalloc.take_snapshot().traces)
    finally:
        tracemalloc.stop()
    assert outcome.impact.states_changed > PARTITIONS // 10
    assert peak < BYTES_MAX * PARTITIONS
    assert traces < BLOCKS_MAX
