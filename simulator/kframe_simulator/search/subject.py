"""kframe's real core as a table: (controller state, input) → (next state, effects).

An operation of the core is a generator and cannot be copied. A controller between two events can be copied
(``copy_controller``). A controller within an operation is such a copy that has received the event and the responses so
far again. The core performs each small step once; later global states look it up. This makes millions of global states
affordable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kframe.core.context import Context
from kframe.core.controller import ControllerCore
from kframe.core.operations.alter_partition import AlterPartitionResponse
from kframe.core.operations.controlled_shutdown import ControlledShutdownResponse
from kframe.core.operations.topic_requests import ReassignmentResponse
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded.describe import Api, describe_requests
from kframe.errors import ControllerFenced, ErrorCode, StoreError
from kframe.model import effects, events
from kframe.model.brokers import Registration
from kframe.model.changes import StoredStates, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.config import ControllerConfig
from kframe.model.ids import ReplicaFlag
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports import store_requests
from kframe_simulator.search.values import BROKERS, Message, QueuedProposal, Stored

TOPIC: Final = "t"
TOPIC_ID: Final = bytes(15) + b"\1"
#: Reads whose result never changes in this space: completed at once.
UNCHANGING: Final[dict[type[Any], Callable[[Any], Any]]] = {
    store_requests.ReadDeletions: lambda _: frozenset(),
    store_requests.ReadReassignments: lambda _: None,
    store_requests.ReadPreferredElection: lambda _: None,
}
#: The fields that identify a controller between two events. Fields without influence on decisions are excluded: meters,
#: gauges, and indexes that can be rebuilt from the columns.
CONTROLLER_HAS: Final = {
    "controller_id", "config", "selection", "active_controller", "counters", "failures", "_context", "_operation",
    "_event", "_claimed", "log",
}  # fmt: skip
CONTEXT_HAS: Final = {"cluster", "controller_id", "controller_epoch", "term"}
LEFT_OUT: Final = {"config", "selection", "counters", "gauges", "replica_index", "log"}

#: The number of controllers within an operation that are cached; each can take its next step once.
CACHED_CONTROLLERS_MAX: Final = 5_000


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the log: the search handles the same events many times."""
    log = logging.getLogger("kframe")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


@dataclass(frozen=True, slots=True)
class CoreState:
    """A state of one controller's core."""

    ask: tuple[Any, ...] | None
    """The call that it waits for. None between events."""
    active: bool
    controller_epoch: int
    known: tuple[int, int, int] = (0, 0, 0)
    """The broker epochs of its known registrations, 0 for none."""
    shutting_down: tuple[int, ...] = ()
    """The brokers that it knows to be shutting down."""
    state: tuple[Any, ...] = ()
    """Leader, leader epoch, ISR, recovery, controller epoch and partition epoch in its memory."""
    replica_states: tuple[Any, ...] = ()
    """Its PartitionState, and each replica's broker and ReplicaState."""
    assigned: tuple[tuple[int, ...], ...] = ()
    """Replicas, adding replicas, removing replicas."""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """How to rebuild a node: a controller between two events, and the inputs since then."""

    resting: int
    message: tuple[Any, ...]


