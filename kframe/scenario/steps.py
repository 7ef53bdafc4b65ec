"""The steps of a scenario: each reads its argument when the scenario is built, and acts on the world when it is played.

A step that the format knows and this build does not play is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from kframe.core.alter_partition import AlterPartitionResponse
from kframe.core.elections import ElectionResponse
from kframe.core.shutdown import ControlledShutdownResponse
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.brokers import Registration
from kframe.model.events import AlterPartitionRequested, ControlledShutdownRequested, ElectionRequested, ElectionType
from kframe.model.columns import Ragged
from kframe.model.ids import NO_BROKER_EPOCH, NO_LEADER, NO_STATE
from kframe.scenario.format import Fields, ScenarioBroker, Step, broker_ids, broker_spec, topic_partition
from kframe.scenario.world import registration

if TYPE_CHECKING:
    from kframe.scenario.runner import ScenarioRunner

#: What a step does to the world; returns the response of the step.
Action: TypeAlias = "Callable[[ScenarioRunner], Any]"

_ELECTIONS: Final = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}
_APIS: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
#: Steps of the format that are not played yet.
UNBUILT: Final = frozenset(
    {
        "isr_znode", "create_topics", "create_partitions", "delete_topics", "reassign",
        "reassign_znode", "list_reassignments", "preferred_znode", "topic_config", "log_dir_failure",
    }
)  # fmt: skip


def build(source: str, position: int, step: Step) -> Action:
    """The action of one step. Raises ScenarioError if it is unknown, not built yet, or its argument malformed."""
    where = f"{source}: steps[{position}]"
    if step.kind in UNBUILT:
        raise ScenarioError(where, f"step {step.kind!r}", "a step that this build plays; it is not built yet")
    if step.kind not in _READERS:
        raise ScenarioError(where, f"unknown step {step.kind!r}", "one of " + ", ".join(sorted(_READERS)))
    return _READERS[step.kind](f"{where}.{step.kind}", step.argument)


# -- the controller role


def _read_elect(where: str, argument: Any) -> Action:
    Fields(where, "", argument).allow()
    return _elect


def _elect(runner: ScenarioRunner) -> None:
    if runner.loop.controller.active:
        runner.ensemble.drop_controller()
    else:
        runner.loop.open()


# -- brokers come and go


def _read_ids(where: str, argument: Any, action: Callable[[ScenarioRunner, tuple[int, ...]], None]) -> Action:
    ids = broker_ids(where, argument)

    def act(runner: ScenarioRunner) -> None:
        for broker_id in ids:
            if broker_id not in {one.broker_id for one in runner.ensemble.registrations()}:
                raise ScenarioError(where, f"broker {broker_id}", "a broker that is registered at this step")
        action(runner, ids)

    return act


def _fail(runner: ScenarioRunner, ids: tuple[int, ...]) -> None:
    runner.ensemble.unregister_brokers(ids)


def _bounce(runner: ScenarioRunner, ids: tuple[int, ...]) -> None:
    runner.ensemble.bounce_brokers(ids)
    _remember(runner)


def _read_startup(where: str, argument: Any) -> Action:
    if not isinstance(argument, list):
        raise ScenarioError(where, repr(argument), "a list of brokers")
    brokers = tuple(broker_spec(f"{where}[{i}]", one) for i, one in enumerate(argument))

    def act(runner: ScenarioRunner) -> None:
        registered = {one.broker_id for one in runner.ensemble.registrations()}
        for broker in brokers:
            if broker.broker_id in registered:
                raise ScenarioError(where, f"broker {broker.broker_id}", "a broker that is not registered at this step")
        runner.ensemble.register_brokers([_registration(runner, broker) for broker in brokers])
        _remember(runner)

    return act


def _registration(runner: ScenarioRunner, broker: ScenarioBroker) -> Registration:
    """A broker comes back as it was, unless the step gives it another rack."""
    known = runner.registrations.get(broker.broker_id, registration(broker))
    return replace(known, rack=broker.rack or known.rack, broker_epoch=NO_BROKER_EPOCH)


def _remember(runner: ScenarioRunner) -> None:
    runner.registrations.update((one.broker_id, one) for one in runner.ensemble.registrations())


# -- requests to the controller

#: What a proposal may say instead of what is true.
_PROPOSED: Final = ("sender", "leader_epoch", "partition_epoch", "leader_recovery_state")


@dataclass(frozen=True, slots=True)
class Proposal:
    """An ISR that a leader proposes, and what of it is not what storage has."""

    isr: tuple[int, ...]
    given: Mapping[str, int]

    def true(self, runner: ScenarioRunner, key: tuple[str, int]) -> dict[str, int]:
        """The proposal's other fields: as given, else as storage has them, else 0."""
        stored = runner.stored(key)
        true = {"sender": 0, "leader_epoch": 0, "partition_epoch": 0, "leader_recovery_state": 0}
        if stored is not None and stored.partition_epoch != NO_STATE:
            true = {
                "sender": NO_LEADER if stored.leader is None else stored.leader,
                "leader_epoch": stored.leader_epoch,
                "partition_epoch": stored.partition_epoch,
                "leader_recovery_state": int(stored.recovery),
            }
        return true | dict(self.given)


