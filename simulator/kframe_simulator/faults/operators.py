"""Actions of operators and clients: controller requests, records left in storage, producers and consumers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from kframe.embedded.records import StoredRecordError
from kframe.errors import InputError
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.events import (
    CreatePartitionsRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    ElectionRequested,
    ElectionType,
    ListReassignmentsRequested,
    ReassignmentRequested,
    TopicPartition,
)
from kframe.model.ids import NO_STATE
from kframe.model.tables import Targets
from kframe_simulator.broker.broker import BrokerState
from kframe_simulator.faults import choices
from kframe_simulator.simulation.state import SimulationState

#: How long clients wait for topics.
TIMEOUT_MS: Final = 3_000


def _targets(simulation: SimulationState, arguments: Mapping[str, Any]) -> Targets | None:
    readable = arguments["pick"] % 4
    keys = [key for key in sorted(simulation.ensemble.rows) if not readable or simulation.ensemble.readable([key[0]])]
    if not keys:
        return None
    selected = dict.fromkeys(keys[(arguments["pick"] + step) % len(keys)] for step in range(arguments["count"]))
    leaderless = choices.partition_without_leader_first(simulation, arguments["pick"])
    if leaderless in keys:
        selected[leaderless] = None
    replicas = choices.replicas(simulation, arguments)
    for key in selected:
        simulation.watch.requested_targets[key].add(replicas)
    return Targets.of([(key, replicas) for key in selected])


def _targets_step(targets: Targets) -> dict[str, list[int]]:
    return {choices.name(key): targets.replicas[index].tolist() for index, key in enumerate(targets.partitions())}


def _reassign(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process, targets = choices.running_controller(simulation), _targets(simulation, arguments)
    if process is None or targets is None:
        return False
    choices.record_step(simulation, "reassign", _targets_step(targets))
    simulation.ask(
        process,
        "a reassignment",
        partial(ReassignmentRequested, targets),
        whole=lambda response: bool(response.error) or len(response.codes) == len(targets),
    )
    return True


def _reassign_badly(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Request an invalid reassignment. It has an empty list, a repeated broker, or brokers that never existed."""
    process, key = choices.running_controller(simulation), choices.partition(simulation, arguments["pick"])
    if process is None or key is None:
        return False
    first = simulation.options.brokers[arguments["pick"] % len(simulation.options.brokers)]
    targets = Targets.of([(key, ((), (first, first), (-1,), (first, 99))[arguments["how"] % 4])])
    simulation.ask(
        process,
        "a malformed reassignment",
        partial(ReassignmentRequested, targets),
        whole=lambda response: bool(response.error) or bool(response.codes[0]),
    )
    return True


