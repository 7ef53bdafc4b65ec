"""Choose the replicas that move between the directories of a broker, and where to.

Each move, or exchange of two replicas, brings directories nearer to their limits with the fewest bytes for what it
gains. Then replicas return, or smaller ones move instead, as far as the limits allow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np

from kframe.model.arrays import Int32, Int64
from kframe.plans.disks.problem import DirectoryProblem

#: The most exchanges of two replicas, and the most replacements by a smaller one, of a broker.
_EXCHANGES: Final = 100
#: What the moves may copy above the bound before smaller replicas are sought.
_CHEAP: Final = 1.001

_Move: TypeAlias = tuple[float, int, int, int, int, int]
"""The gain for a byte, the bytes, the free bytes of the target, source and target, and the position of the replica."""
_Exchange: TypeAlias = tuple[float, int, int, int, int]
"""The gain for a byte, source and target, and the replica of each."""


def choose_moves(problem: DirectoryProblem) -> Int32:
    """(n,) the directory of each replica after the moves. Equal problems give equal directories."""
    draft = _Draft(problem)
    draft.move_all()
    for _ in range(_EXCHANGES):
        if not draft.exchange():
            break
        draft.move_all()
    draft.return_replicas()
    bound = problem.bound(problem.rating(draft.target)[0]) * _CHEAP
    for _ in range(_EXCHANGES):
        if problem.rating(draft.target)[1] <= bound or not draft.replace():
            break
    return draft.target


class _Draft:
    """The moves so far. ``_staying`` has the replicas of each directory that may move and have not, ascending by
    size."""

    def __init__(self, problem: DirectoryProblem) -> None:
        self.target = problem.home.copy()
        self._home, self._sizes, self._size = problem.home, problem.size, problem.size.tolist()
        self._used, self._lower, self._upper = problem.used.tolist(), problem.lower.tolist(), problem.upper.tolist()
        self._room = np.where(problem.receives, problem.room, 0).tolist()
        order = np.argsort(problem.size, kind="stable")
        homes = problem.home[order]
        self._staying = [order[(homes == index) & gives].tolist() for index, gives in enumerate(problem.gives.tolist())]

    def move_all(self) -> None:
        """Make single moves until none gains."""
        while any((best := max(self._moves(pairs), default=None)) is not None for pairs in self._pairs()):
            assert best is not None
            _, _, _, source, target, position = best
            self._take(self._staying[source].pop(position), target)

    def exchange(self) -> bool:
        """Make the exchange that gains most between the directory that is farthest from its limits and another."""
        for pairs in self._pairs():
            exchanges = [exchange for pair in pairs if (exchange := self._best_exchange(*pair)) is not None]
            if exchanges:
                _, source, target, larger, smaller = max(exchanges)
                self._staying[source].remove(larger)
                self._staying[target].remove(smaller)
                self._take(larger, target)
                self._take(smaller, source)
                return True
        return False

    def return_replicas(self) -> None:
        """Return the replicas whose moves gain nothing, the largest first."""
        moved = np.flatnonzero(self.target != self._home)
        for replica in moved[np.argsort(-self._sizes[moved], kind="stable")].tolist():
            if self._gain(int(self.target[replica]), int(self._home[replica]), self._size[replica]) >= 0:
                self._return(replica)

    def replace(self) -> bool:
        """Move a smaller replica instead of another, where that saves most and loses nothing."""
        saved, replica, smaller = 0, -1, -1
        for moved in np.flatnonzero(self.target != self._home).tolist():
            source, target, size = int(self._home[moved]), int(self.target[moved]), self._size[moved]
            spare = min(self._upper[source] - self._used[source], self._used[target] - self._lower[target])
            staying = self._staying[source]
            position = self._position(source, size - spare)
            if position < len(staying) and size - self._size[staying[position]] > saved:
                saved, replica, smaller = size - self._size[staying[position]], moved, staying[position]
        if saved:
            target = int(self.target[replica])
            self._staying[int(self._home[replica])].remove(smaller)
            self._return(replica)
            self._take(smaller, target)
        return saved > 0

    def _pairs(self) -> Iterator[list[tuple[int, int]]]:
        """Directories between which to move: from each above its limit, the farthest first, then to each below."""
        every = range(len(self._used))
        above = sorted((self._upper[index] - self._used[index], index) for index in every)
        below = sorted((self._used[index] - self._lower[index], index) for index in every)
        yield from ([(index, other) for other in every if other != index] for distance, index in above if distance < 0)
        yield from ([(other, index) for other in every if other != index] for distance, index in below if distance < 0)

    def _moves(self, pairs: list[tuple[int, int]]) -> Iterator[_Move]:
        """The moves that gain. Where the gain of a size changes its slope, the best is next to such a size."""
        for source, target in pairs:
            staying, room = self._staying[source], self._room[target]
            for gap in self._gaps(source, target) if staying else ():
                first = self._position(source, gap)
                for position in (first - 1, first):
                    size = self._size[staying[position]] if 0 <= position < len(staying) else 0
                    if 0 < size <= room and (gain := self._gain(source, target, size)) > 0:
                        free = self._upper[target] - self._used[target]
                        yield gain / size, size, free, source, target, position

    def _best_exchange(self, source: int, target: int) -> _Exchange | None:
        """The exchange that gains most for its bytes: a replica goes to ``target``, and a smaller one comes back."""
        left, right = self._staying[source], self._staying[target]
        if not left or not right:
            return None
        sizes, others = self._sizes[left], self._sizes[right]
        best: _Exchange | None = None
        for gap in self._gaps(source, target):
            first = np.searchsorted(others, sizes - gap)
            for position in (np.maximum(first - 1, 0), np.minimum(first, len(others) - 1)):
                other = others[position]
                fits = (sizes > other) & (sizes <= self._room[target]) & (other <= self._room[source])
                gains = np.where(fits, self._gains(source, target, sizes - other), 0) / np.maximum(sizes + other, 1)
                index = int(gains.argmax())
                exchange = float(gains[index]), source, target, left[index], right[int(position[index])]
                if exchange[0] > 0 and (best is None or exchange > best):
                    best = exchange
        return best

    def _gaps(self, source: int, target: int) -> list[int]:
        """The sizes of moves after which a directory is at a limit."""
        used, lower, upper = self._used, self._lower, self._upper
        gaps = [used[source] - upper[source], used[source] - lower[source]]
        gaps += [lower[target] - used[target], upper[target] - used[target]]
        return [gap for gap in gaps if gap > 0]

    def _gain(self, source: int, target: int, size: int) -> int:
        """How many bytes fewer are outside of the limits after a move of ``size`` bytes."""
        gain = 0
        for index, used in ((source, self._used[source] - size), (target, self._used[target] + size)):
            lower, upper = self._lower[index], self._upper[index]
            gain += max(self._used[index] - upper, lower - self._used[index], 0) - max(used - upper, lower - used, 0)
        return gain

    def _gains(self, source: int, target: int, size: Int64) -> Int64:
        """``_gain`` of many sizes."""
        gains = np.zeros(len(size), np.int64)
        for index, used in ((source, self._used[source] - size), (target, self._used[target] + size)):
            lower, upper = self._lower[index], self._upper[index]
            gains += max(self._used[index] - upper, lower - self._used[index], 0)
            gains -= np.maximum(np.maximum(used - upper, lower - used), 0)
        return gains

    def _position(self, directory: int, size: int) -> int:
        """Where a size is, or would be, among the staying replicas of a directory."""
        return bisect_left(self._staying[directory], size, key=self._size.__getitem__)

    def _take(self, replica: int, target: int) -> None:
        self.target[replica] = target
        self._used[int(self._home[replica])] -= self._size[replica]
        self._used[target] += self._size[replica]
        self._room[target] -= self._size[replica]

    def _return(self, replica: int) -> None:
        source, target = int(self._home[replica]), int(self.target[replica])
        self.target[replica] = source
        self._used[source] += self._size[replica]
        self._used[target] -= self._size[replica]
        self._room[target] += self._size[replica]
        self._staying[source].insert(self._position(source, self._size[replica]), replica)
