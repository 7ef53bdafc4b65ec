"""Follow the committed log of a KRaft quorum, and compare each batch with what the rules write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import RECORDS_MAX
from kframe.core.kraft.random_source import JavaRandom
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.releases import known_release, release_of_level
from kframe.ports.committed_log import CommittedBatch, CommittedLog
from kframe.ports.progress import Progress, ignore_progress
from kframe.whatif.shadow.kraft.batches import BatchComparison, compare_batch


class LogShadow:
    """Predicts each committed batch from the state before it. It only reads.

    One thread calls ``poll`` repeatedly. All methods raise StoreError without a usable leader, and LogError or
    InputError for a malformed log.
    """

    def __init__(self, log: CommittedLog, settings: KraftSettings, *, knows_unclean: bool = False) -> None:
        """``log`` is not open yet. ``knows_unclean``: see ``compare_batch``."""
        self.controller = NO_LEADER
        """The active controller that wrote the last batch. -1 if none is known."""
        self.controller_epoch = -1
        self.skipped = 0
        """Offsets that a snapshot has replaced before they were read."""
        self._log = log
        self._settings = settings
        self._knows_unclean = knows_unclean
        self._pending: list[CommittedBatch] = []
        self._generation = 0

    @property
    def end(self) -> int:
        """The offset after the batches that were read."""
        return self._log.end

    def open(self, progress: Progress = ignore_progress, *, from_start: bool = False) -> None:
        """Connect, and take the state at the end of the log as correct, or that of its snapshot ``from_start``."""
        self._log.open(progress, from_start=from_start)
        self._begin()

    def close(self) -> None:
        """Disconnect."""
        self._log.close()

    def poll(self) -> Iterator[BatchComparison]:
        """Wait a little for batches, and yield a comparison for each.

        A batch as large as the largest decision part is compared together with the next one.
        """
        end = self._log.end
        batches = self._log.poll()
        if self._log.generation != self._generation:
            self.skipped += self._log.end - end
            self._begin()
        for batch in batches:
            self._pending.append(batch)
            if len(batch.records) < RECORDS_MAX:
                yield from self.finish()

    def finish(self) -> Iterator[BatchComparison]:
        """Yield the comparison of batches that are not compared yet, because more of a decision may follow."""
        batches, self._pending = self._pending, []
        if batches:
            self.controller, self.controller_epoch = batches[-1].leader_id, batches[-1].leader_epoch
            metadata = self._context.metadata
            registrations = metadata.brokers.registrations.values()
            release = known_release(metadata.controllers, registrations, self.controller)
            release = release or release_of_level(metadata.metadata_version)
            self._context.settings = replace(
                self._settings, node_id=self.controller, quorum_ids=tuple(metadata.controllers), release=release
            )
            yield compare_batch(self._context, batches, knows_unclean=self._knows_unclean)

    def _begin(self) -> None:
        """Take the state of the log as correct. Sessions of brokers are unknown, so none is valid."""
        metadata = self._log.metadata()
        self.controller = self._log.leader_id
        heartbeats = Heartbeats.activated(0, metadata.brokers.registrations, 0)
        heartbeats.contact_ns.clear()
        self._context = KraftContext(metadata, heartbeats, self._settings, JavaRandom(0))
        self._generation, self._pending = self._log.generation, []
