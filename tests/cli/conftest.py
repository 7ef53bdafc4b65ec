"""A snapshot file for the commands, and the logging that they change for the whole process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kframe.snapshot import write_snapshot
from tests.architecture.source import ROOT
from tests.cli.printing import make_files
from tests.whatif.samples import small
from verification.support.loggers import restored_loggers


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """The small cluster of ``tests/whatif/samples.py``."""
    path = tmp_path / "small"
    write_snapshot(small(), path)
    return path


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Paths by the names in ``printing.LINES``."""
    monkeypatch.chdir(ROOT)
    return make_files(tmp_path)


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    with restored_loggers():
        yield