class Subject:
    """All visited states of one controller's core."""

    def __init__(self, controller: int, config: ControllerConfig) -> None:
        self.controller = controller
        self.nodes: list[CoreState] = []
        self.performed = 0
        """The steps that the core performed, without lookups and repetitions."""
        self._config = config
        self._recipes: list[_Recipe] = []
        self._resting: dict[int, ControllerCore] = {}
        self._within_operation: dict[int, ControllerCore] = {}
        self._numbers: dict[Any, int] = {}
        self._steps: dict[tuple[int, Any], tuple[int, tuple[Any, ...]]] = {}
        self.fresh = self._rest(ControllerCore(controller, config, Selection({})))

    def step(self, node: int, message: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        """Give the core an event or the result of an effect. Returns its next state and its effects in order."""
        key = node, message
        result = self._steps.get(key)
        if result is None:
            result = self._steps[key] = self._perform(node, message)
        return result

    def resting(self) -> Iterator[ControllerCore]:
        """One controller for each state between two events. Callers must not change it."""
        yield from self._resting.values()

    def _perform(self, node: int, message: tuple[Any, ...]) -> tuple[int, tuple[Any, ...]]:
        self.performed += 1
        recipe, controller = self._recipes[node], self._within_operation.pop(node, None)
        if controller is None:
            controller = copy_controller(self._resting[recipe.resting])
            for earlier in recipe.message:
                _run(controller, earlier)
        try:
            ask, done = _run(controller, message)
        except Exception as error:  # The search looks for any exception of the core.
            return self.fresh, (("raised", f"{type(error).__name__}: {error}"),)
        if ask is None:
            return self._rest(controller), done
        recipe = _Recipe(recipe.resting, (*recipe.message, message))
        number = self._number(recipe, core_state(controller, ask), recipe)
        if len(self._within_operation) < CACHED_CONTROLLERS_MAX:
            self._within_operation[number] = controller
        return number, done

    def _rest(self, controller: ControllerCore) -> int:
        node = core_state(controller, None)
        number = self._number((node, identity(controller)), node, None)
        self._resting.setdefault(number, controller)
        return number

    def _number(self, key: Any, node: CoreState, recipe: _Recipe | None) -> int:
        number = self._numbers.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
            self._recipes.append(recipe or _Recipe(number, ()))
        return number


def copy_controller(controller: ControllerCore) -> ControllerCore:
    """An independent copy of a controller between two events."""
    copy = ControllerCore(controller.controller_id, controller.config, controller.selection)
    copy.active_controller, copy._claimed = controller.active_controller, controller._claimed
    if controller._context is not None:
        context, cluster = controller._context, controller._context.cluster.copy()
        copy._context = Context(
            cluster, context.config, context.selection, context.controller_id, context.controller_epoch
        )
        copy._context.term = deepcopy(context.term)
        assert not context.term.delayed_replies, "no request of these simulations has a delayed reply"
    return copy


def identity(controller: ControllerCore) -> tuple[Any, ...]:
    """All fields that decide a controller's next steps between two events, except those of ``core_state``."""
    if controller._context is None:
        return controller.active_controller, controller._claimed
    context = controller._context
    p, topics = context.cluster.partitions, context.cluster.topics
    slots = p.slots_of(np.array([0]))
    return (
        controller.active_controller, controller._claimed, context.controller_id,
        context.term.unclean_by_default, frozenset(context.term.legacy_reassignments.items()),
        frozenset(context.term.offline_log_dirs), frozenset(context.term.unsaved_topics),
        frozenset(context.term.unreadable_deletions), p.replica[slots].tobytes(), p.replica_flags[slots].tobytes(),
        p.reassigning.tobytes(), context.cluster.brokers.broker_epoch.tobytes(), topics.deleting.tobytes(),
        topics.deletion_started.tobytes(), topics.deletion_halted.tobytes(),
    )  # fmt: skip


def core_state(controller: ControllerCore, ask: tuple[Any, ...] | None) -> CoreState:
    """The state of a controller that waits for the call ``ask``."""
    if controller._context is None:
        return CoreState(ask, False, -1)
    cluster = controller.cluster
    brokers, view = cluster.brokers, cluster.view(0)
    known = np.where(brokers.registered != 0, brokers.broker_epoch, 0)
    shutting_down = brokers.ids_of(np.flatnonzero(brokers.shutting_down))
    state = (view.leader, view.leader_epoch, view.isr, int(view.recovery), view.controller_epoch, view.partition_epoch)
    return CoreState(
        ask, True, controller.controller_epoch, tuple(known.tolist()), tuple(shutting_down), state,
        (view.state, tuple(zip(view.replicas, view.replica_states, strict=True))),
        (view.replicas, view.adding_replicas, view.removing_replicas),
    )  # fmt: skip


def _run(controller: ControllerCore, message: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]]:
    """One step of the core, and all following steps whose results never change. Returns its next call and its
    effects."""
    cause, done = _core_input(message, controller), list[tuple[Any, ...]]()
    while True:
        requested_effects = controller.step(cause)
        done += [_act(effect, controller) for effect in requested_effects if not isinstance(effect, effects.Ask)]
        if not controller.busy:
            return None, tuple(done)
        ask = requested_effects[-1]
        if type(ask) not in UNCHANGING:
            return _described_call(ask, controller), tuple(done)
        cause = events.Done(UNCHANGING[type(ask)](ask))


