"""Scenarios with ``brokers_replicate: true``: delivers messages between brokers, controller and storage."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Final

from kframe.core.operations import alter_partition
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_STATE
from kframe.model.topics import UNSET
from kframe.scenario.state import ScenarioState
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BROKER_ONLY, BrokerConfig
from kframe_simulator.broker.messages import Produce, ProduceResponse
from kframe_simulator.broker.outgoing import (
    AlterPartition,
    AlterPartitionResponseData,
    CloseSession,
    NotifyIsrChanges,
    NotifyLogDirFailure,
    Outgoing,
    Peer,
    WriteState,
    WriteStateResponse,
)
from kframe_simulator.replication.conversion import alter_partition_event, alter_partition_reply
from kframe_simulator.replication.transport import ReplicatingBrokers

#: The most rounds of messages at one point in time.
ROUNDS_MAX: Final = 10_000
#: The request timeout of a scenario's producers.
TIMEOUT_MS: Final = 3_000
_WAKE: Final = "replication/wake"


class Replication:
    """The network of a scenario. It has no losses and no delays."""

    def __init__(self, runner: ScenarioState, settings: Mapping[str, object], source: str) -> None:
        """``settings`` are the scenario's. Raises ConfigError with ``source`` and the key."""
        self._runner = runner
        self.controller_settings = {key: value for key, value in settings.items() if key not in BROKER_ONLY}
        """The settings without those that only brokers have."""
        self.brokers = ReplicatingBrokers(runner.clock, BrokerConfig.of(settings, source))
        """The controller's transport."""
        self._asked: list[tuple[Broker, int, Future[AlterPartitionResponseData]]] = []
        self._acked: dict[int, ProduceResponse] = {}
        self._produced = 0
        self._rounds = 0
        self._rounds_at = -1.0

    @property
    def models(self) -> Mapping[int, Broker]:
        """Every broker that was ever registered, by id."""
        return self.brokers.models

    def follow(self) -> None:
        """Apply new registrations to the models after a step. Also apply topic settings."""
        self.brokers.follow(self._runner.storage.registrations())
        topics = self._runner.storage.stored().topics
        for name in topics.names:
            index = topics.find(name)
            if index is not None:
                least = int(topics.min_insync[index])
                for model in self.brokers.models.values():
                    model.configure_topic(name, None if least == UNSET else least)

    def deliver(self) -> bool:
        """Deliver pending messages of brokers. Returns whether there were any. Raises ScenarioError if this never
        ends."""
        now = self._runner.clock.now_ms()
        busy = self._deliver_responses(now)
        for model in self.brokers.awake():
            for out in model.tick(now):
                busy = True
                self._deliver(model, out, now)
        self._count(busy, now)
        wakes_at = min((model.wakes_at for model in self.brokers.awake()), default=float("inf"))
        if wakes_at < float("inf"):
            self._runner.clock.schedule(_WAKE, max(wakes_at - now, 0.0), _nothing)
        return busy

    def _count(self, busy: bool, now: float) -> None:
        self._rounds = self._rounds + 1 if busy and now == self._rounds_at else 0
        self._rounds_at = now
        if self._rounds > ROUNDS_MAX:
            where = f"{self._runner.scenario.source}: at {now:g} ms"
            raise ScenarioError(where, "brokers and a controller that respond to each other without end", "rest")

    def _deliver_responses(self, now: float) -> bool:
        """Deliver the controller's responses to leaders."""
        done = [request for request in self._asked if request[2].done()]
        self._asked = [request for request in self._asked if not request[2].done()]
        for model, number, future in done:
            model.on_response(number, None if future.exception() else future.result(), now)
        return bool(done)

    def _deliver(self, model: Broker, out: Outgoing, now: float) -> None:
        message, storage = out.message, self._runner.storage
        if out.peer is Peer.BROKER:
            peer = self.brokers.models.get(out.peer_id)
            deaf = peer is None or self.brokers.mute(out.peer_id)
            model.on_response(out.number, None if deaf else peer.handle(message, now), now)  # type: ignore[arg-type,union-attr]
        elif isinstance(message, AlterPartition):
            self._asked.append((model, out.number, self._ask(message)))
        elif isinstance(message, WriteState):
            model.on_response(out.number, self._write(message), now)
        elif isinstance(message, NotifyIsrChanges):
            storage.notify_isr_changes(message.partitions)
        elif isinstance(message, NotifyLogDirFailure):
            storage.notify_log_dir_event(message.broker_id)
        elif isinstance(message, CloseSession):
            storage.unregister_brokers([message.broker_id])
        elif isinstance(message, ProduceResponse):
            self._acked[out.peer_id] = message

    def _ask(self, message: AlterPartition) -> Future[AlterPartitionResponseData]:
        loop = self._runner.loop

        def read(response: alter_partition.AlterPartitionResponse) -> AlterPartitionResponseData:
            return alter_partition_reply(loop.controller.cluster, message, response)

        return loop.submit(partial(alter_partition_event, message), read)

    def _write(self, message: WriteState) -> WriteStateResponse:
        """Write a state if the leader knows its current version."""
        view = self._runner.stored(message.partition)
        written = view is not None and view.partition_epoch == message.partition_epoch != NO_STATE
        if written:
            self._runner.storage.write_state(*message.partition, isr=message.isr)
            view = self._runner.stored(message.partition)
        if view is None or view.partition_epoch == NO_STATE:
            return WriteStateResponse(False, None)
        leader = -1 if view.leader is None else view.leader
        stored = WriteState(
            message.partition,
            leader,
            view.leader_epoch,
            tuple(view.isr),
            view.controller_epoch,
            int(view.recovery),
            view.partition_epoch,
        )
        return WriteStateResponse(written, stored)

    def produce(self, key: TopicPartition, records: int, acks: int) -> str:
        """Send records to the stored leader. They are sent one after the other. Returns the first error, or NONE."""
        view = self._runner.stored(key)
        leader = self.brokers.models.get(-1 if view is None or view.leader is None else view.leader)
        if leader is None:
            return ErrorCode.LEADER_NOT_AVAILABLE.name
        for _ in range(records):
            error = self._produce(leader, key, acks)
            if error is not ErrorCode.NONE:
                return error.name
        return ErrorCode.NONE.name

    def _produce(self, leader: Broker, key: TopicPartition, acks: int) -> ErrorCode:
        runner, self._produced = self._runner, self._produced + 1
        number = self._produced
        if not leader.running or self.brokers.mute(leader.broker_id):
            return ErrorCode.REQUEST_TIMED_OUT
        request = Produce(key, number, acks, TIMEOUT_MS, number)
        response = leader.handle(request, runner.clock.now_ms())
        runner.run_until_idle()
        if response is None and acks != 0 and number not in self._acked:
            runner.clock.advance(TIMEOUT_MS / 1_000, runner.run_until_idle)
        response = response or self._acked.pop(number, None)
        if acks == 0:
            return ErrorCode.NONE
        return response.error if isinstance(response, ProduceResponse) else ErrorCode.REQUEST_TIMED_OUT


def _nothing() -> None:
    """A timer that stops the clock here, so that its caller delivers messages."""
