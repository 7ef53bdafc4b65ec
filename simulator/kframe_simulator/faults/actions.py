"""What actions of a plan do to a world.

Each chooses among what is there when it is played, and does nothing where there is nothing to choose; it counts as
played only where it did something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kframe.model.columns import Int32
from kframe.model.elections import ElectionBatch
from kframe.model.events import ElectionRequested, ElectionType
from kframe_simulator.faults import choices, operators, races, sequences
from kframe_simulator.faults.plan import Action
from kframe_simulator.simulation import clients
from kframe_simulator.simulation.errands import ask_controller, proposal
from kframe_simulator.simulation.journal import Told
from kframe_simulator.simulation.network import ENSEMBLE

if TYPE_CHECKING:
    from kframe_simulator.simulation.brokers import BrokerProcess
    from kframe_simulator.simulation.controllers import ControllerProcess
    from kframe_simulator.simulation.world import World

Item = TypeVar("Item")
#: How long clients wait for topics.
TIMEOUT_MS: Final = 3_000


class Saboteur:
    """A leader selector that raises when it was told to, and else leaves everything to the built-in one."""

    name = "saboteur"

    def __init__(self) -> None:
        self.raises = 0

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Fail, or choose the first in-sync candidate as Kafka does."""
        if self.raises:
            self.raises -= 1
            raise RuntimeError("this selector fails by order")
        raise NotImplementedError("the built-in selector is to decide")


def play(world: World, action: Action) -> None:
    """Let an action happen."""
    place = len(world.story)
    world.story.append(Told(world.scheduler.now_ms, action, None))
    if ACTIONS[action.kind](world, action.arguments):
        world.played[action.kind] += 1
    else:
        del world.story[place]


# -- processes


