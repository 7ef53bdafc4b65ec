"""``leader-epoch-checkpoint``: the offset at which each leader epoch begins (Kafka ``LeaderEpochFileCache``)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from kframe.plugin.settings import parse_whole
from kframe_kraft.errors import LogError

FILE_NAME: Final = "leader-epoch-checkpoint"
_VERSION: Final = "0"
_OFFSET_MAX: Final = 2**63 - 1


class LogEpochEnd(NamedTuple):
    """A leader epoch and the offset after its last record."""

    epoch: int
    offset: int


class EpochStarts:
    """The epochs of a log, ascending, each with the offset of its first record. One thread changes it; others read."""

    def __init__(self) -> None:
        self._lists: tuple[list[int], list[int]] = [], []
        """Epochs and starts. A change replaces both at once."""

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(*self._lists, strict=True)

    @property
    def last(self) -> int:
        """The last epoch. -1 if there is none."""
        epochs, _ = self._lists
        return epochs[-1] if epochs else -1

    def note(self, epoch: int, start: int) -> bool:
        """Note the epoch of a batch at ``start``. Returns whether it is a later one than those before."""
        if epoch <= self.last:
            return False
        epochs, starts = self._lists
        count = bisect_left(starts, start)
        self._lists = [*epochs[:count], epoch], [*starts[:count], start]
        return True

    def end_of(self, epoch: int, log_end: int) -> LogEpochEnd | None:
        """The end of the largest epoch up to ``epoch``. None if the log has no epoch up to it, or none from it on.

        An epoch before the first one ends where the first one begins.
        """
        epochs, starts = self._lists
        if not epochs or epoch > epochs[-1]:
            return None
        if epoch == epochs[-1]:
            return LogEpochEnd(epoch, log_end)
        later = bisect_right(epochs, epoch)
        return LogEpochEnd(epochs[later - 1] if later else epoch, starts[later])

    def truncate(self, end: int) -> None:
        """Drop the epochs that begin at ``end`` or later."""
        epochs, starts = self._lists
        count = bisect_left(starts, end)
        self._lists = epochs[:count], starts[:count]

    def delete_before(self, start: int) -> None:
        """Drop the epochs that end at ``start`` or before; the first one that remains begins there."""
        epochs, starts = self._lists
        count = max(bisect_right(starts, start) - 1, 0)
        self._lists = epochs[count:], [max(each, start) for each in starts[count:]]

    def to_bytes(self) -> bytes:
        """The content of the file."""
        lines = [_VERSION, str(len(self._lists[0])), *(f"{epoch} {start}" for epoch, start in self)]
        return "".join(f"{line}\n" for line in lines).encode()


def read_epochs(directory: Path) -> EpochStarts | None:
    """Return the content of a log's file, None if there is none. Raises LogError if it is malformed."""
    path = directory / FILE_NAME
    try:
        lines = path.read_bytes().decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return None
    numbers = [[parse_whole(word, _OFFSET_MAX) for word in line.split(" ")] for line in lines[2:]]
    pairs = [(pair[0], pair[1]) for pair in numbers if len(pair) == 2 and pair[0] is not None and pair[1] is not None]
    ascending = all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(pairs))
    if lines[:1] != [_VERSION] or lines[1:2] != [str(len(numbers))] or len(pairs) != len(numbers) or not ascending:
        raise LogError(str(path), repr("\n".join(lines))[:100], "version 0, a count, and ascending epochs and offsets")
    stored = EpochStarts()
    for epoch, start in pairs:
        stored.note(epoch, start)
    return stored
