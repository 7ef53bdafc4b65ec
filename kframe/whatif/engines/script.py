"""The script of an operation: its steps in order, and what it adds to the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.content import brokers_text
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, StepReport

#: What a step does. It returns the controller's response, a report that replaces the observed events, or None.
Action: TypeAlias = Callable[[], ControllerResponse | StepReport | None]
#: The name of a step, and its action.
Step: TypeAlias = tuple[str, Action]


class Script:
    """An operation to play. A script with results of its own overrides ``complete``."""

    def __init__(self, operation: Operation, steps: Sequence[Step]) -> None:
        self.operation = operation
        self.steps = steps
        self.progress: Progress = ignore_progress
        """Called with (done, total) repeatedly during long steps."""

    def complete(self, outcome: Outcome) -> Outcome:
        """The outcome of all steps with the results of this operation."""
        return outcome


def groups(ids: tuple[int, ...], together: bool) -> list[tuple[int, ...]]:
    """The brokers of each step."""
    return [ids] if together else [(broker_id,) for broker_id in ids]


def step_name(ids: tuple[int, ...], singular: str, plural: str) -> str:
    """``broker 4 fails``, ``brokers 4, 5 fail together``."""
    return f"{brokers_text(ids)} {singular if len(ids) == 1 else plural}"
