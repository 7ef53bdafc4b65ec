"""Errors of the metadata log."""

from __future__ import annotations

from kframe.plugin import SnapshotError


class LogError(SnapshotError):
    """A record, batch or file of the metadata log is malformed; ``where`` names it and the byte."""


class RecordError(LogError):
    """A record cannot be decoded, or its content does not fit the version to encode."""


class BatchError(LogError):
    """A record batch is malformed, or its CRC differs."""
