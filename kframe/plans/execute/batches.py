"""Execute a plan on a live cluster in batches, and the plan that rolls it back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.plans.check.resolve import CheckedPlan
from kframe.plans.file.write import plan_document
from kframe.snapshot.administration import Administration, PartitionReassignment


def rollback_document(checked: CheckedPlan) -> str:
    """The rollback plan: each partition gets its present replicas without those that are being added."""
    known = np.flatnonzero(checked.rows >= 0)
    targets = checked.plan.targets.take(known)
    back = Targets(targets.names, targets.topic, targets.partition, checked.origin.take(known), targets.cancel)
    observers = checked.snapshot.partitions.observers
    observers = None if observers is None else observers.take(checked.rows[known])
    return plan_document(Plan(checked.plan.name, back, np.zeros(len(back), np.bool_), observers))


class PlanExecution:
    """The execution of a plan in batches: the next begins when the last has ended."""

    def __init__(self, admin: Administration, plan: Plan, batch_size: int | None = None) -> None:
        """``batch_size`` partitions move at a time; None: all."""
        self._admin = admin
        self._targets = plan.targets
        self._size = batch_size or max(len(plan), 1)
        self._next = 0
        self._moving: set[TopicPartition] = set()
        self.refused: dict[TopicPartition, ErrorCode] = {}
        """Refused partitions, with the error codes of the controller."""

    @property
    def total(self) -> int:
        """Partitions of the plan."""
        return len(self._targets)

    @property
    def moving(self) -> frozenset[TopicPartition]:
        """Partitions whose reassignment was in progress at the last ``refresh``."""
        return frozenset(self._moving)

    @property
    def done(self) -> int:
        """Partitions that have ended, refused ones included."""
        return self._next - len(self._moving)

    def begin(self) -> bool:
        """Begin the next batch; False if there is none any more."""
        if self._next >= self.total:
            return False
        batch = self._targets.take(np.arange(self._next, min(self._next + self._size, self.total)))
        self._next += len(batch)
        codes = self._admin.reassign(batch)
        names = batch.partitions()
        refused = {name: code for name, code in zip(names, codes, strict=True) if code is not ErrorCode.NONE}
        self.refused |= refused
        self._moving = set(names) - refused.keys()
        return True

    def refresh(self) -> bool:
        """List the ongoing reassignments. Returns whether any of the batch is in progress."""
        if self._moving:
            self._moving &= self._admin.reassignments().keys()
        return bool(self._moving)


def cancel(admin: Administration, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Cancel these reassignments. Returns a code for each."""
    codes = admin.reassign(Targets.of([(partition, None) for partition in partitions]))
    return dict(zip(partitions, codes, strict=True))


def reassignments_to_cancel(
    moving: dict[TopicPartition, PartitionReassignment], plan: Plan | None
) -> list[TopicPartition]:
    """The ongoing reassignments of a plan, or all of them."""
    selected = moving.keys() if plan is None else moving.keys() & set(plan.targets.partitions())
    return sorted(selected)


def unassigned_partitions(plan: Plan, checked: CheckedPlan) -> Iterator[TopicPartition]:
    """Partitions whose present assignment differs from the plan."""
    for position, name in enumerate(plan.targets.partitions()):
        if checked.current[position].tolist() != plan.targets.replicas[position].tolist():
            yield name
