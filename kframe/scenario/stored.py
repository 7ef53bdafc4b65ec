"""The steps of a scenario that change storage directly: writes of operators, leaders and brokers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from kframe.errors import ScenarioError
from kframe.model.events import TopicPartition
from kframe.model.tables import Targets
from kframe.scenario import checks
from kframe.scenario.admin import read_targets
from kframe.scenario.format import Fields, config_text, topic_partition
from kframe.scenario.requests import Action

if TYPE_CHECKING:
    from kframe.scenario.runner import ScenarioRunner


def read_reassign_znode(where: str, argument: Any) -> Action:
    """Step ``reassign_znode``: an operator writes reassignments."""
    return partial(_reassign_znode, targets=read_targets(where, argument, cancellable=False))


def _reassign_znode(runner: ScenarioRunner, targets: Targets) -> None:
    runner.storage.leave_reassignments(targets)


def read_preferred_znode(where: str, argument: Any) -> Action:
    """Step ``preferred_znode``: an operator writes partitions that need a preferred election."""
    if not isinstance(argument, list):
        raise ScenarioError(where, repr(argument), "a list of partitions")
    return partial(_preferred_znode, partitions=tuple(topic_partition(where, partition) for partition in argument))


def _preferred_znode(runner: ScenarioRunner, partitions: tuple[TopicPartition, ...]) -> None:
    runner.storage.leave_preferred_election(partitions)


def read_marks(where: str, argument: Any) -> Action:
    """Topics that are marked for deletion."""
    if not isinstance(argument, list) or not all(isinstance(name, str) for name in argument):
        raise ScenarioError(where, repr(argument), "a list of topic names")
    return partial(_mark, names=tuple(argument))


def _mark(runner: ScenarioRunner, names: tuple[str, ...]) -> None:
    runner.storage.mark_for_deletion(names)


def read_isr_znode(where: str, argument: Any) -> Action:
    """Step ``isr_znode``: leaders write ISRs to storage, and a notification."""
    proposals = Fields(where, "", argument)
    read = {}
    for name in argument:
        fields = Fields(where, str(name), proposals.get(name))
        fields.allow("isr")
        read[topic_partition(f"{where}.{name}", name)] = fields.ids("isr")
    return partial(_isr_znode, where=where, isrs=read)


def _isr_znode(runner: ScenarioRunner, where: str, isrs: dict[TopicPartition, tuple[int, ...]]) -> None:
    checks.require_partitions(runner, where, isrs)
    for (topic, partition), isr in isrs.items():
        runner.storage.write_state(topic, partition, isr=isr)
    runner.storage.notify_isr_changes(isrs)


def read_topic_config(where: str, argument: Any) -> Action:
    """Step ``topic_config``: settings of topics change, with their notification."""
    fields = Fields(where, "", argument)
    changes = {name: {key: config_text(item) for key, item in fields.mapping(name).items()} for name in argument}
    return partial(_topic_config, where=where, changes=changes)


def _topic_config(runner: ScenarioRunner, where: str, changes: dict[str, dict[str, str]]) -> None:
    checks.require_topics(runner, where, changes)
    for name, config in changes.items():
        runner.storage.configure_topic(name, config)


def read_log_dir_failure(where: str, argument: Any) -> Action:
    """Step ``log_dir_failure``: a broker reports a failed log directory."""
    fields = Fields(where, "", argument)
    fields.allow("broker", "partitions")
    names = tuple(fields.sequence("partitions"))
    for name in names:
        topic_partition(f"{where}.partitions", name)
    return partial(_log_dir_failure, where=where, broker_id=fields.whole("broker"), names=names)


def _log_dir_failure(runner: ScenarioRunner, where: str, broker_id: int, names: tuple[str, ...]) -> None:
    checks.require_registered(runner, f"{where}.broker", [broker_id])
    runner.brokers.fail_log_dir(broker_id, names)
    runner.storage.notify_log_dir_event(broker_id)
