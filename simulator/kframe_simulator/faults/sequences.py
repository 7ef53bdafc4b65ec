"""Sequences of faults and operations that single actions of a plan rarely line up.

Each action begins with what the simulation has when it is played, and schedules the steps that follow. A step that no
longer fits what has happened meanwhile does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kframe.embedded.layout import REASSIGN_PARTITIONS
from kframe.embedded.records import RecordError
from kframe.model.events import ReassignmentRequested, TopicPartition
from kframe.model.ids import NO_STATE
from kframe.model.tables import Targets, TopicTable
from kframe_simulator.faults import choices, races

if TYPE_CHECKING:
    from kframe_simulator.simulation.brokers import BrokerProcess
    from kframe_simulator.simulation.controllers import ControllerProcess
    from kframe_simulator.simulation.letters import Row
    from kframe_simulator.simulation.world import World

#: How long the controller has for one step, also where messages are slow.
STEP_MS: Final = 400.0
#: How long a replica that is being added is kept from its leader.
CUT_MS: Final = 3_000.0
#: How long a sequence waits for something, checking every STEP_MS.
WAIT_MOST_MS: Final = 8_000.0


def _active(world: World) -> ControllerProcess | None:
    process = world.controller(-1)
    return process if process is not None and process.active else None


def _later(world: World, step: Callable[[], None]) -> None:
    """Do the next step of a sequence, unless faults have ended by then."""
    world.scheduler.after(STEP_MS, lambda: step() if world.faults_go_on else None)


def _wait(world: World, ready: Callable[[], bool], then: Callable[[], None], left_ms: float = WAIT_MOST_MS) -> None:
    """Do ``then`` once ``ready``; give up after a while."""
    if ready():
        then()
    elif left_ms > 0:
        _later(world, partial(_wait, world, ready, then, left_ms - STEP_MS))


def _ask_to_move(world: World, key: TopicPartition, replicas: tuple[int, ...] | None) -> None:
    """Request a reassignment of one partition, or with None its cancellation."""
    process = _active(world)
    if process is None:
        return
    if replicas is not None:
        world.watch.wanted[key].add(replicas)
    world.ask(process, "a reassignment", partial(ReassignmentRequested, Targets.of([(key, replicas)])))


def _kill(broker: BrokerProcess) -> None:
    """Crash a broker, and end its session at once."""
    broker.crash()
    broker.time_out()


def _unmoved(world: World) -> list[Row]:
    """Partitions with a state that are not under reassignment, of readable topics."""
    rows = (world.ensemble.rows[key] for key in sorted(world.ensemble.rows))
    idle = [row for row in rows if row.partition_epoch != NO_STATE and not (row.adding or row.removing)]
    return [row for row in idle if world.ensemble.readable([row.key[0]])]


def _others(world: World, row: Row) -> list[int]:
    """Registered, running brokers that have no replica of a partition."""
    brokers = (one for one in world.brokers.values() if one.registered and one.running and not one.paused)
    return [one.broker_id for one in brokers if one.broker_id not in row.replicas]


# -- a reassignment that is given up


def _give_up_move(world: World, arguments: Mapping[str, Any]) -> bool:
    """A replica is added that cannot reach its leader. The operator cancels, and the controller crashes once the end of
    the reassignment is stored."""
    rows = [row for row in _unmoved(world) if row.leader >= 0 and _others(world, row)]
    row = choices.choose(rows, arguments["pick"])
    if row is None or _active(world) is None:
        return False
    added = choices.choose(_others(world, row), arguments["pick"] // 3)
    assert added is not None
    world.network.cut(added, row.leader, CUT_MS)
    world.network.cut(row.leader, added, CUT_MS)
    _ask_to_move(world, row.key, (*row.replicas, added))
    _later(world, partial(_cancel_and_crash, world, row.key))
    return True


def _cancel_and_crash(world: World, key: TopicPartition) -> None:
    row, process = world.ensemble.rows.get(key), _active(world)
    if process is not None and row is not None and row.adding and not set(row.adding) & set(row.isr):
        process.stop_after_call = "write_assignments"
        _ask_to_move(world, key, None)


def _give_up_leaderless_move(world: World, arguments: Mapping[str, Any]) -> bool:
    """All replicas but the leader crash, then the leader; one of the others comes back, and cannot lead. An operator
    removes a replica and cancels."""
    rows = [row for row in _unmoved(world) if row.leader in row.replicas and len(row.replicas) > 1]
    row = choices.choose(rows, arguments["pick"])
    if row is None:
        return False
    key, leader = row.key, row.leader
    followers = [world.brokers[one] for one in row.replicas if one != leader]
    for follower in followers:
        _kill(follower)

    def alone() -> bool:
        now = world.ensemble.rows.get(key)
        return now is not None and now.isr == (leader,)

    def leaderless() -> bool:
        return alone() and world.ensemble.rows[key].leader < 0

    def end_leader() -> None:
        _kill(world.brokers[leader])
        followers[0].start()
        _wait(world, leaderless, remove)

    def remove() -> None:
        stay = tuple(one for one in row.replicas if one != followers[-1].broker_id)
        _ask_to_move(world, key, stay)
        _later(world, partial(_ask_to_move, world, key, None))

    _wait(world, alone, end_leader)
    return True


def _override_at_join(world: World, arguments: Mapping[str, Any]) -> bool:
    """The next ISR that a leader stores by itself with a replica that is being added is held up: the reassignment is
    overridden, and the ISR is stored right after the new assignment (before inter-broker protocol 2.7-IV2)."""
    if world.controllers_store_isrs:
        return False
    world.overrides_joins += 1
    return True


def held_by_override(world: World, key: TopicPartition, isr: tuple[int, ...], store: Callable[[], None]) -> bool:
    """Whether an ISR that a leader stores is held up, to be stored once the reassignment is overridden."""
    row = world.ensemble.rows.get(key)
    joining = set() if row is None else set(isr) & set(row.adding)
    if not world.overrides_joins or row is None or not joining or _active(world) is None:
        return False
    origin = tuple(one for one in row.replicas if one not in row.adding)
    other = next(iter(_others(world, row)), None)
    if other is None:
        return False
    world.overrides_joins -= 1
    world.held_isrs[key[0]] = store
    _ask_to_move(world, key, (*origin, other))
    world.scheduler.after(CUT_MS, partial(_release, world, key[0]))
    return True


def assignment_stored(world: World, name: str) -> None:
    """A controller has stored assignments of a topic: an ISR that waits for that is stored before it goes on."""
    if name in world.held_isrs:
        world.scheduler.after(0.0, partial(_release, world, name))


def _release(world: World, name: str) -> None:
    store = world.held_isrs.pop(name, None)
    if store is not None:
        store()


# -- a reassignment that waits for the first leader


def _move_unborn(world: World, arguments: Mapping[str, Any]) -> bool:
    """A partition is added on a broker that is not there, and reassigned in storage to another one that is not there.
    Then the target comes, or the topic is marked for deletion."""
    name = choices.topic(world, arguments["pick"])
    if name is None or not world.ensemble.readable([name]) or name in world.watch.observed.marked():
        return False
    number = arguments["pick"] // 3
    for step in range(2):
        absent = [one for one in world.brokers.values() if not one.registered]
        present = [one for one in world.brokers.values() if one.registered and one.running and not one.paused]
        if len(absent) < 2 and len(present) > 1:
            _kill(present[(number + step) % len(present)])
    absent = [one for one in world.brokers.values() if not one.registered]
    count = len(world.ensemble.topic_partitions(name))
    if len(absent) < 2 or not races.add_partition(world, name, (absent[0].broker_id,)):
        return False
    key, target = (name, count), (absent[1].broker_id, absent[0].broker_id)[: 1 + number % 2]
    _later(world, partial(_move_by_record, world, key, target, arguments["then"]))
    return True


def _move_by_record(world: World, key: TopicPartition, target: tuple[int, ...], number: int) -> None:
    row = world.ensemble.rows.get(key)
    if row is None or row.partition_epoch != NO_STATE or world.ensemble.has_record(REASSIGN_PARTITIONS):
        return
    world.watch.wanted[key].add(target)
    world.ensemble.leave_reassignments(Targets.of([(key, target)]))

    def stored() -> bool:
        now = world.ensemble.rows.get(key)
        return now is not None and target[0] in now.replicas

    def go_on() -> None:
        if number % 2:
            world.brokers[target[0]].start()
            return
        try:
            world.ensemble.mark_for_deletion([key[0]])
        except RecordError:
            return

    _wait(world, stored, go_on)


# -- answers that come late, and records that cannot be read


def _bounce_in_deletion(world: World, arguments: Mapping[str, Any]) -> bool:
    """A broker registers anew just before its next StopReplica that deletes arrives. It refuses that for the broker
    epoch, and the controller handles the answer after the new registration."""
    broker = choices.broker(world, arguments)
    broker.bounces_at_deletion = arguments["for_ms"]
    return broker.running


def _recall_answers(world: World, arguments: Mapping[str, Any]) -> bool:
    """The controller is elected again; a log directory dies, of which it hears; then an answer of the earlier term is
    told, in which the same replicas are well."""
    process = _active(world)
    if process is None or world.ensemble.controller_id() != process.controller_id:
        return False
    epoch = process.store.claimed_epoch
    for other in world.controllers:
        if other is not process:
            other.crash()
    world.ensemble.drop_controller()

    def elected() -> bool:
        return process.active and process.store.claimed_epoch > epoch and process.idle

    def fail_dir() -> None:
        hosts = [one for one in world.brokers.values() if one.registered and one.running and not one.dead_dirs]
        early = [one for one in process.transport.past_successes if one.controller_epoch <= epoch and len(one.rows)]
        broker = choices.choose([one for one in hosts if _answered(early, one.broker_id)], arguments["pick"])
        if broker is not None and broker.fail_log_dir("a"):
            _wait(world, partial(_knows_dead_dir, world, process, broker.broker_id), partial(recall, broker.broker_id))

    def recall(broker_id: int) -> None:
        if not elected():
            return
        for answer in process.transport.past_successes:
            if answer.broker_id == broker_id and answer.controller_epoch <= epoch:
                process.transport.tell_late(answer)

    _wait(world, elected, fail_dir)
    return True


def _answered(answers: list[Any], broker_id: int) -> bool:
    return any(one.broker_id == broker_id for one in answers)


def _knows_dead_dir(world: World, process: ControllerProcess, broker_id: int) -> bool:
    """Whether the controller knows of a dead log directory of a broker."""
    if not process.active:
        return False
    cluster = process.loop.controller.cluster
    rows = (cluster.partitions.topic >= 0).nonzero()[0].tolist()
    return any(broker_id in world.lost_dirs_known(cluster, row) for row in rows)


def _spoil_end(world: World, arguments: Mapping[str, Any]) -> bool:
    """A topic's record becomes unreadable just before the end of its next reassignment is stored."""
    world.spoils_ends += 1
    return True


