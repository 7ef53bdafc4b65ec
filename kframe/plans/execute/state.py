"""The state of an execution by its journal: the goal, saved originals, and what was started, refused and settled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.plans.execute.entries import (
    ActionDone,
    ActionIntended,
    ChangeAssignments,
    ChangeConfigs,
    ChangeDirectories,
    ConfigKey,
    Entry,
    ExecutedPartition,
    ExecutionLimits,
    ExecutionStarted,
    Goal,
    GoalChanged,
    OriginalsSaved,
    PartitionsSettled,
    ResourceKind,
    RunEnded,
    RunResult,
    UnhealthyPartitions,
)

#: Errors that do not refuse an assignment: the request is sent again, or a reassignment ended before its cancellation.
RETRIABLE: Final = frozenset(
    {"NOT_CONTROLLER", "REQUEST_TIMED_OUT", "UNKNOWN_SERVER_ERROR", "NO_REASSIGNMENT_IN_PROGRESS"}
)
#: The error of a move between log directories that is requested again once the broker is back.
_UNREACHABLE: Final = ErrorCode.BROKER_NOT_AVAILABLE.name
#: Errors of a topic that was deleted meanwhile: it has no configurations to restore.
_DELETED: Final = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "INVALID_TOPIC_EXCEPTION"})


class ExecutionState:
    """The state after the entries of a journal. ``apply`` each further entry."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        """The first entry is ExecutionStarted, as ``journal`` ensures."""
        start = entries[0]
        assert isinstance(start, ExecutionStarted)
        self.start = start
        self.directory_brokers: Final = {
            move.broker_id for partition in self.partitions for move in partition.directories
        }
        """The brokers of which the plan names log directories."""
        self.unhealthy: UnhealthyPartitions = start.unhealthy
        self.limits: ExecutionLimits = start.limits
        self.goal = Goal.EXECUTE
        self.reason = ""
        self.rolls_back = False
        """Whether partitions move back to their origin; a pause and an abort keep the direction."""
        self.originals: dict[ConfigKey, str | None] = {}
        """Configurations that the execution may have changed, with the values before."""
        self.started: set[TopicPartition] = set()
        """Partitions whose reassignment was requested at any time."""
        self.refused: dict[TopicPartition, str] = {}
        """The error of the last request since the goal was set."""
        self.settled: set[TopicPartition] = set()
        self.result: RunResult | None = None
        """How the last run ended; None while a run is in progress, or after a crash."""
        self.unanswered = False
        """Whether an action was intended and not done, so that a request may still be on its way."""
        for entry in entries[1:]:
            self.apply(entry)

    @property
    def partitions(self) -> Iterator[ExecutedPartition]:
        """All partitions of the plan, in order."""
        return chain.from_iterable(self.start.stages)

    @property
    def stages(self) -> Sequence[Sequence[ExecutedPartition]]:
        """What the direction moves, stage after stage: all partitions, or the started ones in reverse order."""
        if not self.rolls_back:
            return self.start.stages
        return [
            [partition for partition in reversed(stage) if partition.name in self.started]
            for stage in reversed(self.start.stages)
        ]

    @property
    def is_finished(self) -> bool:
        """Whether nothing to do for the goal: the last run succeeded and restored all configurations."""
        return self.result not in (None, RunResult.INCOMPLETE) and not self.originals

    def apply(self, entry: Entry) -> None:
        """Add an entry."""
        if isinstance(entry, ActionIntended | ActionDone):
            self.unanswered = isinstance(entry, ActionIntended)
        match entry:
            case GoalChanged():
                self._change_goal(entry)
            case OriginalsSaved():
                self.originals |= {config.key: config.value for config in entry.configs}
            case ActionIntended(ChangeAssignments(assignments) | ChangeDirectories(assignments)):
                names = {assignment.name for assignment in assignments}
                self.started |= names
                self.settled -= names
            case ActionDone(ChangeAssignments()):
                self.refused |= {
                    refusal.name: refusal.error for refusal in entry.refusals if refusal.error not in RETRIABLE
                }
            case ActionDone(ChangeDirectories()):
                texts: dict[TopicPartition, list[str]] = {}
                for refusal in entry.refusals:
                    if refusal.error != _UNREACHABLE:
                        texts.setdefault(refusal.name, []).append(refusal.text)
                self.refused |= {name: ", ".join(errors) for name, errors in texts.items()}
            case ActionDone(ChangeConfigs(changes, restores)) if restores:
                failed = {refusal.topic for refusal in entry.refusals if refusal.error not in _DELETED}
                for change in changes:
                    if refusal_name(change.key) not in failed:
                        self.originals.pop(change.key, None)
            case PartitionsSettled():
                self.settled |= set(entry.partitions)
            case RunEnded():
                self.result = entry.result
                self.reason = entry.reason

    def _change_goal(self, entry: GoalChanged) -> None:
        self.goal, self.reason, self.result = entry.goal, entry.reason, None
        self.refused = {}
        if entry.goal in (Goal.EXECUTE, Goal.ROLLBACK):
            rolls_back = entry.goal is Goal.ROLLBACK
            if rolls_back != self.rolls_back:
                self.settled = set()
            self.rolls_back = rolls_back
        if entry.unhealthy is not None:
            self.unhealthy = entry.unhealthy
        if entry.limits is not None:
            self.limits = entry.limits


def refusal_name(key: ConfigKey) -> str:
    """How a Refusal names the resource of a configuration."""
    return key.resource if key.kind is ResourceKind.TOPIC else f"broker {key.resource}"
