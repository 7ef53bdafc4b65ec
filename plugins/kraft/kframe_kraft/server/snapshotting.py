"""Writes snapshots of the metadata while the controller decides, and removes the log and the snapshots before them.

A copy of the metadata is taken between two decisions. It is written when its last record is committed, in a thread of
its own. A snapshot that cannot be written is tried again later: the log is complete without it.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Final

from kframe.plugin import KframeError
from kframe.plugin.kraft import ClusterMetadata, ControllerResult, control
from kframe.plugin.kraft_controller import KraftContext
from kframe_kraft.controller import DecisionLoop
from kframe_kraft.disk import SnapshotId
from kframe_kraft.encoding.checkpoint import write_checkpoint
from kframe_kraft.log import DurableLog, RetentionSettings, clean
from kframe_kraft.quorum import Voters
from kframe_kraft.server.environment import Environment

_log = logging.getLogger("kframe.kraft")

#: Seconds between two looks at the size of the log.
_CHECK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """``metadata.log.max.record.bytes.between.snapshots`` and ``metadata.log.max.snapshot.interval.ms``. An interval of
    0 is none."""

    bytes_max: int = 20 * 2**20
    interval_ms: int = 3_600_000


@dataclass(frozen=True, slots=True, eq=False)
class MetadataCopy:
    """The metadata at the end of the log, which had ``appended_bytes`` then. ``timestamp`` is in milliseconds."""

    metadata: ClusterMetadata
    snapshot_id: SnapshotId
    appended_bytes: int
    timestamp: int


class SnapshotWriter:
    """The steps of a snapshot: ``copy``, ``store``, ``finish``. The first and the last are events of the controller."""

    def __init__(
        self,
        log: DurableLog,
        voters: Voters,
        settings: SnapshotSettings,
        retention: RetentionSettings,
        environment: Environment,
        unsaved_bytes: int,
    ) -> None:
        """``unsaved_bytes`` of the log follow its newest snapshot."""
        self._log = log
        self._voters = voters
        self._settings = settings
        self._retention = retention
        self._environment = environment
        self._saved_at = log.appended_bytes - unsaved_bytes
        self._saved_ns = environment.clock()

    def is_due(self) -> bool:
        """Whether the log has grown enough, or has grown and the interval is over."""
        unsaved = self._log.appended_bytes - self._saved_at
        elapsed_ms = (self._environment.clock() - self._saved_ns) / 1e6
        is_late = 0 < self._settings.interval_ms <= elapsed_ms
        return unsaved >= self._settings.bytes_max or (is_late and unsaved > 0)

    def put_off(self) -> None:
        """Begin the interval anew, after a failure."""
        self._saved_ns = self._environment.clock()

    def copy(self, context: KraftContext) -> ControllerResult[MetadataCopy]:
        """Copy the metadata at the end of the log."""
        snapshot_id = SnapshotId(self._log.end, self._log.last_epoch)
        now = self._environment.now_ms()
        return ControllerResult((), MetadataCopy(context.metadata.copy(), snapshot_id, self._log.appended_bytes, now))

    def store(self, copied: MetadataCopy) -> None:
        """Write a copy, once its records are committed. Raises OSError if the disk is full."""
        voters = control.VotersRecord(voters=self._voters.members) if self._voters.kraft_version else None
        write_checkpoint(
            copied.metadata,
            self._log.directory / copied.snapshot_id.file_name,
            copied.snapshot_id,
            timestamp=copied.timestamp,
            now=self._environment.now_ms(),
            kraft_version=self._voters.kraft_version,
            voters=voters,
        )
        self._saved_at, self._saved_ns = copied.appended_bytes, self._environment.clock()

    def finish(self, snapshot_id: SnapshotId) -> ControllerResult[None]:
        """Serve a stored snapshot, and begin the log at an earlier one where the retention says so.

        Raises LogWriteError.
        """
        if snapshot_id not in self._log.snapshots:
            self._log.add_snapshot(snapshot_id)
        for removed in clean(self._log, self._retention, self._environment.now_ms()):
            _log.info("snapshot %s and the log before its successor were removed", removed.file_name)
        return ControllerResult((), None)


class SnapshotThread:
    """Writes snapshots from ``start`` to ``stop``."""

    def __init__(self, loop: DecisionLoop, writer: SnapshotWriter) -> None:
        self._loop = loop
        self._writer = writer
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="kframe-snapshot", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after the snapshot that it is writing. May be called again."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def write(self) -> SnapshotId:
        """Write a snapshot of all that is decided, and apply the retention. Returns its id.

        Raises NotController, LogWriteError, and OSError if the disk is full.
        """
        copied = self._loop.submit(self._writer.copy).result()
        self._writer.store(copied)
        self._loop.submit(lambda context: self._writer.finish(copied.snapshot_id)).result()
        return copied.snapshot_id

    def _run(self) -> None:
        while not self._stopping.wait(_CHECK_S):
            if self._writer.is_due():
                try:
                    self.write()
                except (KframeError, OSError):
                    _log.exception("a snapshot was not written; it is tried again later")
                    self._writer.put_off()
