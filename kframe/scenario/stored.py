"""The steps of a scenario that change storage directly: writes of operators, leaders and brokers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from kframe.model.events import TopicPartition
from kframe.model.tables import Targets
from kframe.scenario import checks
from kframe.scenario.admin import read_targets
from kframe.scenario.format import config_texts, distinct_ids, topic_partition
from kframe.scenario.state import Action, ScenarioState
from kframe.scenario.step_types import LogDirFailureStep, WrittenIsr


def read_reassign_znode(where: str, content: Mapping[str, tuple[int, ...]]) -> Action:
    """Step ``reassign_znode``: an operator writes reassignments."""
    return partial(_reassign_znode, targets=read_targets(where, content))


def _reassign_znode(runner: ScenarioState, targets: Targets) -> None:
    runner.storage.request_reassignments(targets)


def read_preferred_znode(where: str, names: tuple[str, ...]) -> Action:
    """Step ``preferred_znode``: an operator writes partitions that need a preferred election."""
    return partial(_preferred_znode, partitions=tuple(topic_partition(where, name) for name in names))


def _preferred_znode(runner: ScenarioState, partitions: tuple[TopicPartition, ...]) -> None:
    runner.storage.request_preferred_election(partitions)


def read_deletion_marks(_where: str, names: tuple[str, ...]) -> Action:
    """Topics that are marked for deletion."""
    return partial(_mark_for_deletion, names=names)


def _mark_for_deletion(runner: ScenarioState, names: tuple[str, ...]) -> None:
    runner.storage.mark_for_deletion(names)


def read_isr_znode(where: str, content: Mapping[str, WrittenIsr]) -> Action:
    """Step ``isr_znode``: leaders write ISRs to storage, and a notification."""
    read = {
        topic_partition(f"{where}.{name}", name): distinct_ids(f"{where}.{name}.isr", written.isr)
        for name, written in content.items()
    }
    return partial(_isr_znode, where=where, isrs=read)


def _isr_znode(runner: ScenarioState, where: str, isrs: dict[TopicPartition, tuple[int, ...]]) -> None:
    checks.require_partitions(runner, where, isrs)
    for (topic, partition), isr in isrs.items():
        runner.storage.write_state(topic, partition, isr=isr)
    runner.storage.notify_isr_changes(isrs)


def read_topic_config(where: str, content: Mapping[str, Mapping[str, Any]]) -> Action:
    """Step ``topic_config``: settings of topics change, with their notification."""
    changes = {name: config_texts(config) for name, config in content.items()}
    return partial(_topic_config, where=where, changes=changes)


def _topic_config(runner: ScenarioState, where: str, changes: dict[str, dict[str, str]]) -> None:
    checks.require_topics(runner, where, changes)
    for name, config in changes.items():
        runner.storage.configure_topic(name, config)


def read_log_dir_failure(where: str, content: LogDirFailureStep) -> Action:
    """Step ``log_dir_failure``: a broker reports a failed log directory."""
    for name in content.partitions:
        topic_partition(f"{where}.partitions", name)
    return partial(_log_dir_failure, where=where, broker_id=content.broker, names=content.partitions)


def _log_dir_failure(runner: ScenarioState, where: str, broker_id: int, names: tuple[str, ...]) -> None:
    checks.require_registered(runner, f"{where}.broker", [broker_id])
    runner.brokers.fail_log_dir(broker_id, names)
    runner.storage.notify_log_dir_event(broker_id)
