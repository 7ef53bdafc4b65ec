"""A snapshot file for the commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from kframe.snapshot import write_snapshot
from tests.whatif.samples import small


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """The small cluster of ``tests/whatif/samples.py``."""
    path = tmp_path / "small"
    write_snapshot(small(), path)
    return path
