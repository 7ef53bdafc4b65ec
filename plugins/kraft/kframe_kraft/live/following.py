"""Follows the committed records of a running quorum, also after a change of its leader."""

from __future__ import annotations

from collections.abc import Callable

from kframe.plugin import StoreError
from kframe_kraft.disk import CommittedEnd, LogHistory
from kframe_kraft.disk.following import NewBatches
from kframe_kraft.live.observer import QuorumObserver


class QuorumFollower:
    """Reads the committed batches after those that were dropped from an observer's log. One thread calls it."""

    #: The leader waits for records, see ``WAIT_MS``.
    pause_s = 0.0

    def __init__(self, observer: QuorumObserver, history: LogHistory, report: Callable[[str], object]) -> None:
        """``history`` is what the observer has read. ``report`` receives why no leader can be reached."""
        self._observer = observer
        self._generation = observer.generation
        self._end = history.log.end
        self._report = report
        self._problem = ""

    def poll(self) -> NewBatches:
        """Return new committed batches. Without a usable leader there are none. Raises LogError for a malformed log."""
        observer, log = self._observer, self._observer.log
        try:
            observer.poll()
            self._problem = ""
        except StoreError as error:
            if str(error) != self._problem:
                self._report(f"{error}; retrying")
            self._problem = str(error)
        replaced, snapshot = "", None
        if observer.generation != self._generation:
            self._generation, snapshot = observer.generation, log.snapshot
            replaced = f"offsets {self._end} to {log.snapshot_id.offset - 1} were deleted before they were read"
            self._end = log.snapshot_id.offset
        batches = log.committed_batches(self._end)
        self._end = batches[-1].header.next_offset if batches else self._end
        log.drop(self._end)
        return NewBatches(batches, CommittedEnd(self._end, exact=True), replaced, snapshot)
