"""The loggers that ``kframe`` changes for its process, for tests that run commands in their own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["restored_loggers"]


@contextmanager
def restored_loggers() -> Iterator[None]:
    """Restore what ``controller run`` and ``-v`` change, and close log files."""
    loggers = [logging.getLogger(name) for name in (None, "kframe", "kframe.statechange")]
    saved = [(logger, logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    try:
        yield
    finally:
        for logger, level, propagate, handlers in saved:
            for handler in set(logger.handlers) - set(handlers):
                handler.close()
            logger.setLevel(level)
            logger.propagate = propagate
            logger.handlers[:] = handlers
