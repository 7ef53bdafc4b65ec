"""Errors of the metadata log."""

from __future__ import annotations

from kframe.plugin import KframeError
from kframe.plugin.kraft import LogError, RecordError

__all__ = ["BatchError", "LogError", "LogWriteError", "RecordError"]


class BatchError(LogError):
    """A record batch is malformed, or its CRC differs."""


class LogWriteError(KframeError):
    """The log cannot be written, for example because the disk is full. What is in it can still be read."""
