"""Sequences of faults and operations that random single actions rarely produce.

Each sequence starts from the current state and schedules its later steps. A step does nothing if the state no longer
allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from kframe.embedded.layout import REASSIGN_PARTITIONS
from kframe.embedded.records import StoredRecordError
from kframe.model.events import ReassignmentRequested, TopicPartition
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.model.tables import Targets, TopicTable
from kframe.ports.store_requests import WriteAssignments
from kframe_simulator.faults import choices, races
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.brokers import BrokerProcess
from kframe_simulator.simulation.controller_memory import lost_dirs_known
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.state import SimulationState

#: How long the controller has for one step, even with slow messages.
STEP_MS: Final = 400.0
#: How long the link between an added replica and its leader is cut.
CUT_MS: Final = 3_000.0
#: How long a sequence waits for a condition; it checks every STEP_MS.
WAIT_MAX_MS: Final = 8_000.0


def _active(simulation: SimulationState) -> ControllerProcess | None:
    process = simulation.controller(-1)
    return process if process is not None and process.active else None


def _later(simulation: SimulationState, step: Callable[[], None]) -> None:
    """Schedule the next step of a sequence. It is skipped if the faults have ended."""
    simulation.scheduler.after(STEP_MS, lambda: step() if simulation.faults_continue else None)


def _wait(
    simulation: SimulationState, ready: Callable[[], bool], then: Callable[[], None], remaining_ms: float = WAIT_MAX_MS
) -> None:
    """Call ``then`` when ``ready`` is true. Give up after a while."""
    if ready():
        then()
    elif remaining_ms > 0:
        _later(simulation, partial(_wait, simulation, ready, then, remaining_ms - STEP_MS))


def _request_reassignment(simulation: SimulationState, key: TopicPartition, replicas: tuple[int, ...] | None) -> None:
    """Request a reassignment of one partition. None requests its cancellation."""
    process = _active(simulation)
    if process is None:
        return
    if replicas is not None:
        simulation.watch.requested_targets[key].add(replicas)
    simulation.ask(process, "a reassignment", partial(ReassignmentRequested, Targets.of([(key, replicas)])))


def _idle_partitions(simulation: SimulationState) -> list[Row]:
    """Partitions of readable topics that have a state and no reassignment."""
    rows = (simulation.ensemble.rows[key] for key in sorted(simulation.ensemble.rows))
    idle = [row for row in rows if row.partition_epoch != NO_STATE and not (row.adding or row.removing)]
    return [row for row in idle if simulation.ensemble.readable([row.key[0]])]


def _present(simulation: SimulationState) -> list[BrokerProcess]:
    """The registered, running brokers."""
    brokers = simulation.brokers.values()
    return [broker for broker in brokers if broker.registered and broker.running and not broker.paused]


def _others(simulation: SimulationState, row: Row) -> list[int]:
    """Registered, running brokers without a replica of a partition."""
    return [broker.broker_id for broker in _present(simulation) if broker.broker_id not in row.replicas]


# -- Cancelled reassignments.


def _cancel_reassignment_and_crash(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Add a replica that cannot reach its leader. The operator cancels, and the controller crashes after it has stored
    the cancellation."""
    rows = [row for row in _idle_partitions(simulation) if row.leader >= 0 and _others(simulation, row)]
    row = choices.choose(rows, arguments["pick"])
    if row is None or _active(simulation) is None:
        return False
    added = choices.choose(_others(simulation, row), arguments["pick"] // 3)
    assert added is not None
    simulation.network.cut(added, row.leader, CUT_MS)
    simulation.network.cut(row.leader, added, CUT_MS)
    _request_reassignment(simulation, row.key, (*row.replicas, added))
    _later(simulation, partial(_cancel_and_crash, simulation, row.key))
    return True


def _cancel_and_crash(simulation: SimulationState, key: TopicPartition) -> None:
    row, process = simulation.ensemble.rows.get(key), _active(simulation)
    if process is not None and row is not None and row.adding and not set(row.adding) & set(row.isr):
        process.stop_after_request = WriteAssignments
        _request_reassignment(simulation, key, None)


def _cancel_leaderless_reassignment(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Crash all replicas but the leader, then the leader; another replica comes back and cannot lead. An operator
    removes a replica and cancels."""
    rows = [row for row in _idle_partitions(simulation) if row.leader in row.replicas and len(row.replicas) > 1]
    row = choices.choose(rows, arguments["pick"])
    if row is None:
        return False
    key, leader = row.key, row.leader
    followers = [simulation.brokers[replica] for replica in row.replicas if replica != leader]
    for follower in followers:
        follower.kill()

    def alone() -> bool:
        now = simulation.ensemble.rows.get(key)
        return now is not None and now.isr == (leader,)

    def leaderless() -> bool:
        return alone() and simulation.ensemble.rows[key].leader < 0

    def end_leader() -> None:
        simulation.brokers[leader].kill()
        followers[0].start()
        _wait(simulation, leaderless, remove)

    def remove() -> None:
        stay = tuple(replica for replica in row.replicas if replica != followers[-1].broker_id)
        _request_reassignment(simulation, key, stay)
        _later(simulation, partial(_request_reassignment, simulation, key, None))

    _wait(simulation, alone, end_leader)
    return True


def _override_reassignment(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Delay the next ISR that a leader writes with a replica under addition. The reassignment is overridden, and the
    ISR is written right after the new assignment (before inter-broker protocol 2.7-IV2)."""
    if simulation.controllers_store_isrs:
        return False
    simulation.isr_writes_to_delay += 1
    return True


def is_delayed_by_override(
    simulation: SimulationState, key: TopicPartition, isr: tuple[int, ...], store: Callable[[], None]
) -> bool:
    """Whether a leader's ISR write is delayed until the reassignment is overridden."""
    row = simulation.ensemble.rows.get(key)
    joining = set() if row is None else set(isr) & set(row.adding)
    if not simulation.isr_writes_to_delay or row is None or not joining or _active(simulation) is None:
        return False
    other = next(iter(_others(simulation, row)), None)
    if other is None:
        return False
    simulation.isr_writes_to_delay -= 1
    simulation.delayed_isr_writes[key[0]] = store
    _request_reassignment(simulation, key, (*row.origin, other))
    simulation.scheduler.after(CUT_MS, partial(_release, simulation, key[0]))
    return True


def assignment_stored(simulation: SimulationState, name: str) -> None:
    """A controller has stored assignments of a topic: write the delayed ISR before the controller continues."""
    if name in simulation.delayed_isr_writes:
        simulation.scheduler.after(0.0, partial(_release, simulation, name))


def _release(simulation: SimulationState, name: str) -> None:
    store = simulation.delayed_isr_writes.pop(name, None)
    if store is not None:
        store()


# -- Controlled shutdowns.


def _crash_in_shutdown(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Leave a leader alone in its ISR. It requests a controlled shutdown, which the controller cannot grant, and
    crashes before it retries. Then it starts again."""
    rows = [row for row in _idle_partitions(simulation) if row.leader in row.replicas and len(row.replicas) > 1]
    row = choices.choose(rows, arguments["pick"])
    if row is None or not simulation.brokers[row.leader].running:
        return False
    key, leader = row.key, simulation.brokers[row.leader]
    for replica in row.replicas:
        if replica != leader.broker_id:
            simulation.brokers[replica].kill()

    def is_alone(leader_id: int) -> bool:
        now = simulation.ensemble.rows.get(key)
        return now is not None and now.isr == (leader.broker_id,) and now.leader == leader_id

    def is_refused() -> bool:
        process = _active(simulation)
        return process is not None and process.idle and leader.broker_id in simulation.watch.observed.leaving(process)

    def shut_down() -> None:
        leader.shut_down()
        _wait(simulation, is_refused, crash)

    def crash() -> None:
        if is_alone(leader.broker_id):
            leader.kill()
            _wait(simulation, partial(is_alone, NO_LEADER), leader.start)

    _wait(simulation, partial(is_alone, leader.broker_id), shut_down)
    return True


# -- Reassignments that wait for the first leader.


def _reassign_without_state(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Add a partition on a missing broker, and store its reassignment to another missing broker. Then the target broker
    starts, or the topic is marked for deletion."""
    name = choices.topic(simulation, arguments["pick"])
    if name is None or not simulation.ensemble.readable([name]) or name in simulation.watch.observed.marked():
        return False
    number = arguments["pick"] // 3
    for step in range(2):
        absent = [broker for broker in simulation.brokers.values() if not broker.registered]
        present = _present(simulation)
        if len(absent) < 2 and len(present) > 1:
            present[(number + step) % len(present)].kill()
    absent = [broker for broker in simulation.brokers.values() if not broker.registered]
    count = len(simulation.ensemble.topic_partitions(name))
    if len(absent) < 2 or not races.add_partition(simulation, name, (absent[0].broker_id,)):
        return False
    key, target = (name, count), (absent[1].broker_id, absent[0].broker_id)[: 1 + number % 2]
    _later(simulation, partial(_reassign_by_znode, simulation, key, target, arguments["next_step"]))
    return True


def _reassign_by_znode(simulation: SimulationState, key: TopicPartition, target: tuple[int, ...], number: int) -> None:
    row = simulation.ensemble.rows.get(key)
    if row is None or row.partition_epoch != NO_STATE or simulation.ensemble.has_record(REASSIGN_PARTITIONS):
        return
    simulation.watch.requested_targets[key].add(target)
    simulation.ensemble.request_reassignments(Targets.of([(key, target)]))

    def stored() -> bool:
        now = simulation.ensemble.rows.get(key)
        return now is not None and target[0] in now.replicas

    def resume() -> None:
        if number % 2:
            simulation.brokers[target[0]].start()
            return
        try:
            simulation.ensemble.mark_for_deletion([key[0]])
        except StoredRecordError:
            return

    _wait(simulation, stored, resume)


# -- Late responses, and unreadable records.


def _bounce_in_deletion(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """A broker registers again just before its next deleting StopReplica arrives. It refuses the request for its broker
    epoch. The controller handles the response after the new registration."""
    broker = choices.broker(simulation, arguments)
    broker.bounces_at_deletion = arguments["for_ms"]
    return broker.running


def _repeat_earlier_responses(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """The controller is elected again. A log directory fails, and the controller is notified. Then a response of the
    earlier term arrives, in which the same replicas have no error."""
    process = _active(simulation)
    if process is None or simulation.ensemble.controller_id() != process.controller_id:
        return False
    epoch = process.store.claimed_epoch
    for other in simulation.controllers:
        if other is not process:
            other.crash()
    simulation.ensemble.drop_controller()

    def elected() -> bool:
        return process.active and process.store.claimed_epoch > epoch and process.idle

    def fail_dir() -> None:
        running_brokers = [
            node for node in simulation.brokers.values() if node.registered and node.running and not node.dead_dirs
        ]
        earlier_responses = [
            stop for stop in process.transport.past_successes if stop.controller_epoch <= epoch and len(stop.rows)
        ]
        responders = {response.broker_id for response in earlier_responses}
        candidates = [node for node in running_brokers if node.broker_id in responders]
        broker = choices.choose(candidates, arguments["pick"])
        if broker is not None and broker.fail_log_dir("a"):
            _wait(
                simulation,
                partial(_knows_dead_dir, simulation, process, broker.broker_id),
                partial(recall, broker.broker_id),
            )

    def recall(broker_id: int) -> None:
        if not elected():
            return
        for response in process.transport.past_successes:
            if response.broker_id == broker_id and response.controller_epoch <= epoch:
                process.transport.deliver_late(response)

    _wait(simulation, elected, fail_dir)
    return True


def _knows_dead_dir(simulation: SimulationState, process: ControllerProcess, broker_id: int) -> bool:
    """Whether the controller knows of a failed log directory of a broker."""
    if not process.active:
        return False
    cluster = process.loop.controller.cluster
    rows = (cluster.partitions.topic >= 0).nonzero()[0].tolist()
    return any(broker_id in lost_dirs_known(cluster, row) for row in rows)


def _malform_at_completion(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Make a topic's record unreadable just before the end of its next reassignment is stored."""
    simulation.malformed_completions += 1
    return True


def malform_at_completion(simulation: SimulationState, table: TopicTable) -> None:
    """A controller is about to store these assignments: if one ends a reassignment, make its record unreadable."""
    reached = {key[0] for key, row in simulation.ensemble.rows.items() if _is_reached(row)}
    for index, name in enumerate(table.names):
        if simulation.malformed_completions and name in reached and not table.take(np.array([index])).flags.any():
            simulation.malformed_completions -= 1
            simulation.ensemble.malform_topic(name)
            simulation.watch.unreadable.update(key for key in simulation.ensemble.rows if key[0] == name)


def end(simulation: SimulationState) -> None:
    """Stop all sequences, and release everything that they delay."""
    simulation.faults_continue, simulation.isr_writes_to_delay, simulation.malformed_completions = False, 0, 0
    for name in list(simulation.delayed_isr_writes):
        _release(simulation, name)


def _is_reached(row: Row) -> bool:
    """Whether all target replicas of a reassignment are in sync."""
    return bool(row.adding or row.removing) and set(row.target) <= set(row.isr)


#: By kind of sequence: its function.
SEQUENCES: Final = choices.by_kind(
    _cancel_reassignment_and_crash,
    _cancel_leaderless_reassignment,
    _override_reassignment,
    _crash_in_shutdown,
    _reassign_without_state,
    _bounce_in_deletion,
    _repeat_earlier_responses,
    _malform_at_completion,
)
