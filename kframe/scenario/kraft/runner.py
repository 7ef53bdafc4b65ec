"""Plays a KRaft scenario and records its trace (``kframe.trace-kraft/v1``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import kframe
from kframe.core.kraft.replication.selectors import SelectorSelection
from kframe.errors import ScenarioError
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.kraft.control import (
    ControlRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kframe.model.kraft.image_records import image_records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_json import control_to_json
from kframe.model.kraft.record_versions import RecordAndVersion, record_version
from kframe.scenario.fields import Empty
from kframe.scenario.format import Step
from kframe.scenario.kraft import admin_steps, broker_steps, requests
from kframe.scenario.kraft.arguments import (
    CreatedTopicEntry,
    DirectoryAssignments,
    IsrChange,
    KraftTopicEntry,
    RegistrationOptions,
    RestartOptions,
)
from kframe.scenario.kraft.brokers import ProcessState
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.image import image_of
from kframe.scenario.kraft.names import canonical_order
from kframe.scenario.kraft.playing import KraftRun
from kframe.scenario.kraft.quorum import SECOND, LogBatch

SCHEMA: Final = "kframe.trace-kraft/v1"
#: Most topics of a request that creates the topics of the start.
TOPICS_MAX: Final = 50
_CONTROL_NAMES: Final = {
    LeaderChangeMessage: "LeaderChange",
    KRaftVersionRecord: "KRaftVersion",
    VotersRecord: "KRaftVoters",
    SnapshotHeaderRecord: "SnapshotHeader",
    SnapshotFooterRecord: "SnapshotFooter",
}


class KraftScenarioRunner:
    """One scenario; ``play`` may be called once."""

    def __init__(self, scenario: KraftScenario, selectors: Mapping[ElectionKind, LeaderSelector] | None = None) -> None:
        """``selectors`` choose leaders instead of Kafka's rule. Raises ScenarioError for features or settings that
        Kafka would refuse."""
        self.scenario = scenario
        self._run = KraftRun(scenario, SelectorSelection(selectors or {}))
        self._traced_batches = 0
        self._snapshot: dict[str, Any] = {}

    @property
    def metadata(self) -> ClusterMetadata:
        """The metadata after all records of the log."""
        return self._run.quorum.metadata

    @property
    def log(self) -> Sequence[LogBatch]:
        """The committed batches."""
        return self._run.quorum.log

    def play(self) -> dict[str, Any]:
        """The whole trace. Raises ScenarioError for a step that cannot be played."""
        steps = [self._step(step) for step in self.scenario.steps]
        return {
            "schema": SCHEMA,
            "scenario": self.scenario.name,
            "controller": f"kframe {kframe.__version__}",
            "default_features": self._run.features,
            "steps": steps,
            "image": image_of(self._run.quorum.metadata, self._run.names),
        }

    def _step(self, step: Step) -> dict[str, Any]:
        run = self._run
        run.messages, self._snapshot = {}, {}
        known = set(run.names.epochs())
        response = self._act(step)
        run.wait_until_idle()
        if step.kind in ("controlled_shutdown", "clean_stop"):
            response = self._shutdown_responses(step)
        log = run.quorum.log
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
            "snapshot": self._write_snapshot,
            "advance": self._advance,
        }
        if step.kind in controller_actions:
            return controller_actions[step.kind](step.content)
        return ACTIONS[step.kind](self._run, step.content)

    def _shutdown_responses(self, step: Step) -> dict[str, Any]:
        brokers = [self._run.brokers.get(broker_id) for broker_id in broker_steps.brokers_to_stop(step.content)]
        responses = {str(broker.broker_id): list(broker.responses) for broker in brokers}
        if step.kind == "clean_stop" and any(broker.state is not ProcessState.STOPPED for broker in brokers):
            where = f"{self.scenario.source}: clean_stop"
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
        run.quorum.start()
        registered = []
        for broker in self.scenario.brokers:
            run.brokers.configure(broker)
            if broker.registered:
                registered.append(broker.id)
        options: list[int | RegistrationOptions] = list(registered)
        responses = broker_steps.register(run, options)
        unfenced = broker_steps.unfence(run, registered)
        refused = any(error != "NONE" for error in responses.values())
        if refused or any(reply.get("fenced", True) for reply in unfenced.values()):
            raise ScenarioError(f"{self.scenario.source}: brokers", f"{responses} {unfenced}", "brokers that can start")
        for start in range(0, len(self.scenario.topics), TOPICS_MAX):
            self._create(self.scenario.topics[start : start + TOPICS_MAX])
        self._assign_directories_and_isrs()

    def _create(self, topics: tuple[KraftTopicEntry, ...]) -> None:
        requested = [
            CreatedTopicEntry(topic.name, [partition.replicas for partition in topic.partitions], config=topic.config)
            for topic in topics
        ]
        responses = admin_steps.create_topics(self._run, requested)
        if set(responses.values()) - {"NONE"}:
            raise ScenarioError(
                f"{self.scenario.source}: topics", f"{responses} {self._run.messages}", "topics that Kafka creates"
            )

    def _assign_directories_and_isrs(self) -> None:
        """Assign the directories and ISRs that the scenario names."""
        directories: dict[int, dict[str, str]] = {}
        isrs: dict[str, IsrChange] = {}
        for topic in self.scenario.topics:
            for partition in topic.partitions:
                name = f"{topic.name}-{partition.partition}"
                for broker_id, directory in zip(partition.replicas, partition.directories or (), strict=False):
                    directories.setdefault(broker_id, {})[name] = directory
                if partition.isr is not None:
                    isrs[name] = IsrChange(partition.isr)
        for broker_id, assigned in sorted(directories.items()):
            broker_steps.assign(self._run, DirectoryAssignments(broker_id, assigned))
        responses = broker_steps.alter_partition(self._run, isrs)
        if any(response["error"] != "NONE" for response in responses.values()):
            raise ScenarioError(f"{self.scenario.source}: topics", f"{responses}", "ISRs that Kafka accepts")

    # --- the controller and time

    def _restart(self, argument: RestartOptions) -> None:
        run = self._run
        if argument.lose_batches:
            written = sum(not batch.is_idle for batch in run.quorum.log)
            if argument.lose_batches >= written:
                where = f"{self.scenario.source}: controller_restart.lose_batches"
                raise ScenarioError(where, str(argument.lose_batches), f"less than the {written} batches of the log")
            run.quorum.truncate(argument.lose_batches)
            self._traced_batches = len(run.quorum.log)
        run.quorum.start()
        for broker in run.brokers.by_id.values():
            if broker.contact_ns is not None:
                broker.contact_ns = run.quorum.now_ns
        run.send_round()

    def _write_snapshot(self, argument: Empty) -> None:
        run = self._run
        metadata = run.quorum.metadata
        versioned = [
            RecordAndVersion(record, record_version(record, metadata.metadata_version))
            for record in image_records(metadata)
        ]
        voters = [
            record
            for batch in run.quorum.log
            for record in batch.control
            if not isinstance(record, LeaderChangeMessage)
        ]
        header: list[ControlRecord] = [SnapshotHeaderRecord(last_contained_log_timestamp=0), *voters]
        self._snapshot = {
            "offset": run.quorum.end_offset,
            "records": [
                *map(_control, header),
                *(run.names.record(item) for item in versioned),
                _control(SnapshotFooterRecord()),
            ],
        }

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


#: The function of each step that acts on the cluster. It gets the argument in its type.
ACTIONS: Final[dict[str, Callable[[KraftRun, Any], Any]]] = {
    "register": broker_steps.register,
    "start": broker_steps.start,
    "restart": broker_steps.restart,
    "unfence": broker_steps.unfence,
    "heartbeat_resume": broker_steps.unfence,
    "heartbeat_stop": broker_steps.stop_heartbeats,
    "unclean_stop": broker_steps.stop_uncleanly,
    "fence": broker_steps.fence,
    "controlled_shutdown": broker_steps.begin_shutdown,
    "clean_stop": broker_steps.begin_shutdown,
    "heartbeat": broker_steps.heartbeat,
    "metadata_lag": broker_steps.lag,
    "metadata_catch_up": broker_steps.catch_up_metadata,
    "offline_directory": broker_steps.report_offline_directories,
    "cordon": broker_steps.cordon,
    "assign_directories": broker_steps.assign,
    "alter_partition": broker_steps.alter_partition,
    "catch_up": broker_steps.catch_up,
    "allocate_producer_ids": broker_steps.allocate_ids,
    "create_topics": admin_steps.create_topics,
    "create_partitions": admin_steps.create_partitions,
    "delete_topics": admin_steps.delete_topics,
    "elect_leaders": admin_steps.elect_leaders,
    "reassign": admin_steps.reassign,
    "cancel": admin_steps.cancel,
    "list_reassignments": admin_steps.list_reassignments,
    "set_config": admin_steps.set_config,
    "replace_config": admin_steps.replace_config,
    "feature": admin_steps.update_features,
    "unregister": admin_steps.unregister,
    "unregister_controller": admin_steps.unregister_controller,
    "request": requests.send_request,
}
