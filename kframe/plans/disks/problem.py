"""Which replicas of a broker go to which of its log directories: sizes, and the limits of each directory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Bool, Int32, Int64
from kframe.plans.disks.directories import BrokerDisks
from kframe.plans.disks.request import DiskRequest

#: Part of a limit by which floats may be wrong.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class DirectoryProblem:
    """``n`` replicas in ``d`` directories of a broker: the fewest bytes are to move so that each is within its limits.

    ``size`` (n,) bytes and ``home`` (n,) the directory of each replica. ``used`` (d,) bytes now, ``lower`` and
    ``upper`` (d,) the limits after the moves. ``gives`` and ``receives`` (d,): whether replicas may leave, or enter.
    ``room`` (d,) bytes that may enter at most, since no replica leaves its directory before it is copied.
    """

    size: Int64
    home: Int32
    used: Int64
    lower: Int64
    upper: Int64
    gives: Bool
    receives: Bool
    room: Int64

    def received(self, target: Int32) -> Int64:
        """(d,) bytes that enter each directory. ``target`` (n,) has the directory of each replica."""
        moved = target != self.home
        return np.bincount(target[moved], self.size[moved], len(self.used)).astype(np.int64)

    def used_after(self, target: Int32) -> Int64:
        """(d,) bytes of each directory."""
        moved = target != self.home
        left = np.bincount(self.home[moved], self.size[moved], len(self.used)).astype(np.int64)
        return self.used + self.received(target) - left

    def outside(self, used: Int64) -> Int64:
        """(d,) bytes above the upper limit, or below the lower one."""
        outside: Int64 = np.maximum(used - self.upper, 0) + np.maximum(self.lower - used, 0)
        return outside

    def rating(self, target: Int32) -> tuple[int, int]:
        """Bytes outside of the limits, and bytes that move: of two targets the lesser is better."""
        return int(self.outside(self.used_after(target)).sum()), int(self.size[target != self.home].sum())

    def bound(self, outside: int) -> int:
        """The bytes that move at least if ``outside`` bytes remain outside of the limits.

        What is above upper limits must leave, and what lacks below lower limits must enter, in whole replicas.
        """
        leaving, entering = np.maximum(self.used - self.upper, 0), np.maximum(self.lower - self.used, 0)
        if outside:
            return max(int(leaving.sum()), int(entering.sum()), outside) - outside
        given = self.gives[self.home]
        left = sum(
            _fewest_bytes(int(need), self.size[given & (self.home == index)]) for index, need in enumerate(leaving)
        )
        entered = sum(
            _fewest_bytes(int(need), self.size[given & (self.home != index)]) for index, need in enumerate(entering)
        )
        return max(left, entered)


def _fewest_bytes(need: int, size: Int64) -> int:
    """No replicas of these sizes have ``need`` bytes or more together, and fewer bytes than this.

    They are at least as many as the largest that reach it, and have at least the bytes of as many of the smallest.
    """
    if need <= 0:
        return 0
    ascending = np.sort(size)
    count = int(np.searchsorted(np.cumsum(ascending[::-1]), need)) + 1
    return max(need, int(ascending[:count].sum()))


def relief_problem(disks: BrokerDisks, request: DiskRequest) -> DirectoryProblem:
    """The problem of relieving directories. Raises InputError for a percentage of a disk of unknown size."""
    relieved = np.array([disks.name(index) in request.relieve for index in range(len(disks.used))], np.bool_)
    receives = ~relieved & np.array([refusal is None for refusal in disks.refusals], np.bool_)
    levels = [request.level(size) for size in disks.disk]
    for index in np.flatnonzero(relieved | receives).tolist():
        if levels[index] is None:
            name = disks.name(index).text
            raise ParameterError(
                "until", f"no size of the disk of {name}", "the capacity of the disk with it, or a level in bytes"
            )
    level = np.array([0 if bytes_max is None else bytes_max for bytes_max in levels], np.int64)
    upper = np.where(relieved, level, np.maximum(np.where(receives, level, 0), disks.used))
    # A relieved directory must not bring another one above the level.
    room = np.minimum(disks.room, np.maximum(upper - disks.used, 0))
    return _problem(replace(disks, room=room), np.zeros_like(disks.used), upper, gives=relieved, receives=receives)


def level_problem(disks: BrokerDisks, request: DiskRequest) -> DirectoryProblem:
    """The problem of levelling the directories that may receive: by the share of their disks, or equally if a size is
    unknown. All others stay as they are."""
    receives = np.array([refusal is None for refusal in disks.refusals], np.bool_)
    disk = np.array([1 if size is None else size for size in disks.disk], np.float64)
    if any(disks.disk[index] is None for index in np.flatnonzero(receives).tolist()):
        disk[:] = 1
    part = disk / max(float(disk[receives].sum()), 1.0)
    share = part * float(disks.used[receives].sum())
    tolerance = request.tolerance / 100
    lower = np.where(receives, np.floor(share * (1 - tolerance) * (1 + _ROUNDING)), disks.used).astype(np.int64)
    upper = np.where(receives, np.ceil(share * (1 + tolerance) * (1 - _ROUNDING)), disks.used).astype(np.int64)
    return _problem(disks, lower, upper, gives=receives, receives=receives)


def _problem(disks: BrokerDisks, lower: Int64, upper: Int64, *, gives: Bool, receives: Bool) -> DirectoryProblem:
    moves = not disks.offline
    return DirectoryProblem(
        disks.size, disks.home, disks.used, lower, upper, gives & moves, receives & moves, disks.room
    )
