"""Drive a controller on an in-memory store, one event or operation at a time, and record all its effects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest

from kframe.core.context import Context, Operation
from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.core.state_machines.replica_state_machine import PartitionReplicas
from kframe.embedded import Api, MemoryEnsemble, MemoryStore, RecordingTransport, Request, VirtualClock
from kframe.embedded.describe import describe_requests
from kframe.embedded.topics import topic_path
from kframe.errors import KframeError, StoreError
from kframe.model.arrays import Int32, Ragged
from kframe.model.brokers import Registration
from kframe.model.changes import StateChange
from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.config import ControllerConfig
from kframe.model.effects import Effect, Send
from kframe.model.events import (
    AlterPartitionRequested,
    BrokersChanged,
    EffectResult,
    Event,
    Failed,
    InspectionRequested,
    Reelect,
)
from kframe.model.ids import NO_STATE
from kframe.model.tables import RequestedPartitions, TopicTable
from kframe.ports.store_requests import Claim, CreateTopics, Load, WriteStates
from kframe.ports.transport import Transport
from kframe.runtime.event_logs import EventLogs
from kframe.runtime.perform import Performer
from kframe.testing.clusters import PartitionSpec, cluster_of, registration, rows_of, small_table
from kframe.testing.pipelined_write import PipelinedWrite

Result = TypeVar("Result")
EffectOf = TypeVar("EffectOf", bound=Effect)

CONTROLLER_ID = 1000


@dataclass(frozen=True, slots=True)
class ExternalAction:
    """An external change that happens just before the next effect of a kind is performed."""

    kind: type[Effect]
    act: Callable[[], None]


class Driver:
    """Performs the effects of a controller on an in-memory store, and records effects and requests in order."""

    def __init__(
        self,
        cluster: ClusterState,
        config: Mapping[str, object] | None = None,
        selection: Selection | None = None,
        controller_epoch: int = 1,
        transport: Transport | None = None,
    ) -> None:
        """Create an inactive controller of ``cluster`` that will claim ``controller_epoch``. Without a ``transport``,
        requests are recorded and get no response."""
        self.ensemble = MemoryEnsemble.from_cluster(cluster, controller_epoch=controller_epoch - 1)
        self.store = self.ensemble.connect()
        self.events: list[Event] = []
        """Notifications of the store. A test handles them explicitly."""
        self.store.open(self.events.append)
        self.controller = ControllerCore(CONTROLLER_ID, ControllerConfig(config), selection or Selection({}))
        self.effects: list[Effect] = []
        self.batches: list[list[Request]] = []
        """The requests of each Send, recorded when it was performed."""
        self.replies: dict[int, Any] = {}
        self._actions: list[ExternalAction] = []
        self._failures: list[tuple[type[Effect], KframeError]] = []
        self._other_session = self.ensemble.records.open_session(lambda _event: None)
        self.clock = VirtualClock()
        self._logs = EventLogs(self.controller, self.clock)
        self._performer = Performer(
            self.controller, self.store, transport or RecordingTransport(), self.clock, self._reply, self.events.append
        )

    # -- actions

    def adopt(self) -> Context:
        """Make the controller active without a failover. Return its context."""
        controller_epoch = self.store.perform(Claim(CONTROLLER_ID))
        assert controller_epoch is not None
        self._settle(self.controller.adopt(self.store.perform(Load()), controller_epoch))
        return self.context

    def handle(self, event: Event) -> None:
        """Handle one event completely."""
        self._logs.begin()
        self._settle(self.controller.step(event))
        self._logs.finish(event, 0.0)

    def ask(self, event: Any) -> Any:
        """Handle a request event and the events that it causes. Return the reply to its token."""
        self.handle(event)
        if event.token not in self.replies:
            self.follow()
        return self.replies[event.token]

    def follow(self) -> None:
        """Handle notifications until none is left. The controller loop does the same."""
        while self.events:
            self.handle(self.events.pop(0))

    def run(self, operation: Operation[Result]) -> Result:
        """Run one operation outside of any event to its end."""
        answer: EffectResult | None = None
        self._logs.begin()
        while True:
            try:
                if isinstance(answer, Failed):
                    effect = operation.throw(answer.error)
                else:
                    effect = operation.send(answer)  # type: ignore[arg-type]
            except StopIteration as finished:
                self._logs.stepped()
                self._logs.finish(InspectionRequested(), 0.0)
                result: Result = finished.value
                return result
            answer = self._perform([effect])

    def before(self, kind: type[Effect], act: Callable[[], object]) -> None:
        """Call ``act`` just before the next effect of this kind. Several calls for one kind apply to one effect
        each."""
        self._actions.append(ExternalAction(kind, lambda: (act(), None)[1]))

    def fail(self, kind: type[Effect], error: KframeError) -> None:
        """Make the next effect of this kind fail without performing it."""
        self._failures.append((kind, error))

    def register_brokers(self, *broker_ids: int) -> None:
        """Register brokers. A later ``BrokersChanged`` finds them."""
        self.ensemble.register_brokers([registration(broker_id) for broker_id in broker_ids])

    def start_brokers(self, *broker_ids: int) -> None:
        """Register brokers, and send the event to the controller."""
        self.register_brokers(*broker_ids)
        self.handle(BrokersChanged())

    def fail_brokers(self, *broker_ids: int) -> None:
        """End the registrations of brokers, and send the event to the controller."""
        self.ensemble.unregister_brokers(broker_ids)
        self.handle(BrokersChanged())

    def bounce_brokers(self, *broker_ids: int) -> None:
        """Register brokers again before any watch reports the end of the old registrations."""
        self.ensemble.bounce_brokers(broker_ids)
        self.handle(BrokersChanged())

    def connect(self) -> MemoryStore:
        """Return the store of another controller, which ignores events."""
        other = self.ensemble.connect()
        other.open(lambda _event: None)
        return other

    def create_topics(self, topics: Mapping[str, Sequence[tuple[int, ...]]]) -> None:
        """Create topics from outside, as an admin tool does."""
        self.connect().perform(CreateTopics(small_table(topics), ({},) * len(topics)))

    def write_topics(self, table: TopicTable) -> None:
        """Write the assignments of topics from outside, as an admin tool does."""
        self.ensemble.write_topics(table)

    def forget_topic_id(self, name: str) -> None:
        """Store a topic again from outside, without its topic id."""
        self.ensemble.topics.forget_id(name)
        self.ensemble.records.set(self._other_session, topic_path(name), b"")

    # -- observations

    @property
    def context(self) -> Context:
        return self.controller.context

    @property
    def cluster(self) -> ClusterState:
        return self.controller.cluster

    def rows(self, *names: str) -> Int32:
        return rows_of(self.cluster, names)

    def replicas(self, *names: str) -> PartitionReplicas:
        """Parse replicas written ``t-0@1``: partition and broker id."""
        rows, positions = [], []
        for name in names:
            partition, _, broker_id = name.partition("@")
            row = int(rows_of(self.cluster, [partition])[0])
            assigned = self.cluster.brokers.ids_of(self.cluster.partitions.replicas_of(row))
            rows.append(row)
            positions.append(assigned.index(int(broker_id)))
        return PartitionReplicas(np.array(rows, np.int32), np.array(positions, np.int32))

    def stored(self, name: str) -> PartitionView:
        """Return a partition as stored."""
        return _view(self.ensemble.states.cluster, name)

    def known(self, name: str) -> PartitionView:
        """Return a partition as the controller has it in memory."""
        return _view(self.cluster, name)

    def forget(self) -> None:
        """Clear the recorded effects and requests."""
        self.effects.clear()
        self.batches.clear()

    def performed(self, kind: type[EffectOf]) -> list[EffectOf]:
        """Return the effects of a kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def writes(self) -> list[StateChange]:
        return [effect.change for effect in self.performed(WriteStates)]

    def written(self) -> list[list[str]]:
        """Return the partition names of each write."""
        return [[self.cluster.name(row) for row in change.rows.tolist()] for change in self.writes()]

    def requests(self, api: Api) -> list[Request]:
        return [request for batch in self.batches for request in batch if request["api"] == api]

    def entries(self, api: Api, name: str) -> dict[int, dict[str, Any]]:
        """Return the last entry of this partition that each broker received, by broker id."""
        return {
            request["broker"]: request["partitions"][name]
            for request in self.requests(api)
            if name in request.get("partitions", {})
        }

    def recipients(self, api: Api, name: str) -> list[int]:
        """Return the broker id of each request that contains this partition."""
        return [request["broker"] for request in self.requests(api) if name in request.get("partitions", {})]

    def _reply(self, token: int, response: Any) -> None:
        assert token not in self.replies, "completed twice"
        self.replies[token] = response

    def _settle(self, effects: list[Effect]) -> None:
        before = len(self.effects)
        self._logs.stepped()
        while effects:
            answer = self._perform(effects)
            effects = self.controller.step(answer) if answer is not None else []
            self._logs.stepped()
        if self.controller.active:
            require_prefetched(self.effects[before:])

    def _perform(self, effects: list[Effect]) -> EffectResult | None:
        answer = None
        for effect in effects:
            self.effects.append(effect)
            for action in [action for action in self._actions if isinstance(effect, action.kind)][:1]:
                self._actions.remove(action)
                action.act()
            failures = [failure for failure in self._failures if isinstance(effect, failure[0])][:1]
            if failures:
                self._failures.remove(failures[0])
                return Failed(failures[0][1])
            if isinstance(effect, Send):
                self.batches.append(list(describe_requests(self.cluster, effect.requests)))
            answer = self._performer.perform([effect])
            self._logs.performed(effect, answer)
        return answer


