"""Faults at a chosen point: before a write, at a request, or in the middle of an event. The faults of ``actions`` occur
at any time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from kframe.core.topics.replica_assignment import table_of
from kframe.model.arrays import Ragged
from kframe.model.events import (
    AlterPartitionRequested,
    BrokersChanged,
    ControlledShutdownRequested,
    DeletionsMarked,
    Event,
    IsrChangesNotified,
    ReassignmentRequested,
    ReassignmentsStored,
    StopReplicaResponseReceived,
)
from kframe.model.ids import NO_STATE, RecoveryState
from kframe.ports.store_requests import WriteAssignments, WriteStates
from kframe_simulator.broker.messages import NO_ID
from kframe_simulator.broker.outgoing import AlterPartition, ProposedIsr
from kframe_simulator.faults import choices
from kframe_simulator.simulation.broker_messages import proposal
from kframe_simulator.simulation.brokers import BrokerProcess
from kframe_simulator.simulation.controller_requests import FAULTS_OF_JOINING
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.state import SimulationState

#: The kinds of events in which a controller crashes; the number of an action selects one.
CRASH_EVENTS: Final[tuple[tuple[type[Event], ...], ...]] = (
    (ReassignmentRequested, ReassignmentsStored),
    (AlterPartitionRequested, IsrChangesNotified),
    (BrokersChanged,),
    (ControlledShutdownRequested,),
    (DeletionsMarked, StopReplicaResponseReceived),
)
#: Other tools add partitions up to this many per topic.
PARTITIONS_MAX: Final = 5


@choices.on_controller
def _race_write(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    """Another client writes the same path just before a controller's write."""
    process.store.races += arguments["writes"]


def race(simulation: SimulationState, request: WriteStates | WriteAssignments) -> None:
    """Another client changes storage before a write of a controller."""
    if isinstance(request, WriteStates):
        cluster = request.cluster
        for row in request.change.rows.tolist():
            topic, number = cluster.partitions.topic[row], int(cluster.partitions.partition[row])
            rewrite(simulation, (cluster.topics.names[topic], number))
    else:
        for name in request.table.names:
            add_partition(simulation, name, simulation.options.brokers[:1])


def rewrite(simulation: SimulationState, key: tuple[str, int]) -> bool:
    """Another client writes a state unchanged: its version increases."""
    row = simulation.ensemble.rows.get(key)
    if row is None or row.partition_epoch == NO_STATE:
        return False
    simulation.ensemble.write_state(*key)
    simulation.watch.rewritten.add(key)
    return True


def add_partition(simulation: SimulationState, name: str, replicas: tuple[int, ...]) -> bool:
    """Another tool adds a partition to a topic directly in storage, as brokers once did."""
    if name not in simulation.ensemble.topic_ids or len(simulation.ensemble.topic_partitions(name)) >= PARTITIONS_MAX:
        return False
    cluster = simulation.ensemble.states.cluster
    known = table_of(cluster, np.array([cluster.topics.find(name)], np.int32))
    flags = np.append(known.flags, np.zeros(len(replicas), np.uint8))
    lists = Ragged.chain([known.replicas, Ragged.of([replicas])])
    simulation.ensemble.write_topics(
        replace(known, partition_counts=known.partition_counts + 1, replicas=lists, flags=flags)
    )
    return True


