"""What a goal of an execution still moves on the cluster as it is, and the expected effect."""

from __future__ import annotations

from kframe.model.events import TopicPartition
from kframe.model.plan import Plan
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.execute.entries import Goal
from kframe.plans.execute.observation import Observation, Position
from kframe.plans.execute.report import ExecutionEffect
from kframe.plans.execute.state import ExecutionState
from kframe.ports.administration import Administration
from kframe.snapshot.metadata import ClusterDescription


def remaining_moves(
    state: ExecutionState, goal: Goal, description: ClusterDescription
) -> list[tuple[TopicPartition, tuple[int, ...]]]:
    """Partitions with the replicas that they move to.

    EXECUTE and ROLLBACK move all that have not arrived, PAUSE those in flight, and ABORT moves those in flight back.
    """
    observation = Observation.of(description)
    rolls_back = goal is Goal.ROLLBACK or (goal is not Goal.EXECUTE and state.rolls_back)
    moves = []
    for partition in state.partitions:
        if rolls_back and partition.name not in state.started:
            continue
        start, end = partition.ends(rolls_back)
        position = observation.position(partition, start, end)
        in_flight = position is Position.TO_END
        if goal is Goal.ABORT:
            moves += [(partition.name, start)] if in_flight else []
        elif in_flight if goal is Goal.PAUSE else position not in (Position.AT_END, Position.DELETED):
            moves.append((partition.name, end))
    return moves


def remaining_effect(state: ExecutionState, goal: Goal, admin: Administration) -> ExecutionEffect | None:
    """The expected effect of what a goal still moves; None if that is nothing. Raises StoreError."""
    moves = remaining_moves(state, goal, admin.describe())
    return ExecutionEffect.of(resolve_plan(Plan.of(moves, state.start.plan), admin.capture())) if moves else None
