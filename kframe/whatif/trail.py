"""The timeline of one partition: how storage has it, write after write, while what-ifs are played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kframe.model.cluster import PartitionView


@dataclass(frozen=True, slots=True)
class Moment:
    """The partition after a write that changed it, and in words what that was."""

    what: str
    view: PartitionView


class Trail:
    """Where a partition has been; it begins with how things stand. ``WhatIf.follow`` makes them."""

    def __init__(self, stored: Callable[[], PartitionView | None]) -> None:
        """``stored`` reads the partition; None once it is gone."""
        self._stored = stored
        self.moments: list[Moment] = []
        self.note()

    def note(self) -> None:
        """Something was written: look whether it was about this partition."""
        view = self._stored()
        if view is None:
            return
        what = told(self.moments[-1].view, view) if self.moments else "as it stands"
        if what:
            self.moments.append(Moment(what, view))


def told(before: PartitionView, after: PartitionView) -> str:
    """What became of a partition, in words; nothing if the same is stored."""
    parts = [*_assignment(before, after), *_state(before, after)]
    if not parts and before.leader_epoch != after.leader_epoch:
        parts.append("higher leader epoch")
    return "; ".join(parts)


def _assignment(before: PartitionView, after: PartitionView) -> list[str]:
    if (before.adding_replicas, before.removing_replicas) != (after.adding_replicas, after.removing_replicas):
        if not after.adding_replicas and not after.removing_replicas:
            return ["the move is done"]
        return ["a move begins"]
    return ["another assignment"] if before.replicas != after.replicas else []


def _state(before: PartitionView, after: PartitionView) -> list[str]:
    parts = []
    if before.leader != after.leader:
        parts.append("no leader" if after.leader in (None, -1) else f"{after.leader} leads")
    joined = [one for one in after.isr if one not in before.isr]
    left = [one for one in before.isr if one not in after.isr]
    if joined:
        parts.append(f"{_listed(joined)} in sync")
    if left:
        parts.append(f"{_listed(left)} out of the ISR")
    return parts


def _listed(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))
