"""Rows of a log that is still growing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from kframe_kraft.disk import LogHistory
from kframe_kraft.disk.following import NewBatches
from kframe_kraft.time_travel.entries import EntryFilter, EntryLister, transactions_of


class LogFollower(Protocol):
    """Reads batches that are appended to a log."""

    @property
    def pause_s(self) -> float:
        """Seconds to wait after a poll without new batches."""

    def poll(self) -> NewBatches:
        """Return the new batches. Raises LogError for a damaged log."""


class StopCondition(Protocol):
    """Whether to end (``kframe.plugin.commands.StopSignal``)."""

    def __bool__(self) -> bool:
        """Whether to end now."""

    def wait(self, timeout_s: float, /) -> bool:
        """Wait. Return whether to end."""


def followed_entries(
    history: LogHistory,
    follower: LogFollower,
    selection: EntryFilter,
    stop: StopCondition,
    report: Callable[[str], object],
) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of ``history`` as ``entries`` does, then those that ``follower`` reads, until ``stop``.

    Yields None where no further row is ready. ``report`` receives messages about offsets that the log no longer has.
    Raises LogError for a damaged log.
    """
    lister = EntryLister(selection, transactions_of(history.log.batches))
    lister.add_snapshot_names(history.snapshot)
    for batch in history.log.batches:
        if stop:
            return
        yield from lister.rows(batch, history.committed)
    while not stop:
        yield None
        new_batches = follower.poll()
        if new_batches.replaced:
            report(new_batches.replaced)
        lister.add_snapshot_names(new_batches.snapshot)
        for batch in new_batches.batches:
            yield from lister.rows(batch, new_batches.committed)
        if not new_batches.batches:
            stop.wait(follower.pause_s)
