"""The effects of plan actions on a simulation.

Each action chooses its targets when it is played, and does nothing if there are none. It counts as played only if it
had an effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kframe.model.events import ElectionRequested, ElectionType
from kframe_simulator.faults import choices, operators, races, sequences
from kframe_simulator.faults.plan import Action
from kframe_simulator.simulation.broker_messages import ask_controller, proposal
from kframe_simulator.simulation.brokers import BrokerProcess
from kframe_simulator.simulation.controllers import ControllerProcess
from kframe_simulator.simulation.network import ENSEMBLE
from kframe_simulator.simulation.recorder import PlayedStep
from kframe_simulator.simulation.state import SimulationState


def play(simulation: SimulationState, action: Action) -> None:
    """Play an action."""
    index = len(simulation.played_steps)
    simulation.played_steps.append(PlayedStep(simulation.scheduler.now_ms, action, None))
    if ACTIONS[action.kind](simulation, action.arguments):
        simulation.played[action.kind] += 1
    else:
        del simulation.played_steps[index]


# -- Processes.


def _crash_broker(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(simulation, arguments)
    if not broker.running:
        return False
    broker.crash()
    return True


def _start_broker(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    down = [broker_process for broker_process in simulation.brokers.values() if not broker_process.running]
    broker = choices.choose(down, arguments["broker"])
    if broker is None:
        return False
    broker.start()
    return True


def _bounce_broker(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(simulation, arguments)
    before = broker.incarnation
    broker.bounce()
    return broker.incarnation > before


def _pause(simulation: SimulationState, process: BrokerProcess | ControllerProcess, for_ms: float) -> bool:
    if not process.running or process.paused:
        return False
    process.pause()
    simulation.scheduler.after(for_ms, process.resume)
    return True


@choices.on_controller
def _crash_controller(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    process.stop_after = arguments["effects"]


def _start_controller(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process = choices.choose(
        [controller for controller in simulation.controllers if not controller.running], arguments["controller"]
    )
    if process is None:
        return False
    process.start()
    return True


@choices.on_controller
def _pause_within(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    process.pause_after = arguments["effects"], arguments["for_ms"]


@choices.on_controller
def _expire_controller(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    process.store.expire()


def _expire_broker(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(simulation, arguments)
    broker.expire()
    return not broker.registered and broker.running


@choices.on_controller
def _jump(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    if not process.paused:
        process.clock.jump(arguments["for_ms"])


# -- Storage.


@choices.on_controller
def _lose_connection(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    process.store.faults.extend([""] * arguments["writes"] + [arguments["when"]])


def _lag(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(simulation, arguments)
    return process.running and process.store.lag(arguments["for_ms"])


@choices.on_controller
def _watch(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    store = process.store
    store.watch_delay_ms, store.repeats_watches = arguments["delay_ms"], arguments["repeat"]

    def end() -> None:
        store.watch_delay_ms, store.repeats_watches = 0.0, False

    simulation.scheduler.after(arguments["for_ms"], end)


def _write_topic(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Another tool adds partitions to a topic directly in storage, as brokers once did."""
    name = choices.topic(simulation, arguments["pick"])
    return name is not None and races.add_partition(simulation, name, choices.replicas(simulation, arguments))


