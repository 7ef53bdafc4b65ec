"""The script of an operation: its steps in order, and what it adds to the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.content import brokers_text
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, StepReport
from kframe.whatif.results.topic_results import TopicResult

#: The replicas of each partition, by broker ids; None lets the controller place them.
Assignments: TypeAlias = Sequence[Sequence[int]] | None
#: What a step does. It returns the controller's response, a report that replaces the observed events, or None.
Action: TypeAlias = Callable[[], ControllerResponse | StepReport | None]
#: The name of a step, and its action.
Step: TypeAlias = tuple[str, Action]


class Script:
    """An operation to play. A script that adds to the outcome at its end overrides ``complete``."""

    def __init__(self, operation: Operation, steps: Sequence[Step]) -> None:
        self.operation = operation
        self.steps = steps
        self.progress: Progress = ignore_progress
        """Called with (done, total) repeatedly during long steps."""
        self.topics: list[TopicResult] = []
        """The results of the topics to create or delete, which the steps add."""
        self.notes: tuple[str, ...] = ()

    def complete(self, outcome: Outcome) -> Outcome:
        """The outcome of all steps with the results of this operation."""
        return outcome


def broker_steps(
    operation: Operation, singular: str, plural: str, act: Callable[[tuple[int, ...]], ControllerResponse | None]
) -> list[Step]:
    """The same step for each group of the operation's brokers, with such a verb in its name."""
    return [
        (step_name(group, singular, plural), partial(act, group))
        for group in groups(operation.brokers, operation.together)
    ]


def groups(ids: tuple[int, ...], together: bool) -> list[tuple[int, ...]]:
    """The brokers of each step."""
    return [ids] if together else [(broker_id,) for broker_id in ids]


def step_name(ids: tuple[int, ...], singular: str, plural: str) -> str:
    """``broker 4 fails``, ``brokers 4, 5 fail together``."""
    return f"{brokers_text(ids)} {singular if len(ids) == 1 else plural}"
