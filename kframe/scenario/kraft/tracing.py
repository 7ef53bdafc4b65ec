"""Plays the steps of a KRaft scenario to a controller and records the trace (``kframe.trace-kraft/v1``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import kframe
from kframe.errors import ScenarioError
from kframe.model.kraft.control import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kframe.model.kraft.record_json import control_to_json
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.scenario.fields import Empty
from kframe.scenario.format import Step
from kframe.scenario.kraft import broker_steps
from kframe.scenario.kraft.arguments import (
    CreatedTopicEntry,
    DirectoryAssignments,
    IsrChange,
    KraftTopicEntry,
    RegistrationOptions,
    RestartOptions,
)
from kframe.scenario.kraft.brokers import ProcessState
from kframe.scenario.kraft.image import image_of
from kframe.scenario.kraft.names import canonical_order
from kframe.scenario.kraft.playing import KraftRun, SnapshotRecord
from kframe.scenario.kraft.quorum import SECOND, LogBatch

SCHEMA: Final = "kframe.trace-kraft/v1"
#: Most topics of a request that creates the topics of the start.
TOPICS_MAX: Final = 50
#: The function of each step that sends requests. It gets the run and the argument in its type.
KraftActions: TypeAlias = Mapping[str, Callable[[Any, Any], Any]]
_CONTROL_NAMES: Final = {
    LeaderChangeMessage: "LeaderChange",
    KRaftVersionRecord: "KRaftVersion",
    VotersRecord: "KRaftVoters",
    SnapshotHeaderRecord: "SnapshotHeader",
    SnapshotFooterRecord: "SnapshotFooter",
}


class KraftScenarioTracer:
    """One scenario; ``play`` may be called once."""

    def __init__(self, run: KraftRun, actions: KraftActions) -> None:
        self._run, self._actions = run, actions
        self._traced_batches = 0
        self._snapshot: dict[str, Any] = {}

    def play(self) -> dict[str, Any]:
        """The whole trace. Raises ScenarioError for a step that cannot be played."""
        run = self._run
        steps = [self._step(step) for step in run.scenario.steps]
        return {
            "schema": SCHEMA,
            "scenario": run.scenario.name,
            "controller": f"kframe {kframe.__version__}",
            "default_features": run.features,
            "steps": steps,
            "image": image_of(run.metadata, run.names),
        }

    def _step(self, step: Step) -> dict[str, Any]:
        run = self._run
        run.messages, self._snapshot = {}, {}
        known = set(run.names.epochs())
        response = self._act(step)
        run.wait_until_idle()
        if step.kind in ("controlled_shutdown", "clean_stop"):
            response = self._shutdown_responses(step)
        log = run.log
        batches = [self._batch(batch) for batch in log[self._traced_batches :] if not batch.is_idle]
        self._traced_batches = len(log)
        trace_step: dict[str, Any] = {"step": {step.kind: step.argument}, "batches": batches}
        epochs = {name: epoch for name, epoch in run.names.epochs().items() if name not in known}
        optional = {"broker_epochs": epochs, "snapshot": self._snapshot, "messages": dict(run.messages)}
        return trace_step | {"response": response} | {key: value for key, value in optional.items() if value}

    def _act(self, step: Step) -> Any:
        controller_actions: dict[str, Callable[[Any], None]] = {
            "elect": self._elect,
            "controller_restart": self._restart,
            "snapshot": self._take_snapshot,
            "advance": self._advance,
        }
        if step.kind in controller_actions:
            return controller_actions[step.kind](step.content)
        return self._request(step.kind, step.content)

    def _request(self, kind: str, argument: Any) -> Any:
        return self._actions[kind](self._run, argument)

    def _shutdown_responses(self, step: Step) -> dict[str, Any]:
        run = self._run
        brokers = [run.brokers.get(broker_id) for broker_id in broker_steps.brokers_to_stop(step.content)]
        responses = {str(broker.broker_id): list(broker.responses) for broker in brokers}
        if step.kind == "clean_stop" and any(broker.state is not ProcessState.STOPPED for broker in brokers):
            where = f"{run.scenario.source}: clean_stop"
            raise ScenarioError(
                where, f"brokers that may not stop: {responses}", "brokers that the controller lets stop"
            )
        return responses

    def _batch(self, batch: LogBatch) -> dict[str, Any]:
        trace_batch: dict[str, Any] = {"offset": batch.offset, "epoch": batch.epoch}
        if batch.control:
            return {**trace_batch, "control": True, "records": [_control(record) for record in batch.control]}
        return {
            **trace_batch,
            "records": list(canonical_order([self._run.names.record(item) for item in batch.records])),
        }

    # --- the start

    def _elect(self, argument: Empty) -> None:
        run = self._run
        run.start()
        registered = []
        for broker in run.scenario.brokers:
            run.brokers.configure(broker)
            if broker.registered:
                registered.append(broker.id)
        options: list[int | RegistrationOptions] = list(registered)
        responses = broker_steps.register(run, options)
        unfenced = broker_steps.unfence(run, registered)
        refused = any(error != "NONE" for error in responses.values())
        if refused or any(reply.get("fenced", True) for reply in unfenced.values()):
            raise ScenarioError(f"{run.scenario.source}: brokers", f"{responses} {unfenced}", "brokers that can start")
        for start in range(0, len(run.scenario.topics), TOPICS_MAX):
            self._create(run.scenario.topics[start : start + TOPICS_MAX])
        self._assign_directories_and_isrs()

    def _create(self, topics: tuple[KraftTopicEntry, ...]) -> None:
        run = self._run
        requested = [
            CreatedTopicEntry(topic.name, [partition.replicas for partition in topic.partitions], config=topic.config)
            for topic in topics
        ]
        responses = self._request("create_topics", requested)
        if set(responses.values()) - {"NONE"}:
            raise ScenarioError(
                f"{run.scenario.source}: topics", f"{responses} {run.messages}", "topics that Kafka creates"
            )

    def _assign_directories_and_isrs(self) -> None:
        """Assign the directories and ISRs that the scenario names."""
        run = self._run
        directories: dict[int, dict[str, str]] = {}
        isrs: dict[str, IsrChange] = {}
        for topic in run.scenario.topics:
            for partition in topic.partitions:
                name = f"{topic.name}-{partition.partition}"
                for broker_id, directory in zip(partition.replicas, partition.directories or (), strict=False):
                    directories.setdefault(broker_id, {})[name] = directory
                if partition.isr is not None:
                    isrs[name] = IsrChange(partition.isr)
        for broker_id, assigned in sorted(directories.items()):
            self._request("assign_directories", DirectoryAssignments(broker_id, assigned))
        responses = self._request("alter_partition", isrs)
        if any(response["error"] != "NONE" for response in responses.values()):
            raise ScenarioError(f"{run.scenario.source}: topics", f"{responses}", "ISRs that Kafka accepts")

    # --- the controller and time

    def _restart(self, argument: RestartOptions) -> None:
        run = self._run
        run.stop()
        if argument.lose_batches:
            written = sum(not batch.is_idle for batch in run.log)
            if argument.lose_batches >= written:
                where = f"{run.scenario.source}: controller_restart.lose_batches"
                raise ScenarioError(where, str(argument.lose_batches), f"less than the {written} batches of the log")
            run.lose(argument.lose_batches)
            self._traced_batches = len(run.log)
        run.start()
        run.send_round()

    def _take_snapshot(self, argument: Empty) -> None:
        offset, records = self._run.snapshot()
        self._snapshot = {"offset": offset, "records": list(map(self._snapshot_record, records))}

    def _snapshot_record(self, record: SnapshotRecord) -> dict[str, Any]:
        return self._run.names.record(record) if isinstance(record, RecordAndVersion) else _control(record)

    def _advance(self, seconds: float) -> None:
        self._run.pass_time(int(seconds * SECOND))


def _control(record: ControlRecord) -> dict[str, Any]:
    """A control record without directory ids and listeners of voters, and without times."""
    data = control_to_json(record)
    data.pop("lastContainedLogTimestamp", None)
    for name in ("voters", "grantingVoters"):
        data |= {name: [dict(_without_directory(voter)) for voter in data[name]]} if name in data else {}
    return {"type": _CONTROL_NAMES[type(record)], "version": record.version, "data": data}


def _without_directory(voter: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in voter.items() if key not in ("voterDirectoryId", "endpoints"))