def _crash_broker(world: World, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(world, arguments)
    if not broker.running:
        return False
    broker.crash()
    return True


def _start_broker(world: World, arguments: Mapping[str, Any]) -> bool:
    down = [broker_id for broker_id in world.brokers.values() if not broker_id.running]
    broker = choices.choose(down, arguments["broker"])
    if broker is None:
        return False
    broker.start()
    return True


def _bounce_broker(world: World, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(world, arguments)
    before = broker.incarnation
    broker.bounce()
    return broker.incarnation > before


def _pause(world: World, process: BrokerProcess | ControllerProcess, for_ms: float) -> bool:
    if not process.running or process.paused:
        return False
    process.pause()
    world.scheduler.after(for_ms, process.go_on)
    return True


def _crash_controller(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if not process.running:
        return False
    process.stop_after = arguments["effects"]
    return True


def _start_controller(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.choose(
        [controller for controller in world.controllers if not controller.running], arguments["controller"]
    )
    if process is None:
        return False
    process.start()
    return True


def _pause_within(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    process.pause_after = arguments["effects"], arguments["for_ms"]
    return process.running


def _expire_controller(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if process.running:
        process.store.expire()
    return process.running


def _expire_broker(world: World, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(world, arguments)
    broker.expire()
    return not broker.registered and broker.running


def _jump(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if process.running and not process.paused:
        process.clock.jump(arguments["for_ms"])
    return process.running


# -- storage


def _lose_connection(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if not process.running:
        return False
    process.store.faults.extend([""] * arguments["writes"] + [arguments["when"]])
    return True


def _lag(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    return process.running and process.store.lag(arguments["for_ms"])


def _watch(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if not process.running:
        return False
    store = process.store
    store.watch_delay_ms, store.repeats_watches = arguments["delay_ms"], arguments["repeat"]

    def end() -> None:
        store.watch_delay_ms, store.repeats_watches = 0.0, False

    world.scheduler.after(arguments["for_ms"], end)
    return True


def _write_topic(world: World, arguments: Mapping[str, Any]) -> bool:
    """Another tool adds partitions to a topic, past every controller, as brokers did before."""
    name = choices.topic(world, arguments["pick"])
    return name is not None and races.add_partition(world, name, choices.replicas(world, arguments))


def _forget_id(world: World, arguments: Mapping[str, Any]) -> bool:
    name = choices.topic(world, arguments["pick"])
    if name is None:
        return False
    world.ensemble.forget_topic_id(name)
    return True


def _rewrite_state(world: World, arguments: Mapping[str, Any]) -> bool:
    """Somebody writes a state as it is: its version goes up."""
    key = choices.partition(world, arguments["pick"])
    return key is not None and races.rewrite(world, key)


def _malform(world: World, arguments: Mapping[str, Any]) -> bool:
    """A record becomes unreadable."""
    done = world.ensemble.malform(arguments["which"], arguments["pick"])
    world.watch.unreadable.update(key for key in world.ensemble.rows if not world.ensemble.readable([key[0]]))
    return done


# -- network and brokers


def _places(world: World) -> list[int]:
    controllers, producers = world.controllers, world.clients.producers
    return [
        *world.options.brokers,
        *(controller.controller_id for controller in controllers),
        *(producer.place for producer in producers),
    ]


def _cut(world: World, arguments: Mapping[str, Any]) -> bool:
    places = _places(world)
    source, target = places[arguments["source"] % len(places)], places[arguments["target"] % len(places)]
    if source == target:
        return False
    world.network.cut(source, target, arguments["for_ms"])
    if arguments["both"]:
        world.network.cut(target, source, arguments["for_ms"])
    return True


def _cut_ensemble(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    world.network.cut(process.controller_id, ENSEMBLE, arguments["for_ms"])
    process.look_at_link()
    world.scheduler.after(arguments["for_ms"] + 1.0, process.look_at_link)
    return process.running


def _cut_reply(world: World, arguments: Mapping[str, Any]) -> bool:
    """What a broker is told gets through, what it answers does not."""
    for process in world.controllers:
        world.network.cut(choices.broker(world, arguments).broker_id, process.controller_id, arguments["for_ms"])
    return True


def _repeat_reply(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if process.running:
        process.transport.repeated.add(choices.broker(world, arguments).broker_id)
    return process.running


def _garble(world: World, arguments: Mapping[str, Any]) -> bool:
    process = choices.controller(world, arguments)
    if process.running:
        process.transport.garbled.add(choices.broker(world, arguments).broker_id)
    return process.running


def _half_apply(world: World, arguments: Mapping[str, Any]) -> bool:
    choices.broker(world, arguments).half_applies += 1
    return True


def _slow(world: World, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(world, arguments)
    broker.slow_ms = 700.0

    def end() -> None:
        broker.slow_ms = 0.0

    world.scheduler.after(arguments["for_ms"], end)
    return True


def _fail_log_dir(world: World, arguments: Mapping[str, Any]) -> bool:
    broker = choices.broker(world, arguments)
    return broker.fail_log_dir("a")


def _repeat_alter(world: World, arguments: Mapping[str, Any]) -> bool:
    """A proposal of the past arrives once more."""
    process = world.controller(-1)
    brokers = [broker_id for broker_id in world.brokers.values() if broker_id.requests.past_proposals]
    broker = choices.choose(brokers, arguments["broker"])
    if broker is None or process is None or not process.running:
        return False
    past = broker.requests.past_proposals
    message = past[arguments["number"] % len(past)]
    world.ask(process, "a repeated AlterPartition", *proposal(world, process, message))
    return True


def _repeat_shutdown(world: World, arguments: Mapping[str, Any]) -> bool:
    """A broker's request to be let go, of an earlier registration if there is one, arrives once more."""
    process = world.controller(-1)
    brokers = [broker_id for broker_id in world.brokers.values() if broker_id.requests.past_shutdowns]
    earlier = [
        broker_id
        for broker_id in brokers
        if broker_id.requests.past_shutdowns[0].broker_epoch < broker_id.registration.broker_epoch
    ]
    broker = choices.choose(earlier or brokers, arguments["broker"])
    if broker is None or process is None or not process.running:
        return False
    ask_controller(world, process, broker.requests.past_shutdowns[0], lambda response: None)
    return True


def readdress(world: World, arguments: Mapping[str, Any]) -> bool:
    """A broker listens on another port, as after a change of its listeners."""
    broker = choices.broker(world, arguments)
    (now,) = broker.registration.endpoints
    return broker.readdress((replace(now, port=now.port + 1),))


def _fail_selector(world: World, arguments: Mapping[str, Any]) -> bool:
    world.faulty_selectors.raises += 1 + arguments["times"] % 3
    return True


#: What each kind of action does; it says whether it did anything.
ACTIONS: Final[Mapping[str, Callable[[World, Mapping[str, Any]], bool]]] = {
    "crash_broker": _crash_broker,
    "start_broker": _start_broker,
    "bounce_broker": _bounce_broker,
    "pause_broker": lambda world, a: _pause(world, choices.broker(world, a), a["for_ms"]),
    "crash_controller": _crash_controller,
    "start_controller": _start_controller,
    "pause_controller": lambda world, a: _pause(world, choices.controller(world, a), a["for_ms"]),
    "pause_within": _pause_within,
    "expire_controller": _expire_controller,
    "expire_broker": _expire_broker,
    "jump": _jump,
    "lose_connection": _lose_connection,
    "lag": _lag,
    "watch": _watch,
    "write_topic": _write_topic,
    "forget_id": _forget_id,
    "rewrite_state": _rewrite_state,
    "malform": _malform,
    "cut": _cut,
    "cut_ensemble": _cut_ensemble,
    "cut_reply": _cut_reply,
    "repeat_reply": _repeat_reply,
    "garble": _garble,
    "half_apply": _half_apply,
    "slow": _slow,
    "fail_log_dir": _fail_log_dir,
    "repeat_alter": _repeat_alter,
    "repeat_shutdown": _repeat_shutdown,
    "readdress": readdress,
    "fail_selector": _fail_selector,
    **races.FAULTS,
    **operators.OPERATIONS,
    **clients.OPERATIONS,
    **sequences.SEQUENCES,
}


def lull(world: World) -> None:
    """End all faults, and let die whoever hosts nothing: what is dead stays so for now, but for the controllers."""
    soothe(world)
    hosts = {replica for row in world.ensemble.rows.values() for replica in row.replicas}
    for broker in world.brokers.values():
        if broker.running and broker.broker_id not in hosts:
            broker.crash()
    for process in world.controllers:
        process.start()


def calm(world: World) -> None:
    """End all faults; what is dead is brought back."""
    soothe(world)
    bring_back(world)


def soothe(world: World) -> None:
    """End all faults: what was paused goes on, what was cut is whole."""
    world.network.heal()
    world.faulty_selectors.raises = 0
    sequences.end(world)
    world.ensemble.mend()
    for process in world.controllers:
        process.stop_after = process.pause_after = process.stop_in = process.stop_after_call = None
        if process.running:
            process.store.faults.clear()
            process.store.races = 0
            process.transport.delayed.clear()
            process.store.watch_delay_ms, process.store.repeats_watches = 0.0, False
            process.go_on()
            process.look_at_link()
    for broker in world.brokers.values():
        broker.calm()


def consent(world: World) -> None:
    """Where the last in-sync replicas wait for an operator's consent after a crash, let them lead."""
    process = world.controller(-1)
    keys = tuple(key for key, row in world.ensemble.rows.items() if row.leader < 0 and row.isr)
    if world.options.hold_last and keys and process is not None and process.active and process.idle:
        world.ask(process, "an election", partial(ElectionRequested, ElectionType.UNCLEAN, keys))


def bring_back(world: World) -> None:
    """Start what is not running."""
    for process in world.controllers:
        if not process.running:
            process.start()
    for broker in world.brokers.values():
        if not broker.running:
            broker.start()