def spoil_end(world: World, table: TopicTable) -> None:
    """A controller is about to store these assignments: if one is the end of a reassignment, its record is spoilt."""
    reached = {key[0] for key, row in world.ensemble.rows.items() if _is_reached(row)}
    for index, name in enumerate(table.names):
        if world.spoils_ends and name in reached and not table.take(np.array([index])).flags.any():
            world.spoils_ends -= 1
            world.ensemble.malform_topic(name)
            world.watch.unreadable.update(key for key in world.ensemble.rows if key[0] == name)


def end(world: World) -> None:
    """No sequence goes on, and nothing that one holds up waits any longer."""
    world.faults_go_on, world.overrides_joins, world.spoils_ends = False, 0, 0
    for name in list(world.held_isrs):
        _release(world, name)


def _is_reached(row: Row) -> bool:
    """Whether the whole target of a reassignment is in sync."""
    return bool(row.adding or row.removing) and set(row.replicas) - set(row.removing) <= set(row.isr)


#: What each kind of sequence does; it says whether it began.
SEQUENCES: Final[Mapping[str, Callable[[World, Mapping[str, Any]], bool]]] = {
    "give_up_move": _give_up_move,
    "give_up_leaderless_move": _give_up_leaderless_move,
    "override_at_join": _override_at_join,
    "move_unborn": _move_unborn,
    "bounce_in_deletion": _bounce_in_deletion,
    "recall_answers": _recall_answers,
    "spoil_end": _spoil_end,
}
