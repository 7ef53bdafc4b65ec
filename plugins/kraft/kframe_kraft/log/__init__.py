"""The log of this node, open for writing: a batch counts after its fsync, and a crash leaves a log that can be read.

Its files are those of ``disk/``. Kafka's own controller starts on the directory, and this one on Kafka's.
"""

from __future__ import annotations

from kframe_kraft.log.directory_lock import DirectoryLock
from kframe_kraft.log.durable_log import DurableLog, LogSettings
from kframe_kraft.log.files import LogFile, LogFiles, LogSection
from kframe_kraft.log.memory_log import MemoryLog
from kframe_kraft.log.offsets import Diverged, FetchPosition, NeedsSnapshot, Serveable
from kframe_kraft.log.opening import OpenedLog, open_log
from kframe_kraft.log.retention import RetentionSettings, clean

__all__ = [
    "DirectoryLock",
    "Diverged",
    "DurableLog",
    "FetchPosition",
    "LogFile",
    "LogFiles",
    "LogSection",
    "LogSettings",
    "MemoryLog",
    "NeedsSnapshot",
    "OpenedLog",
    "RetentionSettings",
    "Serveable",
    "clean",
    "open_log",
]
