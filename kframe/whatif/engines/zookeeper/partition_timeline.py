"""The timeline of one partition. It has the stored state after each write of the what-ifs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kframe.model.cluster import PartitionView


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """The partition after a write that changed it, and in words what that was."""

    description: str
    view: PartitionView


class PartitionTimeline:
    """The states of a partition, from its present one on. ``WhatIf.follow`` makes them."""

    def __init__(self, stored: Callable[[], PartitionView | None]) -> None:
        """``stored`` reads the partition. None once it is deleted."""
        self._stored = stored
        self.entries: list[TimelineEntry] = []
        self.note()

    def note(self) -> None:
        """Record the state after a write, if the write changed this partition."""
        view = self._stored()
        if view is None:
            return
        description = describe_change(self.entries[-1].view, view) if self.entries else "present state"
        if description:
            self.entries.append(TimelineEntry(description, view))


def describe_change(before: PartitionView, after: PartitionView) -> str:
    """The change of a partition in words; empty if nothing changed."""
    parts = [*_assignment(before, after), *_state(before, after)]
    if not parts and before.leader_epoch != after.leader_epoch:
        parts.append("higher leader epoch")
    return "; ".join(parts)


def _assignment(before: PartitionView, after: PartitionView) -> list[str]:
    before_marks, after_marks = _marks(before), _marks(after)
    if before_marks == after_marks:
        return ["another assignment"] if before.replicas != after.replicas else []
    if any(after_marks):
        return ["reassignment replaced" if any(before_marks) else "reassignment begins"]
    target = tuple(broker_id for broker_id in before.replicas if broker_id not in before.removing_replicas)
    return ["reassignment done" if after.replicas == target else "reassignment cancelled"]


def _marks(view: PartitionView) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return view.adding_replicas, view.removing_replicas


def _state(before: PartitionView, after: PartitionView) -> list[str]:
    parts = []
    if before.leader != after.leader:
        parts.append("no leader" if after.leader in (None, -1) else f"{after.leader} leads")
    joined = [broker_id for broker_id in after.isr if broker_id not in before.isr]
    removed = [broker_id for broker_id in before.isr if broker_id not in after.isr]
    if joined:
        parts.append(f"{_listed(joined)} in sync")
    if removed:
        parts.append(f"{_listed(removed)} out of the ISR")
    return parts


def _listed(brokers: list[int]) -> str:
    return ",".join(map(str, brokers))