def _reassign_to_isr(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Reassign a partition to its ISR, whether its members are live or not. Prefers a partition without a leader."""
    process = choices.running_controller(simulation)
    key = choices.partition_without_leader_first(simulation, arguments["pick"])
    row = None if key is None else simulation.ensemble.rows[key]
    if process is None or row is None or not row.isr or set(row.isr) == set(row.replicas):
        return False
    targets = Targets.of([(row.key, row.isr)])
    simulation.watch.requested_targets[row.key].add(row.isr)
    choices.record_step(simulation, "reassign", _targets_step(targets))
    simulation.ask(process, "a reassignment", partial(ReassignmentRequested, targets))
    return True


def _cancel(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process = choices.running_controller(simulation)
    moving = [key for key, row in sorted(simulation.ensemble.rows.items()) if row.adding or row.removing]
    key = choices.choose(moving, arguments["pick"])
    if process is None or key is None:
        return False
    choices.record_step(simulation, "reassign", {choices.name(key): None})
    simulation.ask(process, "a cancellation", partial(ReassignmentRequested, Targets.of([(key, None)])))
    simulation.ask(process, "a list of reassignments", partial(ListReassignmentsRequested, None))
    return True


def _create_topic(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process = choices.running_controller(simulation)
    if process is None:
        return False
    topic = NewTopic(f"t{arguments['name']}", arguments["partitions"], min(arguments["factor"], 3))
    shift = arguments["shift"]
    simulation.ask(
        process,
        f"creation of {topic.name}",
        lambda token: CreateTopicsRequested((topic,), TIMEOUT_MS, start_index=shift, shift=shift, token=token),
        whole=lambda response: set(response.codes) == {topic.name},
    )
    return True


def _create_partitions(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process, name = choices.running_controller(simulation), choices.topic(simulation, arguments["pick"])
    if process is None or name is None:
        return False
    count = len(simulation.ensemble.topic_partitions(name))
    if count >= 5:
        return False
    factor = len(next(iter(simulation.ensemble.topic_partitions(name).values())).replicas)
    lists = (choices.replicas(simulation, {**arguments, "factor": factor}),)
    growth = NewPartitions(name, count + 1, lists)
    choices.record_step(
        simulation, "create_partitions", {"topic": name, "count": count + 1, "assignments": [list(lists[0])]}
    )
    simulation.ask(
        process,
        f"expansion of {name}",
        lambda token: CreatePartitionsRequested((growth,), TIMEOUT_MS, token=token),
        whole=lambda response: set(response.codes) == {name},
    )
    return True


def _delete_topic(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process, name = choices.running_controller(simulation), choices.unsettled_topic_first(simulation, arguments["pick"])
    if process is None or name is None:
        return False
    choices.record_step(simulation, "delete_topics", [name])
    simulation.ask(
        process,
        f"deletion of {name}",
        lambda token: DeleteTopicsRequested((name,), TIMEOUT_MS, token=token),
        whole=lambda response: set(response.codes) == {name},
    )
    return True


def _elect(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process = choices.running_controller(simulation)
    key = choices.partition_without_leader_first(simulation, arguments["pick"])
    if process is None or key is None:
        return False
    kind = ElectionType.UNCLEAN if arguments["unclean"] else ElectionType.PREFERRED
    keys = None if arguments["all"] else (key,)
    named = None if keys is None else [choices.name(key)]
    choices.record_step(simulation, "elect_leaders", {"type": kind.name.lower(), "partitions": named})
    simulation.ask(
        process,
        "an election",
        partial(ElectionRequested, kind, keys),
        whole=lambda response: keys is None or response.error or _elected_or_refused(simulation, key, response),
    )
    return True


def _elected_or_refused(simulation: SimulationState, key: TopicPartition, response: Any) -> bool:
    """Whether an election of one partition got a valid response. A partition that never had a leader must get an
    error."""
    row = simulation.ensemble.rows.get(key)
    refused = bool(response.unknown) or bool(response.codes.size and response.codes[0])
    return len(response.codes) + len(response.unknown) == 1 and (
        refused or row is None or row.partition_epoch != NO_STATE
    )


def _config(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    key = choices.partition_without_leader_first(simulation, arguments["pick"])
    name = None if key is None else key[0]
    if name is None:
        return False
    config = {"unclean.leader.election.enable": str(arguments["unclean"]).lower()}
    choices.record_topic_step(simulation, name, "topic_config", {name: config})
    simulation.ensemble.configure_topic(name, config)
    return True


def _reassign_record(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    targets = _targets(simulation, arguments)
    if targets is None:
        return False
    choices.record_step(simulation, "reassign_znode", _targets_step(targets))
    return _created(lambda: simulation.ensemble.request_reassignments(targets))


def _bad_record(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Store a reassignment record of one partition, and of another one to no replicas."""
    targets = _targets(simulation, {**arguments, "count": 1})
    if targets is None:
        return False
    moved_key = targets.partitions()[0]
    others = [key for key in sorted(simulation.ensemble.rows) if key != moved_key]
    empty = choices.choose(others, arguments["pick"] // 2)
    if empty is None:
        return False
    simulation.watch.requested_targets[empty].add(())
    stored_targets = Targets.of([(moved_key, tuple(targets.replicas[0].tolist())), (empty, ())])
    choices.record_step(simulation, "reassign_znode", _targets_step(stored_targets))
    return _created(lambda: simulation.ensemble.request_reassignments(stored_targets))


def _election_record(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    key = choices.partition(simulation, arguments["pick"])
    if key is not None:
        choices.record_step(simulation, "preferred_znode", [choices.name(key)])
    return key is not None and _created(
        lambda: simulation.ensemble.request_preferred_election([key, ("no-such-topic", 0)])
    )


def _mark_deleted(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    name = choices.unsettled_topic_first(simulation, arguments["pick"])
    if arguments["pick"] % 5 == 0:
        return _created(lambda: simulation.ensemble.mark_for_deletion(["no-such-topic"]))
    if name is not None:
        choices.record_step(simulation, "delete_topics", [name])
    return name is not None and _created(lambda: simulation.ensemble.mark_for_deletion([name]))


def _created(create: Callable[[], None]) -> bool:
    """Create a record in storage, unless it exists."""
    try:
        create()
    except StoredRecordError:
        return False
    return True


def _shut_down(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(simulation, arguments)
    if not broker.running or broker.model.state is not BrokerState.RUNNING:
        return False
    broker.shut_down()
    return True


def _drop_controller(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    try:
        simulation.ensemble.drop_controller()
    except InputError:
        return False
    return True


def _produce(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    key = choices.partition(simulation, arguments["pick"])
    producer = choices.choose(simulation.clients.producers, arguments["producer"])
    if key is None or producer is None:
        return False
    acks = "all" if producer.options.acks == -1 else producer.options.acks
    choices.record_topic_step(
        simulation, key[0], "produce", {choices.name(key): {"records": arguments["count"], "acks": acks}}
    )
    producer.write(key, arguments["count"])
    return True


def _consume(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    key = choices.partition(simulation, arguments["pick"])
    if key is None:
        return False
    simulation.clients.read(key, arguments["committed"], arguments["pick"])
    return True


def _repeat_produce(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """An earlier Produce request arrives again."""
    result = choices.choose(simulation.clients.sent, arguments["number"])
    if result is None:
        return False
    broker_id, request, _ = result
    simulation.brokers[broker_id].ask(request, lambda response: None)
    return True


#: By kind of operation: its function.
OPERATIONS: Final = choices.by_kind(
    _reassign,
    _reassign_badly,
    _reassign_to_isr,
    _bad_record,
    _cancel,
    _create_topic,
    _create_partitions,
    _delete_topic,
    _elect,
    _config,
    _reassign_record,
    _election_record,
    _mark_deleted,
    _shut_down,
    _drop_controller,
    _produce,
    _consume,
    _repeat_produce,
)