def _forget_id(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    name = choices.topic(simulation, arguments["pick"])
    if name is None:
        return False
    simulation.ensemble.forget_topic_id(name)
    return True


def _rewrite_state(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Another client writes a state unchanged. Its version increases."""
    key = choices.partition(simulation, arguments["pick"])
    return key is not None and races.rewrite(simulation, key)


def _malform(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Make a record unreadable."""
    done = simulation.ensemble.malform(arguments["which"], arguments["pick"])
    simulation.watch.unreadable.update(
        key for key in simulation.ensemble.rows if not simulation.ensemble.readable([key[0]])
    )
    return done


# -- Network and brokers.


def _network_ids(simulation: SimulationState) -> list[int]:
    controllers, producers = simulation.controllers, simulation.clients.producers
    return [
        *simulation.options.brokers,
        *(controller.controller_id for controller in controllers),
        *(producer.network_id for producer in producers),
    ]


def _cut(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    indexes = _network_ids(simulation)
    source, target = indexes[arguments["source"] % len(indexes)], indexes[arguments["target"] % len(indexes)]
    if source == target:
        return False
    simulation.network.cut(source, target, arguments["for_ms"])
    if arguments["both"]:
        simulation.network.cut(target, source, arguments["for_ms"])
    return True


def _cut_ensemble(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(simulation, arguments)
    simulation.network.cut(process.controller_id, ENSEMBLE, arguments["for_ms"])
    process.check_link()
    simulation.scheduler.after(arguments["for_ms"] + 1.0, process.check_link)
    return process.running


def _cut_reply(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """Requests reach a broker, but its responses are lost."""
    for process in simulation.controllers:
        simulation.network.cut(
            choices.broker(simulation, arguments).broker_id, process.controller_id, arguments["for_ms"]
        )
    return True


@choices.on_controller
def _repeat_reply(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    process.transport.repeated.add(choices.broker(simulation, arguments).broker_id)


@choices.on_controller
def _corrupt_response(simulation: SimulationState, process: ControllerProcess, arguments: Mapping[str, Any]) -> None:
    process.transport.corrupted.add(choices.broker(simulation, arguments).broker_id)


def _half_apply(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    choices.broker(simulation, arguments).half_applies += 1
    return True


def _slow(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(simulation, arguments)
    broker.slow_ms = 700.0

    def end() -> None:
        broker.slow_ms = 0.0

    simulation.scheduler.after(arguments["for_ms"], end)
    return True


def _fail_log_dir(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(simulation, arguments)
    return broker.fail_log_dir("a")


def _repeat_alter(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """An earlier AlterPartition request arrives again."""
    process = choices.running_controller(simulation)
    brokers = [candidate for candidate in simulation.brokers.values() if candidate.requests.past_proposals]
    broker = choices.choose(brokers, arguments["broker"])
    if broker is None or process is None:
        return False
    past = broker.requests.past_proposals
    message = past[arguments["number"] % len(past)]
    simulation.ask(process, "a repeated AlterPartition", *proposal(simulation, process, message))
    return True


def _repeat_shutdown(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """An earlier ControlledShutdown request arrives again. If possible, of an earlier registration."""
    process = choices.running_controller(simulation)
    brokers = [candidate for candidate in simulation.brokers.values() if candidate.requests.past_shutdowns]
    earlier = [
        candidate
        for candidate in brokers
        if candidate.requests.past_shutdowns[0].broker_epoch < candidate.registration.broker_epoch
    ]
    broker = choices.choose(earlier or brokers, arguments["broker"])
    if broker is None or process is None:
        return False
    ask_controller(simulation, process, broker.requests.past_shutdowns[0], lambda response: None)
    return True


def readdress(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    """A broker listens on another port. Its listeners have changed."""
    broker = choices.broker(simulation, arguments)
    (endpoint,) = broker.registration.endpoints
    return broker.readdress((replace(endpoint, port=endpoint.port + 1),))


def _fail_selector(simulation: SimulationState, arguments: Mapping[str, Any]) -> bool:
    simulation.faulty_selectors.raises += 1 + arguments["times"] % 3
    return True


#: By kind of action: its function.
ACTIONS: Final[Mapping[str, choices.Perform]] = {
    **choices.by_kind(
        _crash_broker, _start_broker, _bounce_broker, _crash_controller, _start_controller, _pause_within,
        _expire_controller, _expire_broker, _jump, _lose_connection, _lag, _watch, _write_topic, _forget_id,
        _rewrite_state, _malform, _cut, _cut_ensemble, _cut_reply, _repeat_reply, _corrupt_response, _half_apply, _slow,
        _fail_log_dir, _repeat_alter, _repeat_shutdown, readdress, _fail_selector,
    ),
    "pause_broker": lambda simulation, a: _pause(simulation, choices.broker(simulation, a), a["for_ms"]),
    "pause_controller": lambda simulation, a: _pause(simulation, choices.controller(simulation, a), a["for_ms"]),
    **races.FAULTS,
    **operators.OPERATIONS,
    **sequences.SEQUENCES,
}  # fmt: skip


def quiescence(simulation: SimulationState) -> None:
    """End all faults, and stop all brokers without replicas. Stopped brokers stay down for now; controllers start
    again."""
    clear_faults(simulation)
    hosts = {replica for row in simulation.ensemble.rows.values() for replica in row.replicas}
    for broker in simulation.brokers.values():
        if broker.running and broker.broker_id not in hosts:
            broker.crash()
    for process in simulation.controllers:
        process.start()


def end_faults(simulation: SimulationState) -> None:
    """End all faults, and restart all stopped processes."""
    clear_faults(simulation)
    start_stopped_processes(simulation)


def clear_faults(simulation: SimulationState) -> None:
    """End all faults. Paused processes continue, and cut links are restored."""
    simulation.network.heal()
    simulation.faulty_selectors.raises = 0
    sequences.end(simulation)
    simulation.ensemble.repair()
    for process in simulation.controllers:
        process.stop_after = process.pause_after = process.stop_in = process.stop_after_request = None
        if process.running:
            process.store.faults.clear()
            process.store.races = 0
            process.transport.delayed.clear()
            process.store.watch_delay_ms, process.store.repeats_watches = 0.0, False
            process.resume()
            process.check_link()
    for broker in simulation.brokers.values():
        broker.end_faults()


def elect_last_in_sync_replicas(simulation: SimulationState) -> None:
    """Elect the last in-sync replicas that wait for an operator's consent after a crash."""
    process = simulation.controller(-1)
    keys = tuple(key for key, row in simulation.ensemble.rows.items() if row.leader < 0 and row.isr)
    if simulation.options.hold_last and keys and process is not None and process.active and process.idle:
        simulation.ask(process, "an election", partial(ElectionRequested, ElectionType.UNCLEAN, keys))


def start_stopped_processes(simulation: SimulationState) -> None:
    """Start all stopped processes."""
    for process in simulation.controllers:
        if not process.running:
            process.start()
    for broker in simulation.brokers.values():
        if not broker.running:
            broker.start()
