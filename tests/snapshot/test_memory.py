"""Reading a snapshot directory holds little beside the columns that it returns."""

from __future__ import annotations

import sys
import tracemalloc
from pathlib import Path

import pyarrow

from kframe.snapshot import generate, read_snapshot
from kframe.snapshot.directory import ROW_GROUP_ROWS, write_snapshot
from tests.fresh import in_fresh_process

PARTITIONS = 2 * ROW_GROUP_ROWS
#: Largest number of bytes a partition that the snapshot retains: lists, which share offsets, and numbers.
RETAINED_MAX = 64
#: Largest peak of bytes a partition: the retained ones, and those of checks. A second copy does not fit.
PEAK_MAX = 100
#: Largest number of bytes of a row of a row group while Arrow decodes one column of it.
DECODING_MAX = 64


def _read(path: str) -> tuple[int, int, int, set[str]]:
    """Return retained bytes, their peak, the peak of Arrow's memory, and slow modules that were imported."""
    tracemalloc.start()
    snapshot = read_snapshot(Path(path))
    retained, peak = tracemalloc.get_traced_memory()
    assert len(snapshot) == PARTITIONS
    slow = {"pandas", "pyarrow.compute"} & set(sys.modules)
    return retained, peak, pyarrow.default_memory_pool().max_memory(), slow


def test_reading_holds_few_columns_twice_and_imports_no_slow_module(tmp_path: Path) -> None:
    write_snapshot(generate(PARTITIONS, 20, 3), tmp_path / "snapshot")
    retained, peak, decoding, slow = in_fresh_process(_read, str(tmp_path / "snapshot"))
    assert 40 * PARTITIONS < retained < RETAINED_MAX * PARTITIONS
    assert peak < PEAK_MAX * PARTITIONS
    assert decoding < DECODING_MAX * ROW_GROUP_ROWS
    assert slow == set()
