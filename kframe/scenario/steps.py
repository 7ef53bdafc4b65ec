"""The steps of a scenario: each parses its argument when the scenario is built, and acts when it runs.

A step of the format that this build does not support is rejected by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kframe.errors import ErrorCode, ScenarioError
from kframe.model.brokers import Registration
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.scenario import admin, checks, replication, requests, stored
from kframe.scenario.cluster import registration
from kframe.scenario.format import Fields, ScenarioBroker, Step, broker_ids, broker_spec, topic_partition
from kframe.scenario.requests import Action

if TYPE_CHECKING:
    from kframe.scenario.runner import ScenarioRunner

_APIS: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")


def build(source: str, position: int, step: Step) -> Action:
    """The action of one step. Raises ScenarioError if it is unknown or not supported, or its argument is malformed."""
    where = f"{source}: steps[{position}]"
    if step.kind not in _READERS:
        raise ScenarioError(where, f"unknown step {step.kind!r}", "one of " + ", ".join(sorted(_READERS)))
    return _READERS[step.kind](f"{where}.{step.kind}", step.argument)


def build_waiting(source: str, waiting: Step) -> Action:
    """The action that writes a request or mark to storage before the first step. Raises ScenarioError as ``build``
    does."""
    where = f"{source}: admin.{waiting.kind}"
    if waiting.kind not in _WAITING:
        raise ScenarioError(where, "an unknown field", "one of " + ", ".join(sorted(_WAITING)))
    return _WAITING[waiting.kind](where, waiting.argument)


# -- the controller role


def _read_elect(where: str, argument: Any) -> Action:
    Fields(where, "", argument).allow()
    return _elect


def _elect(runner: ScenarioRunner) -> None:
    if runner.loop.controller.active:
        runner.storage.drop_controller()
    else:
        runner.loop.open()


# -- brokers register and unregister


def _read_ids(where: str, argument: Any, action: Callable[[ScenarioRunner, tuple[int, ...]], None]) -> Action:
    ids = broker_ids(where, argument)

    def act(runner: ScenarioRunner) -> None:
        checks.require_registered(runner, where, ids)
        action(runner, ids)

    return act


def _fail(runner: ScenarioRunner, ids: tuple[int, ...]) -> None:
    runner.storage.unregister_brokers(ids)


def _bounce(runner: ScenarioRunner, ids: tuple[int, ...]) -> None:
    runner.storage.bounce_brokers(ids)
    _remember(runner)


def _read_startup(where: str, argument: Any) -> Action:
    if not isinstance(argument, list):
        raise ScenarioError(where, repr(argument), "a list of brokers")
    brokers = tuple(broker_spec(f"{where}[{i}]", element) for i, element in enumerate(argument))

    def act(runner: ScenarioRunner) -> None:
        registered = {registration.broker_id for registration in runner.storage.registrations()}
        for broker in brokers:
            if broker.broker_id in registered:
                raise ScenarioError(where, f"broker {broker.broker_id}", "a broker that is not registered at this step")
        runner.storage.register_brokers([_registration(runner, broker) for broker in brokers])
        _remember(runner)

    return act


def _registration(runner: ScenarioRunner, broker: ScenarioBroker) -> Registration:
    """The earlier registration of a broker, unless the step gives it another rack."""
    known = runner.registrations.get(broker.broker_id, registration(broker))
    return replace(known, rack=broker.rack or known.rack, broker_epoch=NO_BROKER_EPOCH)


def _remember(runner: ScenarioRunner) -> None:
    runner.registrations.update(
        (registration.broker_id, registration) for registration in runner.storage.registrations()
    )


# -- answers of brokers, and time


def _read_answer(where: str, argument: Any) -> Action:
    fields = Fields(where, "", argument)
    fields.allow("broker", "api", "error", "partitions")
    broker_id, api, partitions = fields.whole("broker"), fields.get("api"), fields.get("partitions")
    error = fields.text("error")
    fields.expect(
        error == "SILENT" or error in ErrorCode.__members__, "error", "NONE, SILENT or an error by Kafka's name"
    )
    fields.expect(api is None or api in _APIS, "api", "one of " + ", ".join(_APIS))
    fields.expect(partitions is None or isinstance(partitions, list), "partitions", "a list of partitions")
    for partition in partitions or ():
        topic_partition(f"{where}.partitions", partition)

    def act(runner: ScenarioRunner) -> None:
        checks.require_known(runner, f"{where}.broker", broker_id)
        runner.brokers.answer(broker_id, error, api, partitions)

    return act


def _read_advance(where: str, argument: Any) -> Action:
    if isinstance(argument, bool) or not isinstance(argument, int | float) or not 0 <= argument <= 10**9:
        raise ScenarioError(where, repr(argument), "seconds, from 0 to a billion")

    def act(runner: ScenarioRunner) -> None:
        runner.clock.advance(argument, runner.rest)

    return act


#: Requests and marks that may be in storage before the first step, by key under ``admin``.
_WAITING: Final[dict[str, Callable[[str, Any], Action]]] = {
    "reassign": stored.read_reassign_znode,
    "preferred": stored.read_preferred_znode,
    "delete_topics": stored.read_marks,
}

_READERS: Final[dict[str, Callable[[str, Any], Action]]] = {
    "elect": _read_elect,
    "broker_failure": partial(_read_ids, action=_fail),
    "broker_bounce": partial(_read_ids, action=_bounce),
    "broker_startup": _read_startup,
    "controlled_shutdown": requests.read_controlled_shutdown,
    "alter_partition": requests.read_alter_partition,
    "elect_leaders": requests.read_elect_leaders,
    "create_topics": admin.read_create_topics,
    "create_partitions": admin.read_create_partitions,
    "delete_topics": admin.read_delete_topics,
    "reassign": admin.read_reassign,
    "list_reassignments": admin.read_list_reassignments,
    "reassign_znode": stored.read_reassign_znode,
    "preferred_znode": stored.read_preferred_znode,
    "isr_znode": stored.read_isr_znode,
    "topic_config": stored.read_topic_config,
    "log_dir_failure": stored.read_log_dir_failure,
    "produce": replication.read_produce,
    "answer": _read_answer,
    "advance": _read_advance,
}
