"""Errors of the metadata log."""

from __future__ import annotations

from kframe.plugin.kraft import LogError, RecordError

__all__ = ["BatchError", "LogError", "RecordError"]


class BatchError(LogError):
    """A record batch is malformed, or its CRC differs."""
