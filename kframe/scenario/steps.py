"""The actions of the steps of a scenario: made when the scenario is built, called when it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kframe.errors import ErrorCode, ScenarioError
from kframe.model.brokers import Registration
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.topic_partitions import parse_topic_partition
from kframe.scenario import admin, checks, requests, stored
from kframe.scenario.cluster import registration
from kframe.scenario.fields import located
from kframe.scenario.format import Step, broker_of, distinct_ids
from kframe.scenario.state import Action, ScenarioState
from kframe.scenario.step_types import BrokerEntry, ResponseStep, ScenarioBroker


def build(source: str, position: int, step: Step) -> Action:
    """The action of one step. Raises ScenarioError if its argument names a broker twice, or no partition."""
    return _READERS[step.kind](f"{located(source, 'steps', position)}.{step.kind}", step.content)


def build_stored_request(source: str, request: Step) -> Action:
    """The action that writes a request or mark to storage before the first step. Raises ScenarioError as ``build``
    does."""
    return _STORED_REQUESTS[request.kind](located(source, "admin", request.kind), request.content)


# -- the controller role


def _elect(runner: ScenarioState) -> None:
    if runner.loop.controller.active:
        runner.storage.drop_controller()
    else:
        runner.loop.open()


# -- brokers register and unregister


def _read_ids(where: str, content: tuple[int, ...], action: Callable[[ScenarioState, tuple[int, ...]], None]) -> Action:
    ids = distinct_ids(where, content)

    def act(runner: ScenarioState) -> None:
        checks.require_registered(runner, where, ids)
        action(runner, ids)

    return act


def _bounce(runner: ScenarioState, ids: tuple[int, ...]) -> None:
    runner.storage.bounce_brokers(ids)
    _save_registrations(runner)


def _read_startup(where: str, content: tuple[BrokerEntry, ...]) -> Action:
    brokers = tuple(map(broker_of, content))

    def act(runner: ScenarioState) -> None:
        registered = {registration.broker_id for registration in runner.storage.registrations()}
        for broker in brokers:
            if broker.broker_id in registered:
                raise ScenarioError(where, f"broker {broker.broker_id}", "a broker that is not registered at this step")
        runner.storage.register_brokers([_registration(runner, broker) for broker in brokers])
        _save_registrations(runner)

    return act


def _registration(runner: ScenarioState, broker: ScenarioBroker) -> Registration:
    """The earlier registration of a broker, unless the step gives it another rack."""
    known = runner.registrations.get(broker.broker_id, registration(broker))
    return replace(known, rack=broker.rack or known.rack, broker_epoch=NO_BROKER_EPOCH)


def _save_registrations(runner: ScenarioState) -> None:
    runner.registrations.update(
        (registration.broker_id, registration) for registration in runner.storage.registrations()
    )


# -- responses of brokers, and time


def _read_response(where: str, content: ResponseStep) -> Action:
    if content.error != "SILENT" and content.error not in ErrorCode.__members__:
        raise ScenarioError(f"{where}.error", repr(content.error), "NONE, SILENT or an error by Kafka's name")
    names = None if content.partitions is None else list(content.partitions)
    for name in names or ():
        parse_topic_partition(f"{where}.partitions", name)

    def act(runner: ScenarioState) -> None:
        checks.require_known(runner, f"{where}.broker", content.broker)
        runner.brokers.respond_with(content.broker, content.error, content.api, names)

    return act


def _read_advance(_where: str, seconds: float) -> Action:
    def act(runner: ScenarioState) -> None:
        runner.clock.advance(seconds, runner.run_until_idle)

    return act


#: Requests and marks that may be in storage before the first step, by key under ``admin``.
_STORED_REQUESTS: Final[dict[str, Callable[[str, Any], Action]]] = {
    "reassign": stored.read_reassign_znode,
    "preferred": stored.read_preferred_znode,
    "delete_topics": stored.read_deletion_marks,
}

_READERS: Final[dict[str, Callable[[str, Any], Action]]] = {
    "elect": lambda _where, _content: _elect,
    "broker_failure": partial(_read_ids, action=lambda runner, ids: runner.storage.unregister_brokers(ids)),
    "broker_bounce": partial(_read_ids, action=_bounce),
    "broker_startup": _read_startup,
    "controlled_shutdown": requests.read_controlled_shutdown,
    "alter_partition": requests.read_alter_partition,
    "elect_leaders": requests.read_elect_leaders,
    "create_topics": admin.read_create_topics,
    "create_partitions": admin.read_create_partitions,
    "delete_topics": admin.read_delete_topics,
    "reassign": admin.read_reassign,
    "list_reassignments": lambda _where, _content: admin.list_reassignments,
    "reassign_znode": stored.read_reassign_znode,
    "preferred_znode": stored.read_preferred_znode,
    "isr_znode": stored.read_isr_znode,
    "topic_config": stored.read_topic_config,
    "log_dir_failure": stored.read_log_dir_failure,
    "produce": requests.read_produce,
    "answer": _read_response,
    "advance": _read_advance,
}
