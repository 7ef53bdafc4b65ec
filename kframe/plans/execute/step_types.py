"""The kinds of steps between which ``steps.Planner`` chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kframe.plans.execute.entries import Action, ConfigKey, Goal, RunResult


@dataclass(frozen=True, slots=True)
class SaveOriginals:
    """Read the own values of these configurations, and save them in the journal."""

    keys: tuple[ConfigKey, ...]


@dataclass(frozen=True, slots=True)
class SetGoal:
    """Save a new goal in the journal."""

    goal: Goal
    reason: str


@dataclass(frozen=True, slots=True)
class Perform:
    """Perform an action, between two entries of the journal."""

    action: Action


@dataclass(frozen=True, slots=True)
class Wait:
    """Observe again after a pause."""


@dataclass(frozen=True, slots=True)
class End:
    """Save the result in the journal and end."""

    result: RunResult
    reason: str


Step: TypeAlias = SaveOriginals | SetGoal | Perform | Wait | End
