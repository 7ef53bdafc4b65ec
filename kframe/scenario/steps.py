"""The steps of a scenario by kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kframe.errors import ErrorCode, ScenarioError
from kframe.model.brokers import Registration
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.topic_partitions import parse_topic_partition
from kframe.scenario import admin, checks, requests, stored
from kframe.scenario.cluster import registration
from kframe.scenario.fields import Empty, located
from kframe.scenario.format import Step, broker_of, distinct_ids
from kframe.scenario.state import ScenarioState
from kframe.scenario.step_types import BrokerEntry, ResponseStep, ScenarioBroker


def play(runner: ScenarioState, position: int, step: Step) -> Any:
    """Play a step; its response, or None. Raises ScenarioError if it contradicts itself or the state."""
    return _STEPS[step.kind](runner, f"{located(runner.scenario.source, 'steps', position)}.{step.kind}", step.content)


def store_request(runner: ScenarioState, request: Step) -> None:
    """Write a request or mark to storage before the first step. Raises ScenarioError as ``play`` does."""
    _STORED_REQUESTS[request.kind](runner, located(runner.scenario.source, "admin", request.kind), request.content)


# -- the controller role


def _elect(runner: ScenarioState, where: str, content: Empty) -> None:
    if runner.loop.controller.active:
        runner.storage.drop_controller()
    else:
        runner.loop.open()


# -- brokers register and unregister


def _registered(runner: ScenarioState, where: str, content: tuple[int, ...]) -> tuple[int, ...]:
    """The brokers of a step, each once and registered. Raises ScenarioError."""
    checks.require_registered(runner, where, distinct_ids(where, content))
    return content


def _fail(runner: ScenarioState, where: str, content: tuple[int, ...]) -> None:
    runner.storage.unregister_brokers(_registered(runner, where, content))


def _bounce(runner: ScenarioState, where: str, content: tuple[int, ...]) -> None:
    runner.storage.bounce_brokers(_registered(runner, where, content))
    _save_registrations(runner)


def _start(runner: ScenarioState, where: str, content: tuple[BrokerEntry, ...]) -> None:
    brokers = tuple(map(broker_of, content))
    registered = {registration.broker_id for registration in runner.storage.registrations()}
    for broker in brokers:
        if broker.broker_id in registered:
            raise ScenarioError(where, f"broker {broker.broker_id}", "a broker that is not registered at this step")
    runner.storage.register_brokers([_registration(runner, broker) for broker in brokers])
    _save_registrations(runner)


def _registration(runner: ScenarioState, broker: ScenarioBroker) -> Registration:
    """The earlier registration of a broker, unless the step gives it another rack."""
    known = runner.registrations.get(broker.broker_id, registration(broker))
    return replace(known, rack=broker.rack or known.rack, broker_epoch=NO_BROKER_EPOCH)


def _save_registrations(runner: ScenarioState) -> None:
    runner.registrations.update(
        (registration.broker_id, registration) for registration in runner.storage.registrations()
    )


# -- responses of brokers, and time


def _respond(runner: ScenarioState, where: str, content: ResponseStep) -> None:
    if content.error != "SILENT" and content.error not in ErrorCode.__members__:
        raise ScenarioError(f"{where}.error", repr(content.error), "NONE, SILENT or an error by Kafka's name")
    names = None if content.partitions is None else list(content.partitions)
    for name in names or ():
        parse_topic_partition(f"{where}.partitions", name)
    checks.require_known(runner, f"{where}.broker", content.broker)
    runner.brokers.respond_with(content.broker, content.error, content.api, names)


def _advance(runner: ScenarioState, where: str, seconds: float) -> None:
    runner.clock.advance(seconds, runner.run_until_idle)


#: Plays a step: the state, the location of the step in the file, and its argument.
_Play: TypeAlias = Callable[[ScenarioState, str, Any], Any]
#: Requests and marks that may be in storage before the first step, by key under ``admin``.
_STORED_REQUESTS: Final[dict[str, _Play]] = {
    "reassign": stored.reassign_znode,
    "preferred": stored.preferred_znode,
    "delete_topics": stored.mark_for_deletion,
}
_STEPS: Final[dict[str, _Play]] = {
    "elect": _elect,
    "broker_failure": _fail,
    "broker_bounce": _bounce,
    "broker_startup": _start,
    "controlled_shutdown": requests.controlled_shutdown,
    "alter_partition": requests.alter_partition,
    "elect_leaders": requests.elect_leaders,
    "create_topics": admin.create_topics,
    "create_partitions": admin.create_partitions,
    "delete_topics": admin.delete_topics,
    "reassign": admin.reassign,
    "list_reassignments": admin.list_reassignments,
    "reassign_znode": stored.reassign_znode,
    "preferred_znode": stored.preferred_znode,
    "isr_znode": stored.isr_znode,
    "topic_config": stored.topic_config,
    "log_dir_failure": stored.log_dir_failure,
    "produce": requests.produce,
    "answer": _respond,
    "advance": _advance,
}
