"""Cancel reassignments in progress, whichever client began them."""

from __future__ import annotations

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.model.plan import Plan
from kframe.model.tables import Targets
from kframe.ports.administration import Administration


def ongoing(admin: Administration, plan: Plan | None = None) -> list[TopicPartition]:
    """The partitions of a plan that are being reassigned, sorted; without a plan all that are."""
    moving = admin.reassignments().keys()
    return sorted(moving if plan is None else moving & set(plan.targets.partitions()))


def cancel(admin: Administration, partitions: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Cancel the reassignments of these partitions. Returns the controller's code for each."""
    codes = admin.reassign(Targets.of([(partition, None) for partition in partitions]))
    return dict(zip(partitions, codes, strict=True))
