"""The committed batches of a running controller, as an observer of its quorum fetches them."""

from __future__ import annotations

from typing import Final

from kframe_kraft.batches import RecordBatch
from kframe_kraft.live import QuorumObserver

from kframe.scenario.kraft.quorum import LogBatch
from verification.kraft.scripted_quorum import connect
from verification.kraft.wire_scenarios.controller import ScenarioController

REPLY_BYTES_MAX: Final = 2**26


class CommittedBatches:
    """Fetches each committed batch once. ``end`` is the offset after the last one."""

    def __init__(self, controller: ScenarioController) -> None:
        """Does not connect."""
        self.end = 0
        self._controller = controller
        self._observer = self._new_observer()

    def _new_observer(self) -> QuorumObserver:
        return QuorumObserver(
            [self._controller.address], lambda address: connect(address, reply_bytes_max=REPLY_BYTES_MAX)
        )

    def close(self) -> None:
        """Disconnect."""
        self._observer.close()

    def restart_at(self, end: int) -> None:
        """Disconnect, and continue at this offset of the log of a controller that starts again."""
        self._observer.close()
        self._observer, self.end = self._new_observer(), end

    def poll(self, wait_ms: int) -> list[LogBatch]:
        """The batches committed since the last call. The controller waits up to ``wait_ms`` for records.

        Raises StoreError if the controller does not answer.
        """
        generation = self._observer.generation
        self._observer.poll(wait_ms)
        log = self._observer.log
        batches = log.committed_batches(self.end)
        if self._observer.generation != generation:
            # Offset 0 is answered with a snapshot as soon as there is one.
            first = (
                batch for batch in self._controller.batches() if batch.header.next_offset <= log.snapshot_id.offset
            )
            batches = [batch for batch in first if batch.header.base_offset >= self.end]
        if batches:
            self.end = batches[-1].header.next_offset
        log.drop(self.end)
        return list(map(log_batch, batches))

    def catch_up(self) -> list[LogBatch]:
        """All batches that are committed now."""
        batches = self.poll(0)
        while self._observer.log.end > self.end:
            batches += self.poll(1)
        return batches


def log_batch(batch: RecordBatch) -> LogBatch:
    """A batch with its records decoded."""
    header = batch.header
    if header.is_control:
        return LogBatch(header.base_offset, header.leader_epoch, control=tuple(batch.control_records()))
    return LogBatch(header.base_offset, header.leader_epoch, tuple(batch.records()))
