"""The steps of a scenario that change storage directly: writes of operators, leaders and brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kframe.model.topic_partitions import parse_topic_partition
from kframe.scenario import checks
from kframe.scenario.admin import read_targets
from kframe.scenario.format import config_texts, distinct_ids
from kframe.scenario.state import Action, ScenarioState
from kframe.scenario.step_types import LogDirFailureStep, WrittenIsr


def read_reassign_znode(where: str, content: Mapping[str, tuple[int, ...]]) -> Action:
    """Step ``reassign_znode``: an operator writes reassignments."""
    targets = read_targets(where, content)
    return lambda runner: runner.storage.request_reassignments(targets)


def read_preferred_znode(where: str, names: tuple[str, ...]) -> Action:
    """Step ``preferred_znode``: an operator writes partitions that need a preferred election."""
    partitions = tuple(parse_topic_partition(where, name) for name in names)
    return lambda runner: runner.storage.request_preferred_election(partitions)


def read_deletion_marks(_where: str, names: tuple[str, ...]) -> Action:
    """Topics that are marked for deletion."""
    return lambda runner: runner.storage.mark_for_deletion(names)


def read_isr_znode(where: str, content: Mapping[str, WrittenIsr]) -> Action:
    """Step ``isr_znode``: leaders write ISRs to storage, and a notification."""
    isrs = {
        parse_topic_partition(f"{where}.{name}", name): distinct_ids(f"{where}.{name}.isr", written.isr)
        for name, written in content.items()
    }

    def act(runner: ScenarioState) -> None:
        checks.require_partitions(runner, where, isrs)
        for (topic, partition), isr in isrs.items():
            runner.storage.write_state(topic, partition, isr=isr)
        runner.storage.notify_isr_changes(isrs)

    return act


def read_topic_config(where: str, content: Mapping[str, Mapping[str, Any]]) -> Action:
    """Step ``topic_config``: settings of topics change, with their notification."""
    changes = {name: config_texts(config) for name, config in content.items()}

    def act(runner: ScenarioState) -> None:
        checks.require_topics(runner, where, changes)
        for name, config in changes.items():
            runner.storage.configure_topic(name, config)

    return act


def read_log_dir_failure(where: str, content: LogDirFailureStep) -> Action:
    """Step ``log_dir_failure``: a broker reports a failed log directory."""
    for name in content.partitions:
        parse_topic_partition(f"{where}.partitions", name)

    def act(runner: ScenarioState) -> None:
        checks.require_registered(runner, f"{where}.broker", [content.broker])
        runner.brokers.fail_log_dir(content.broker, content.partitions)
        runner.storage.notify_log_dir_event(content.broker)

    return act