def _act(effect: effects.Effect, controller: ControllerCore) -> tuple[Any, ...]:
    match effect:
        case effects.OpenChannels(brokers=brokers):
            return "open", tuple(controller.cluster.brokers.ids_of(brokers))
        case effects.CloseChannels(brokers=brokers):
            return "close", tuple(controller.cluster.brokers.ids_of(brokers))
        case effects.Reply(token=token, response=AlterPartitionResponse(error=error, codes=codes, states=states)):
            return "reply", token, (int(error), *_response_of(codes, states, controller))
        case effects.Reply(token=token, response=ControlledShutdownResponse(error=error)):
            return "reply", token, (int(error),)
        case effects.Reply(token=token, response=ReassignmentResponse(error=error, codes=codes)):
            return "reply", token, (int(error), *codes.tolist())
        case effects.Resigned(reason=reason, release=release):
            return "resigned", reason, release
    raise NotImplementedError(f"{type(effect).__name__} in the small space")


def _response_of(codes: Any, states: StoredStates | None, controller: ControllerCore) -> tuple[Any, ...]:
    if states is None:
        return ()
    isr = tuple(controller.cluster.brokers.ids_of(states.isr[0])) if states.exists[0] else ()
    return int(codes[0]), int(states.leader_epoch[0]), int(states.partition_epoch[0]), isr


def _described_call(ask: effects.Effect, controller: ControllerCore) -> tuple[Any, ...]:
    match ask:
        case effects.Send(requests=requests):
            ids, cluster = controller.cluster.brokers, controller.cluster
            epochs = dict(zip(ids.ids.tolist(), ids.broker_epoch.tolist(), strict=True))
            described = describe_requests(cluster, requests)
            return "send", tuple(
                (request["broker"], _message(request, epochs[request["broker"]])) for request in described
            )
        case store_requests.WriteStates(change=change):
            assert len(change) == 1, "there is one partition"
            leader, *isr = controller.cluster.brokers.ids_of([*change.leader, *change.isr[0]])
            return (
                "write", leader, int(change.leader_epoch[0]), tuple(isr), int(change.recovery[0]),
                int(change.expected[0]), change.controller_epoch,
            )  # fmt: skip
        case store_requests.WriteAssignments(table=table):
            lists = table.replicas, table.adding, table.removing
            return "assign", *(tuple(replicas.values.tolist()) for replicas in lists)
        case store_requests.Claim(takeover=takeover):
            return "claim", takeover
        case (
            store_requests.ReadController()
            | store_requests.Prepare()
            | store_requests.Load()
            | store_requests.ReadBrokers()
            | store_requests.ReadStates()
        ):
            return (type(ask).__name__,)
    raise NotImplementedError(f"{type(ask).__name__} in the small space")


def _message(request: dict[str, Any], broker_epoch: int) -> Message:
    epochs, partition = (request["controller_epoch"], broker_epoch), request["partitions"].get(f"{TOPIC}-0")
    match request["api"]:
        case Api.UPDATE_METADATA:
            return "U", *epochs, tuple(request["live_brokers"])
        case Api.LEADER_AND_ISR:
            assert partition is not None
            return (
                "L",
                *epochs,
                partition["leader"],
                partition["leader_epoch"],
                tuple(partition["isr"]),
                partition["partition_epoch"],
                tuple(partition["replicas"]),
            )
    assert partition is not None
    return "S", *epochs, partition["leader_epoch"], partition["delete_partition"]