def require_prefetched(effects: Iterable[Effect]) -> None:
    """Check that one later write contains exactly the rows that an earlier write prefetched."""
    writes = [effect for effect in effects if isinstance(effect, WriteStates)]
    for index, write in enumerate(writes):
        if write.following is not None:
            pipelined = PipelinedWrite(write.following, StoreError("not written"))
            counts = [int(pipelined.matching_rows(later.change).sum()) for later in writes[index + 1 :]]
            assert [count for count in counts if count] == [len(write.following)]


def state_of(view: PartitionView) -> tuple[int | None, tuple[int, ...], int]:
    """Return (leader, ISR, leader epoch)."""
    return view.leader, view.isr, view.leader_epoch


def standby(
    topics: Mapping[str, Iterable[PartitionSpec]],
    live: Iterable[int | Registration] = (1, 2, 3, 4, 5, 6),
    **config: object,
) -> Driver:
    """Return an inactive controller without automatic leader rebalance. Its keys have underscores for dots."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    cluster = cluster_of({name: tuple(specs) for name, specs in topics.items()}, live)
    return Driver(cluster, {"auto.leader.rebalance.enable": False, **settings})


def elected(
    topics: Mapping[str, Iterable[PartitionSpec]],
    live: Iterable[int | Registration] = (1, 2, 3, 4, 5, 6),
    **config: object,
) -> Driver:
    """Return the ``standby`` after its election and failover."""
    driver = standby(topics, live, **config)
    driver.handle(Reelect())
    return driver


def quiet(
    topics: Mapping[str, Iterable[PartitionSpec]],
    live: Iterable[int | Registration] = (1, 2, 3, 4, 5, 6),
    **config: object,
) -> Driver:
    """Return the ``standby``, active without a failover."""
    driver = standby(topics, live, **config)
    driver.adopt()
    driver.forget()
    driver.events.clear()
    return driver


def active(
    *specs: PartitionSpec,
    live: Iterable[int] = (1, 2, 3),
    config: Mapping[str, object] | None = None,
    selection: Selection | None = None,
) -> Driver:
    """Return an active controller (epoch 4) of a topic ``t`` with these partitions."""
    driver = Driver(cluster_of({"t": specs}, live), config, selection, controller_epoch=4)
    driver.adopt()
    driver.forget()
    return driver


def proposal(
    isr: tuple[int, ...],
    leader_epoch: int,
    partition_epoch: int,
    sender: int,
    broker_epoch: int,
    token: int = 1,
    epochs: tuple[int, ...] | None = None,
) -> AlterPartitionRequested:
    """Return an AlterPartition (version 1) for t-0. ``epochs`` are the broker epochs of the ISR."""
    return AlterPartitionRequested(
        sender,
        broker_epoch,
        1,
        RequestedPartitions.of([("t", 0)]),
        np.array([leader_epoch], np.int32),
        np.array([partition_epoch], np.int32),
        np.zeros(1, np.uint8),
        Ragged.of([isr]),
        token,
        None if epochs is None else np.array(epochs, np.int64),
    )


def assigned(view: PartitionView) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return (replicas, adding replicas, removing replicas)."""
    return view.replicas, view.adding_replicas, view.removing_replicas


def kinds(effects: Iterable[Effect]) -> list[str]:
    """Return the class names of effects."""
    return [type(effect).__name__ for effect in effects]


def erase(driver: Driver, name: str) -> None:
    """Erase the stored state of a partition."""
    stored = driver.ensemble.states.cluster
    row = stored.row(name.rpartition("-")[0], int(name.rpartition("-")[2]))
    stored.partitions.partition_epoch[row] = NO_STATE


def overtake(driver: Driver) -> None:
    """Write the state of t-0. The writer is a controller with a later epoch."""
    driver.ensemble.write_state("t", 0, leader=3, isr=(3,), leader_epoch=20, controller_epoch=9)


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the errors in the state-change log."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "kframe.statechange" and record.levelno == logging.ERROR
    ]


def _view(cluster: ClusterState, name: str) -> PartitionView:
    return cluster.view(int(rows_of(cluster, [name])[0]))