def _add_partition_on_failed_brokers(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Another tool adds a partition whose replicas are all on missing brokers, or that has no replicas: it gets no
    leader."""
    name = choices.topic(simulation, arguments["pick"])
    absent = tuple(broker.broker_id for broker in simulation.brokers.values() if not broker.registered)
    replicas = () if arguments["pick"] % 4 == 0 else absent[:2]
    return name is not None and bool(absent) and add_partition(simulation, name, replicas)


def _swap_disks(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """The controller crashes, and before the next failover a broker comes back with empty disks."""
    broker, process = choices.broker(simulation, arguments), choices.controller(simulation, {"controller": 1})
    if not broker.running or broker.paused or not process.active:
        return False
    process.crash()
    broker.swap_disks()
    return True


def _delay_proposal(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Delay the next proposal that adds a broker to an ISR, while a fault affects that broker."""
    broker = choices.broker(simulation, arguments)
    broker.requests.fault_of_joining = FAULTS_OF_JOINING[arguments["fault"] % len(FAULTS_OF_JOINING)]
    return broker.running


def _lose_response(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Lose the response to a leader's next proposal: it sends the proposal again."""
    broker = choices.broker(simulation, arguments)
    broker.requests.lost_responses = 1
    return broker.running


def _misdirect(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """``/controller`` is deleted, its owner is notified late, and leaders still send requests to it."""
    process = choices.controller(simulation, {"controller": 1})
    if not process.active or simulation.ensemble.controller_id() != process.controller_id:
        return False
    process.store.watch_delay_ms = arguments["for_ms"]
    simulation.ensemble.drop_controller()
    for broker in simulation.brokers.values():
        broker.requests.misdirected = 2

    def end() -> None:
        process.store.watch_delay_ms = 0.0

    simulation.scheduler.after(arguments["for_ms"], end)
    simulation.scheduler.after(arguments["for_ms"] * 0.6, partial(_repeat_proposals, simulation, process))
    return True


def _repeat_proposals(simulation: SimulationState, process: ControllerProcess) -> None:
    """Leaders repeat their last proposals to a process, over connections that are still open.

    Before inter-broker protocol 2.7-IV2 leaders send no proposals. A leader of a partition that storage has as
    RECOVERING has proposed nothing: it would propose RECOVERED.
    """
    if not simulation.controllers_store_isrs:
        return
    rows = simulation.ensemble.rows
    for broker in simulation.brokers.values():
        for key, partition in sorted(broker.model.partitions.items()):
            proposed = key in rows and rows[key].recovery == RecoveryState.RECOVERED
            if process.running and broker.running and partition.is_leader and partition.isr and proposed:
                _send_proposal(
                    simulation,
                    process,
                    broker,
                    key,
                    ProposedIsr(
                        partition.leader_epoch,
                        partition.partition_epoch,
                        partition.isr,
                        int(RecoveryState.RECOVERED),
                        _topic_id(simulation, key),
                    ),
                )


def _topic_id(simulation: SimulationState, key: tuple[str, int]) -> bytes:
    return simulation.ensemble.topic_ids.get(key[0], NO_ID) if simulation.topic_ids_used else NO_ID


@choices.on_controller
def _delay_reply(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    """The controller handles the next response of a broker late, even if the channel has closed since."""
    process.transport.delayed[choices.broker(simulation, arguments).broker_id] = arguments["for_ms"]


def _deliver_late(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """A controller that was elected again handles a response to a request of its earlier term."""
    process = choices.controller(simulation, {"controller": 1})
    if not process.active:
        return False
    transport, epoch = process.transport, process.store.claimed_epoch
    past = transport.past_successes if arguments["number"] % 3 == 0 else transport.past_responses
    earlier = [item for item in past if getattr(item, "controller_epoch", epoch) < epoch]
    with_dead_dirs = [broker_id for broker_id, broker in simulation.brokers.items() if broker.dead_dirs]
    earlier = [item for item in earlier if getattr(item, "broker_id", -1) in with_dead_dirs] or earlier
    response = choices.choose(earlier, arguments["number"] // 3)
    if response is None:
        return False
    transport.deliver_late(response)
    return True


def _fail_stop_replica(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """A broker fails at its next StopReplica that deletes replicas."""
    choices.broker(simulation, arguments).fails_stops += 1
    return True


def _crash_in(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """The controller crashes in its next event of a kind, or after it has stored its next assignment."""
    process = choices.controller(simulation, {"controller": 1})
    if arguments["effects"] % 3 == 0:
        process.stop_after_request = WriteAssignments
        return process.running
    process.stop_in = CRASH_EVENTS[arguments["event"] % len(CRASH_EVENTS)], arguments["effects"]
    return process.running


def _fail_failovers(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """The next controllers lose their connection in the middle of a failover, several times in a row."""
    for process in simulation.controllers:
        if process.running:
            process.store.faults.extend(["", "before"] * arguments["times"])
    if simulation.ensemble.controller_id() >= 0:
        simulation.ensemble.drop_controller()
    return True


def _forge_proposal(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """A broker proposes an invalid ISR: empty, without the leader, with an unassigned broker, or for another leader's
    partition. Only with strict checks: Kafka accepts all four."""
    process, key = choices.running_controller(simulation), choices.partition(simulation, arguments["pick"])
    if process is None or key is None or not simulation.options.strict:
        return False
    row = simulation.ensemble.rows[key]
    leader = simulation.brokers.get(row.leader)
    if leader is None or not leader.running or row.partition_epoch == NO_STATE:
        return False
    unassigned = [broker for broker in simulation.options.brokers if broker not in row.replicas]
    others = [broker for broker in simulation.brokers.values() if broker.running and broker is not leader]
    sender, isr = leader, row.isr
    match arguments["how"] % 4:
        case 0:
            isr = ()
        case 1:
            isr = tuple(member for member in row.isr if member != row.leader)
        case 2 if unassigned:
            isr = (*row.isr, unassigned[0])
        case _ if others and len(row.isr) > 1:
            sender, isr = others[arguments["pick"] % len(others)], row.isr[:1]
    if isr == row.isr:
        return False
    proposed = ProposedIsr(
        row.leader_epoch, row.partition_epoch, isr, int(RecoveryState.RECOVERED), _topic_id(simulation, key)
    )
    _send_proposal(simulation, process, sender, key, proposed)
    return True


def _send_proposal(
    simulation: SimulationState,
    process: ControllerProcess,
    sender: BrokerProcess,
    key: tuple[str, int],
    proposed: ProposedIsr,
) -> None:
    message = AlterPartition(sender.broker_id, sender.registration.broker_epoch, {key: proposed})
    simulation.ask(process, "a proposal", *proposal(simulation, process, message))


#: By kind of fault: its function.
FAULTS: Final = choices.by_kind(
    _race_write,
    _swap_disks,
    _add_partition_on_failed_brokers,
    _delay_proposal,
    _lose_response,
    _misdirect,
    _delay_reply,
    _deliver_late,
    _fail_stop_replica,
    _crash_in,
    _fail_failovers,
    _forge_proposal,
)
