"""Reading a snapshot directory holds little beside the columns that it returns."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow

from kframe.snapshot import generate, read_snapshot
from kframe.snapshot.directory import write_directory
from tests.fresh import in_fresh_process

PARTITIONS = 200_000
#: Largest peak of Arrow's memory, as a multiple of what the snapshot's arrays retain of it.
PEAK_MAX = 2.0


def _read(path: str) -> tuple[int, int, bool]:
    """Return Arrow's retained bytes, its peak, and whether pandas was imported."""
    pool = pyarrow.default_memory_pool()
    snapshot = read_snapshot(Path(path))
    assert len(snapshot) == PARTITIONS
    return pool.bytes_allocated(), pool.max_memory(), "pandas" in sys.modules


def test_reading_holds_few_columns_twice_and_imports_no_pandas(tmp_path: Path) -> None:
    write_directory(generate(PARTITIONS, 20, 3), tmp_path / "snapshot")
    retained, peak, pandas_imported = in_fresh_process(_read, str(tmp_path / "snapshot"))
    assert retained > 4 * PARTITIONS
    assert peak < PEAK_MAX * retained
    assert not pandas_imported
