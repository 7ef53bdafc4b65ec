"""Perform the steps of an execution: observe, decide, record the intent, act, record the outcome."""

from __future__ import annotations

from collections.abc import Iterable

from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.tables import Targets
from kframe.plans.execute.entries import (
    Action,
    ActionDone,
    ActionIntended,
    ChangeAssignments,
    ChangeConfigs,
    ChangeDirectories,
    ConfigEntry,
    ConfigKey,
    ElectPreferred,
    Entry,
    Goal,
    GoalChanged,
    OriginalsSaved,
    PartitionsSettled,
    Refusal,
    ResourceKind,
    RunEnded,
    RunResult,
)
from kframe.plans.execute.journal import Journal, JournalError
from kframe.plans.execute.observation import Observation
from kframe.plans.execute.state import ExecutionState, refusal_name
from kframe.plans.execute.step_types import SaveOriginals, Wait
from kframe.plans.execute.steps import Planner
from kframe.ports.administration import Administration, ConfigResource, DirectoryName
from kframe.snapshot.metadata import ClusterDescription

#: Results of an election that are not refusals.
_ELECTED = frozenset({ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED})


class Executor:
    """Executes the plan of a journal on a cluster: ``observe``, then ``step``, until that returns the last entry."""

    def __init__(self, admin: Administration, journal: Journal, state: ExecutionState) -> None:
        """``state`` has the entries of the journal."""
        self._admin = admin
        self._journal = journal
        self._state = state
        self.planner = Planner(state)

    def observe(self, description: ClusterDescription, requested: Goal | None) -> None:
        """Take the cluster as it is, and a goal that a user has requested since the last call: PAUSE or ABORT.

        Raises OSError where the journal cannot be written, and JournalError where this is another cluster.
        """
        check_cluster(self._state, description.cluster_id)
        is_running = self._state.goal in (Goal.EXECUTE, Goal.ROLLBACK)
        if (requested is Goal.PAUSE and is_running) or (requested is Goal.ABORT and self._state.goal is not Goal.ABORT):
            self._append(GoalChanged(requested, "requested"))
        brokers = sorted(self._state.directory_brokers)
        directories = self._admin.log_directories(brokers) if brokers else {}
        self.planner.observe(Observation.of(description, directories))
        if names := self.planner.settled():
            self._append(PartitionsSettled(tuple(names)))

    def step(self) -> RunEnded | None:
        """Perform steps until the cluster has to be observed again. Returns the last entry of an ended run.

        Raises StoreError where the cluster cannot be reached, and OSError where the journal cannot be written.
        """
        while True:
            match self.planner.next_step():
                case Wait():
                    return None
                case GoalChanged() as entry:
                    self._append(entry)
                case RunEnded() as ended:
                    self._append(ended)
                    return ended
                case SaveOriginals(keys):
                    self._append(OriginalsSaved(self._read(keys)))
                case action:
                    if self._perform(action) or not isinstance(action, ChangeConfigs):
                        return None

    def _append(self, entry: Entry) -> None:
        self._journal.append(entry)
        self._state.apply(entry)

    def _read(self, keys: Iterable[ConfigKey]) -> tuple[ConfigEntry, ...]:
        names: dict[ConfigResource, list[str]] = {}
        for key in keys:
            names.setdefault(_resource(key), []).append(key.name)
        values = self._admin.read_configs(names)
        return tuple(ConfigEntry(key, values[_resource(key)].get(key.name)) for key in keys)

    def _perform(self, action: Action) -> tuple[Refusal, ...]:
        """Perform an action between two entries. Returns what was refused."""
        self._append(ActionIntended(action))
        match action:
            case ChangeConfigs():
                refusals = self._change_configs(action)
            case ChangeAssignments():
                refusals = self._reassign(action)
            case ChangeDirectories():
                refusals = self._move_logs(action)
            case ElectPreferred():
                codes = self._admin.elect(ElectionType.PREFERRED, action.partitions)
                refusals = tuple(Refusal(*name, code.name) for name, code in codes.items() if code not in _ELECTED)
        self._append(ActionDone(action, refusals))
        return refusals

    def _change_configs(self, action: ChangeConfigs) -> tuple[Refusal, ...]:
        changes: dict[ConfigResource, dict[str, str | None]] = {}
        for change in action.changes:
            changes.setdefault(_resource(change.key), {})[change.key.name] = change.value
        codes = self._admin.change_configs(changes)
        answers = {
            refusal_name(change.key): codes.get(_resource(change.key), ErrorCode.UNKNOWN_SERVER_ERROR)
            for change in action.changes
        }
        refused = {name: code for name, code in answers.items() if code is not ErrorCode.NONE}
        done = [change for change in action.changes if refusal_name(change.key) not in refused]
        self.planner.throttles.configured(done, restores=action.restores, failed=bool(refused))
        return tuple(Refusal(name, -1, code.name) for name, code in refused.items())

    def _reassign(self, action: ChangeAssignments) -> tuple[Refusal, ...]:
        self._name_directories(action)
        targets = [(assignment.name, assignment.replicas) for assignment in action.assignments]
        codes = self._admin.reassign(Targets.of(targets))
        results = list(zip(action.assignments, codes, strict=True))
        self.planner.tracker.requested(assignment for assignment, code in results if code is ErrorCode.NONE)
        return tuple(Refusal(*assignment.name, code.name) for assignment, code in results if code is not ErrorCode.NONE)

    def _name_directories(self, action: ChangeAssignments) -> None:
        """Name the log directories of replicas that are about to be added.

        A broker creates a log in the directory that was named before, and says REPLICA_NOT_AVAILABLE until then
        (``LogManager.maybeUpdatePreferredLogDir``). A log that is elsewhere is moved once the replicas have arrived.
        """
        if self._state.rolls_back or not self._state.directory_brokers:
            return
        starting = {request.name for request in action.assignments if request.replicas is not None}
        paths: dict[int, dict[TopicPartition, str]] = {}
        for partition in self._state.partitions:
            for move in partition.directories if partition.name in starting else ():
                if move.origin is None:
                    paths.setdefault(move.broker_id, {})[partition.name] = move.target
        if paths:
            self._admin.alter_log_directories(paths)

    def _move_logs(self, action: ChangeDirectories) -> tuple[Refusal, ...]:
        paths: dict[int, dict[TopicPartition, str]] = {}
        for request in action.assignments:
            for broker_id, path in request.paths:
                paths.setdefault(broker_id, {})[request.name] = path
        answers = self._admin.alter_log_directories(paths)
        codes = {
            (name, DirectoryName(broker_id, path)): answers.get(broker_id, {}).get(name, ErrorCode.UNKNOWN_SERVER_ERROR)
            for broker_id, by_name in paths.items()
            for name, path in by_name.items()
        }
        refusals = tuple(
            Refusal(*name, code.name, directory.text)
            for (name, directory), code in codes.items()
            if code is not ErrorCode.NONE
        )
        refused = {refusal.name for refusal in refusals}
        self.planner.tracker.requested(request for request in action.assignments if request.name not in refused)
        return refusals


def check_cluster(state: ExecutionState, cluster_id: str | None) -> None:
    """Raise JournalError unless the journal is of this cluster."""
    if None not in (cluster_id, state.start.cluster_id) and cluster_id != state.start.cluster_id:
        raise JournalError("cluster id", str(cluster_id), f"{state.start.cluster_id}, that of the journal")


def succeeded(ended: RunEnded, state: ExecutionState, goal: Goal) -> bool:
    """Whether a run has done what the user requested by ``goal``, with every configuration restored."""
    expected = {
        Goal.EXECUTE: RunResult.COMPLETED,
        Goal.ROLLBACK: RunResult.ROLLED_BACK,
        Goal.ABORT: RunResult.ABORTED,
        Goal.PAUSE: RunResult.PAUSED,
    }
    return ended.result is expected[goal] and not state.originals


def _resource(key: ConfigKey) -> ConfigResource:
    if key.kind is ResourceKind.TOPIC:
        return ConfigResource(key.resource)
    return ConfigResource(None, int(key.resource))
