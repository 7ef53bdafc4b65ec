"""Writes snapshots of the metadata while the controller decides, and removes the log and the snapshots before them.

A copy of the metadata is taken between two decisions. It is written when its last record is committed, in a thread of
its own. A snapshot that cannot be written is tried again later: the log is complete without it.
"""

from __future__ import annotations

import logging
import threading
import time
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
class _Copied:
    metadata: ClusterMetadata
    snapshot_id: SnapshotId
    appended_bytes: int
    timestamp: int


class SnapshotThread:
    """Writes snapshots from ``start`` to ``stop``."""

    def __init__(
        self,
        loop: DecisionLoop,
        log: DurableLog,
        voters: Voters,
        settings: SnapshotSettings,
        retention: RetentionSettings,
        unsaved_bytes: int,
    ) -> None:
        """``unsaved_bytes`` of the log follow its newest snapshot."""
        self._loop = loop
        self._log = log
        self._voters = voters
        self._settings = settings
        self._retention = retention
        self._saved_at = log.appended_bytes - unsaved_bytes
        self._saved_s = time.monotonic()
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
        copied = self._loop.submit(self._copy).result()
        voters = control.VotersRecord(voters=self._voters.members) if self._voters.kraft_version else None
        write_checkpoint(
            copied.metadata,
            self._log.directory / copied.snapshot_id.file_name,
            copied.snapshot_id,
            timestamp=copied.timestamp,
            now=_now_ms(),
            kraft_version=self._voters.kraft_version,
            voters=voters,
        )
        self._saved_at, self._saved_s = copied.appended_bytes, time.monotonic()
        self._loop.submit(lambda context: self._finish(copied.snapshot_id)).result()
        return copied.snapshot_id

    def _run(self) -> None:
        while not self._stopping.wait(_CHECK_S):
            if self._is_due():
                try:
                    self.write()
                except (KframeError, OSError):
                    _log.exception("a snapshot was not written; it is tried again later")
                    self._saved_s = time.monotonic()

    def _is_due(self) -> bool:
        unsaved = self._log.appended_bytes - self._saved_at
        elapsed_ms = (time.monotonic() - self._saved_s) * 1000
        is_late = 0 < self._settings.interval_ms <= elapsed_ms
        return unsaved >= self._settings.bytes_max or (is_late and unsaved > 0)

    def _copy(self, context: KraftContext) -> ControllerResult[_Copied]:
        snapshot_id = SnapshotId(self._log.end, self._log.last_epoch)
        copied = _Copied(context.metadata.copy(), snapshot_id, self._log.appended_bytes, _now_ms())
        return ControllerResult((), copied)

    def _finish(self, snapshot_id: SnapshotId) -> ControllerResult[None]:
        """Serve the snapshot, and begin the log at an earlier one where the retention says so."""
        if snapshot_id not in self._log.snapshots:
            self._log.add_snapshot(snapshot_id)
        for removed in clean(self._log, self._retention, _now_ms()):
            _log.info("snapshot %s and the log before its successor were removed", removed.file_name)
        return ControllerResult((), None)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
