"""Rows of a log that is still growing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from kframe_kraft.disk import LogHistory
from kframe_kraft.disk.following import NewBatches
from kframe_kraft.time_travel.entries import EntryFilter, EntryLister, transactions_of


class LogFollower(Protocol):
    """Reads what is appended to a log."""

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
    chosen: EntryFilter,
    stop: StopCondition,
    report: Callable[[str], object],
) -> Iterator[dict[str, Any] | None]:
    """Yield the rows of ``history`` as ``entries`` does, then those that ``follower`` reads, until ``stop``.

    Yields None where no further row is ready. ``report`` receives which offsets are not in the log any more. Raises
    LogError for a damaged log.
    """
    lister = EntryLister(chosen, transactions_of(history.log.batches))
    lister.note_snapshot(history.snapshot)
    for batch in history.log.batches:
        if stop:
            return
        yield from lister.rows(batch, history.committed)
    while not stop:
        yield None
        news = follower.poll()
        if news.replaced:
            report(news.replaced)
        lister.note_snapshot(news.snapshot)
        for batch in news.batches:
            yield from lister.rows(batch, news.committed)
        if not news.batches:
            stop.wait(follower.pause_s)
