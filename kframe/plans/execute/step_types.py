"""The kinds of steps between which ``steps.Planner`` chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kframe.plans.execute.entries import Action, ConfigKey, GoalChanged, RunEnded


@dataclass(frozen=True, slots=True)
class SaveOriginals:
    """Read the own values of these configurations, and save them in the journal."""

    keys: tuple[ConfigKey, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Observe again after a pause."""


Step: TypeAlias = Action | GoalChanged | RunEnded | SaveOriginals | Wait
"""Perform an action between two entries of the journal, append an entry, save originals, or wait."""
