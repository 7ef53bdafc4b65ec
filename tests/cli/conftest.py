"""A snapshot file for the commands, and the logging that they change for the whole process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Restore what ``controller run`` and ``-v`` change, and close log files."""
    loggers = [logging.getLogger(name) for name in (None, "kframe", "kframe.statechange")]
    saved = [(logger, logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, propagate, handlers in saved:
        for handler in set(logger.handlers) - set(handlers):
            handler.close()
        logger.setLevel(level)
        logger.propagate = propagate
        logger.handlers[:] = handlers
