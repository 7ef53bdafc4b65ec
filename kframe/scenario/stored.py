"""The steps of a scenario that change storage directly: writes of operators, leaders and brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kframe.model.topic_partitions import parse_topic_partition
from kframe.scenario import checks
from kframe.scenario.admin import read_targets
from kframe.scenario.format import config_texts, distinct_ids
from kframe.scenario.state import ScenarioState
from kframe.scenario.step_types import LogDirFailureStep, WrittenIsr


def reassign_znode(runner: ScenarioState, where: str, content: Mapping[str, tuple[int, ...]]) -> None:
    """Step ``reassign_znode``: an operator writes reassignments."""
    runner.storage.request_reassignments(read_targets(where, content))


def preferred_znode(runner: ScenarioState, where: str, names: tuple[str, ...]) -> None:
    """Step ``preferred_znode``: an operator writes partitions that need a preferred election."""
    runner.storage.request_preferred_election(tuple(parse_topic_partition(where, name) for name in names))


def mark_for_deletion(runner: ScenarioState, where: str, names: tuple[str, ...]) -> None:
    """Topics that are marked for deletion."""
    runner.storage.mark_for_deletion(names)


def isr_znode(runner: ScenarioState, where: str, content: Mapping[str, WrittenIsr]) -> None:
    """Step ``isr_znode``: leaders write ISRs to storage, and a notification."""
    isrs = {
        parse_topic_partition(f"{where}.{name}", name): distinct_ids(f"{where}.{name}.isr", written.isr)
        for name, written in content.items()
    }
    checks.require_partitions(runner, where, isrs)
    for (topic, partition), isr in isrs.items():
        runner.storage.write_state(topic, partition, isr=isr)
    runner.storage.notify_isr_changes(isrs)


def topic_config(runner: ScenarioState, where: str, content: Mapping[str, Mapping[str, Any]]) -> None:
    """Step ``topic_config``: settings of topics change, with their notification."""
    checks.require_topics(runner, where, content)
    for name, config in content.items():
        runner.storage.configure_topic(name, config_texts(config))


def log_dir_failure(runner: ScenarioState, where: str, content: LogDirFailureStep) -> None:
    """Step ``log_dir_failure``: a broker reports a failed log directory."""
    for name in content.partitions:
        parse_topic_partition(f"{where}.partitions", name)
    checks.require_registered(runner, f"{where}.broker", [content.broker])
    runner.brokers.fail_log_dir(content.broker, content.partitions)
    runner.storage.notify_log_dir_event(content.broker)