def _core_input(message: tuple[Any, ...], controller: ControllerCore) -> events.Event | events.EffectResult:
    """The real event or result."""
    match message:
        case ("failed", "fenced"):
            return events.Failed(ControllerFenced("another controller has claimed the role"))
        case ("failed", _):
            return events.Failed(StoreError("the session is over"))
        case ("done", "ReadController", owner, ours):
            return events.Done(store_requests.Holder(owner, ours))
        case ("done", "ReadBrokers", registered):
            return events.Done(tuple(_registrations(registered)))
        case ("done", "Load", stored):
            return events.Done(cluster_of(stored))
        case ("done", "ReadStates", stored):
            return events.Done(_read(stored))
        case ("done", "write", code, version):
            return events.Done(WriteResult(np.array([code], np.uint8), np.array([version], np.int32)))
        case ("done", "assign"):
            return events.Done((WriteCode.OK,))
        case ("move", *replicas):
            targets = Targets.of([((TOPIC, 0), replicas or None)])
            return events.ReassignmentRequested(targets, 20)
        case ("done", _, *value):
            return events.Done(value[0] if value else None)
        case ("alter", broker, QueuedProposal() as request):
            return events.AlterPartitionRequested(
                broker, request.broker_epoch, 3, RequestedPartitions.of([(TOPIC_ID, 0)]),
                np.array([request.leader_epoch], np.int32), np.array([request.partition_epoch], np.int32),
                np.zeros(1, np.uint8), Ragged.of([list(request.isr)]), broker, np.full(len(request.isr), -1, np.int64),
            )  # fmt: skip
        case ("responded", ErrorCode() as error, broker, controller_epoch):
            return events.LeaderAndIsrResponseReceived(broker, error, (), controller_epoch, np.zeros(1, np.int32))
        case ("leave", broker, broker_epoch):
            return events.ControlledShutdownRequested(broker, broker_epoch, 10 + broker)
        case (("Reelect" | "ControllerChanged" | "BrokersChanged" | "SessionExpired") as name,):
            event: events.Event = getattr(events, name)()
            return event
    raise NotImplementedError(str(message))


def _registrations(registered: tuple[int, ...]) -> Iterator[Registration]:
    return (Registration(item, epoch) for item, epoch in zip(BROKERS, registered, strict=True) if epoch)


def _read(stored: Stored) -> StoredStates:
    def column(value: int, dtype: type[Any] = np.int32) -> Any:
        return np.array([value], dtype)

    isr = Ragged.of([[member - 1 for member in stored.isr]])
    leader = stored.leader - 1 if stored.leader > 0 else stored.leader
    return StoredStates(
        rows=column(0), exists=column(1, np.bool_), leader=column(leader), leader_epoch=column(stored.leader_epoch),
        controller_epoch=column(stored.state_epoch), partition_epoch=column(stored.version),
        recovery=column(stored.recovery, np.uint8), isr=isr,
    )  # fmt: skip


def cluster_of(stored: Stored) -> ClusterState:
    """The cluster that a controller loads. Brokers 1 to 3 have indexes 0 to 2."""
    cluster, read = ClusterState(), _read(stored)
    cluster.brokers.index_of(BROKERS)
    names = ("leader", "leader_epoch", "controller_epoch", "partition_epoch", "recovery")
    values = {name: getattr(read, name) for name in names}
    replicas = Ragged.of([[member - 1 for member in stored.assigned]])
    cluster.add_topics([TOPIC], np.array([1], np.int32), replicas, read.isr, values, [TOPIC_ID])
    for flag, flagged in ((ReplicaFlag.ADDING, stored.adding), (ReplicaFlag.REMOVING, stored.removing)):
        cluster.flag_replicas(0, np.array([item - 1 for item in flagged], np.int32), flag)
    cluster.brokers.register(tuple(_registrations(stored.registered)))
    return cluster


#: Codes of writes, for the storage of the search.
OK, STALE = int(WriteCode.OK), int(WriteCode.STALE)