def _read_shutdown(where: str, argument: Any) -> Action:
    (broker_id,) = broker_ids(where, [argument])

    def act(runner: ScenarioRunner) -> dict[str, Any]:
        last = runner.registrations.get(broker_id)
        broker_epoch = last.broker_epoch if last else NO_BROKER_EPOCH
        response: ControlledShutdownResponse = runner.call(
            lambda token: ControlledShutdownRequested(broker_id, broker_epoch, token)
        )
        names = [runner.loop.controller.cluster.name(int(row)) for row in response.remaining]
        return {"error": response.error.name, "remaining": sorted(names, key=_by_partition)}

    return act


def _read_alter_partition(where: str, argument: Any) -> Action:
    proposals = Fields(where, "", argument)
    read = {}
    for name in argument:
        fields = Fields(where, str(name), proposals.get(name))
        fields.allow("isr", "sender", "leader_epoch", "partition_epoch", "leader_recovery_state")
        given = {key: fields.whole(key, least=-1) for key in _PROPOSED if fields.get(key) is not None}
        isr = fields.get("isr")
        fields.expect(isinstance(isr, list), "isr", "a list of broker ids")
        read[topic_partition(f"{where}.{name}", name)] = Proposal(tuple(isr), given)
    return partial(_alter_partition, proposals=read)


def _alter_partition(runner: ScenarioRunner, proposals: dict[tuple[str, int], Proposal]) -> dict[str, str]:
    """One request for each sender, in the order in which the senders are first named."""
    by_sender: dict[int, list[tuple[str, int]]] = {}
    for key, proposal in proposals.items():
        by_sender.setdefault(proposal.true(runner, key)["sender"], []).append(key)
    answers: dict[tuple[str, int], ErrorCode] = {}
    for sender, keys in by_sender.items():
        known = runner.registrations.get(sender)
        true = [proposals[key].true(runner, key) for key in keys]
        response: AlterPartitionResponse = runner.call(
            lambda token: AlterPartitionRequested(
                sender, known.broker_epoch if known else 0, 3,
                tuple((runner.topic_id(topic), partition) for topic, partition in keys),
                np.array([one["leader_epoch"] for one in true], np.int32),
                np.array([one["partition_epoch"] for one in true], np.int32),
                np.array([one["leader_recovery_state"] for one in true], np.uint8),
                Ragged.of([proposals[key].isr for key in keys]), token,
            )  # fmt: skip
        )
        codes = response.codes.tolist() if response.error is ErrorCode.NONE else [response.error] * len(keys)
        answers.update(zip(keys, (ErrorCode(code) for code in codes), strict=True))
    return {f"{topic}-{partition}": answers[topic, partition].name for topic, partition in proposals}


def _read_elect_leaders(where: str, argument: Any) -> Action:
    fields = Fields(where, "", argument)
    fields.allow("type", "partitions")
    fields.expect(fields.get("type") in _ELECTIONS, "type", "preferred or unclean")
    listed = fields.get("partitions")
    fields.expect(listed is None or isinstance(listed, list), "partitions", "a list of partitions, or null for all")
    named = None if listed is None else tuple(topic_partition(f"{where}.partitions", one) for one in listed)
    election = _ELECTIONS[fields.get("type")]
    return partial(_elect_leaders, election=election, named=named)


def _elect_leaders(
    runner: ScenarioRunner, election: ElectionType, named: tuple[tuple[str, int], ...] | None
) -> dict[str, str]:
    response: ElectionResponse = runner.call(lambda token: ElectionRequested(election, named, token))
    cluster = runner.loop.controller.cluster
    codes = {cluster.name(int(row)): ErrorCode(int(code)) for row, code in zip(response.rows, response.codes, strict=True)}
    codes |= {f"{topic}-{partition}": code for (topic, partition), code in response.unknown}
    return {name: codes[name].name for name in sorted(codes, key=_by_partition)}


# -- how brokers answer, and time


def _read_answer(where: str, argument: Any) -> Action:
    fields = Fields(where, "", argument)
    fields.allow("broker", "api", "error", "partitions")
    broker_id, api, partitions = fields.whole("broker"), fields.get("api"), fields.get("partitions")
    error = fields.text("error")
    fields.expect(error == "SILENT" or error in ErrorCode.__members__, "error", "NONE, SILENT or an error by Kafka's name")
    fields.expect(api is None or api in _APIS, "api", "one of " + ", ".join(_APIS))
    fields.expect(partitions is None or isinstance(partitions, list), "partitions", "a list of partitions")
    for one in partitions or ():
        topic_partition(f"{where}.partitions", one)

    def act(runner: ScenarioRunner) -> None:
        runner.brokers.answer(broker_id, error, api, partitions)

    return act


def _read_advance(where: str, argument: Any) -> Action:
    if isinstance(argument, bool) or not isinstance(argument, int | float) or not 0 <= argument <= 10**9:
        raise ScenarioError(where, repr(argument), "seconds, from 0 to a billion")
    return lambda runner: runner.clock.advance(argument, runner.loop.run_until_idle)


def _by_partition(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


_READERS: Final[dict[str, Callable[[str, Any], Action]]] = {
    "elect": _read_elect,
    "broker_failure": partial(_read_ids, action=_fail),
    "broker_bounce": partial(_read_ids, action=_bounce),
    "broker_startup": _read_startup,
    "controlled_shutdown": _read_shutdown,
    "alter_partition": _read_alter_partition,
    "elect_leaders": _read_elect_leaders,
    "answer": _read_answer,
    "advance": _read_advance,
}
