"""The copy of the metadata log that a broker has, and the metadata that it has applied."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from kframe_kraft.disk import SnapshotId
from kframe_kraft.quorum import FetchAnswer, ReplicaFetch, ReplicaKey

from kframe.plugin.kraft import records
from verification.kraft.simulation.history import WrittenBatch, batches_of
from verification.kraft.simulation.image import Image


class MetadataReplica:
    """A follower of the metadata log. The log survives a process; what was applied does not."""

    def __init__(self, node_id: int) -> None:
        self.key = ReplicaKey(node_id, UUID(int=(1 << 64) + node_id))
        self.epoch = 0
        """The leader epoch that the broker knows."""
        self._start = SnapshotId(0, 0)
        self._origin: list[records.MetadataRecord] = []
        """The records of the snapshot with which the log begins."""
        self._batches: list[WrittenBatch] = []
        self.restart()

    def restart(self) -> None:
        """Begin a process: the high watermark is known after a Fetch."""
        self.high_watermark = self._start.offset
        self.applied = self._start.offset
        self.image = Image()
        self._transaction: list[records.MetadataRecord] | None = None
        self._applied_batches = 0
        self._apply(self._origin)

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self._batches[-1].end if self._batches else self._start.offset

    def request(self) -> ReplicaFetch:
        """The next Fetch."""
        last_epoch = self._batches[-1].epoch if self._batches else self._start.epoch
        return ReplicaFetch(self.key, self.epoch, self.end, last_epoch, 20_000, 500, self.high_watermark)

    def append(self, answer: FetchAnswer) -> str | None:
        """Take the records of a response, and apply what is committed. Returns what is wrong with it."""
        for batch in batches_of(answer.read_records()):
            if batch.base != self.end:
                return f"a response begins at {batch.base}, the replica ends at {self.end}"
            self._batches.append(batch)
        if answer.high_watermark < self.high_watermark:
            return None  # A leader of one voter that has just started does not know it yet.
        self.high_watermark = min(answer.high_watermark, self.end)
        for batch in self._batches[self._applied_batches :]:
            if batch.end > self.high_watermark:
                break
            self._apply(batch.records)
            self.applied, self._applied_batches = batch.end, self._applied_batches + 1
        return None

    def truncate(self, offset: int) -> str | None:
        """Drop what the leader does not have. Returns what is wrong if that is committed."""
        while self._batches and self._batches[-1].end > offset:
            self._batches.pop()
        if self.end < self.applied:
            return f"records up to {self.applied} are committed, and the leader's log ends at {offset}"
        return None

    def load(self, snapshot_id: SnapshotId, content: Sequence[records.MetadataRecord]) -> None:
        """Replace all by a snapshot."""
        self._start, self._origin, self._batches = snapshot_id, list(content), []
        changed = set(self.image.partitions)
        self.restart()
        self.image.changed |= changed

    def _apply(self, content: Sequence[records.MetadataRecord]) -> None:
        """Apply records; those of a transaction count at its end."""
        for record in content:
            match record:
                case records.BeginTransactionRecord():
                    self._transaction = []
                case records.EndTransactionRecord():
                    complete, self._transaction = self._transaction or [], None
                    for each in complete:
                        self.image.apply(each)
                case records.AbortTransactionRecord():
                    self._transaction = None
                case _ if self._transaction is not None:
                    self._transaction.append(record)
                case _:
                    self.image.apply(record)
