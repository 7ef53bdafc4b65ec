"""A controller on a copy of a cluster: apply changes and read the resulting stored states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import CountingTransport, MemoryEnsemble, VirtualClock
from kframe.embedded.topics import MIN_INSYNC, UNCLEAN
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import (
    ControlledShutdownRequested,
    ElectionRequested,
    ElectionType,
    Event,
    ResignRequested,
    TopicPartition,
)
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.tables import TopicSettings
from kframe.model.topics import UNSET
from kframe.ports.store_requests import CreateTopics, DeleteTopics
from kframe.runtime.loop import ControllerLoop
from kframe.whatif.shadow.inputs import (
    ControllerElected,
    ControllerLost,
    Input,
    IsrsChanged,
    PartitionsAdded,
    RegistrationsChanged,
    SettingsChanged,
    TopicsCreated,
    TopicsDeleted,
)

#: The id of the replica's controller; no compared field contains it.
_ID: Final = 2**31 - 1


class ShadowController:
    """A copy of a cluster with an active controller."""

    def __init__(self, base: ClusterState, config: ControllerConfig) -> None:
        self._config = config
        self._ensemble = MemoryEnsemble.from_cluster(base)
        self._operator = self._ensemble.connect()
        self._operator.open(lambda _event: None)
        self._loop: ControllerLoop | None = None
        self._start().adopt()

    @property
    def stored(self) -> ClusterState:
        """The stored states; read only."""
        return self._ensemble.stored()

    def registered(self) -> dict[int, int]:
        """Broker epoch of each registered broker, by id."""
        return {registration.broker_id: registration.broker_epoch for registration in self._ensemble.registrations()}

    def apply(self, inputs: Sequence[Input], controlled: bool = False) -> None:
        """Apply changes in order. With ``controlled``, brokers request controlled shutdown before they leave. That
        request leaves no trace in storage."""
        for number, change in enumerate(inputs):
            if controlled and isinstance(change, RegistrationsChanged):
                self.shut_down(self._leaving_brokers(change))
            elif controlled and isinstance(change, ControllerLost):
                after = next((later for later in inputs[number:] if isinstance(later, RegistrationsChanged)), None)
                self.shut_down(() if after is None else self._leaving_brokers(after))
            self._apply(change)

    def shut_down(self, broker_ids: Iterable[int]) -> None:
        """Request the controlled shutdown of registered brokers. This needs an active controller."""
        known = self.registered()
        for broker_id in broker_ids:
            if self._loop is not None and broker_id in known:
                self._submit(partial(ControlledShutdownRequested, broker_id, NO_BROKER_EPOCH))

    def elect(self, partitions: Sequence[TopicPartition]) -> None:
        """Elect preferred leaders."""
        if self._loop is not None and partitions:
            self._submit(lambda token: ElectionRequested(ElectionType.PREFERRED, tuple(partitions), token))

    def _leaving_brokers(self, now: RegistrationsChanged) -> list[int]:
        """Brokers that are no longer registered, or registered again."""
        epochs = {registration.broker_id: registration.broker_epoch for registration in now.registrations}
        return [broker_id for broker_id, epoch in self.registered().items() if epochs.get(broker_id) != epoch]

    def _apply(self, change: Input) -> None:
        match change:
            case RegistrationsChanged():
                leaving = self._leaving_brokers(change)
                known = self.registered().keys() - set(leaving)
                self._ensemble.unregister_brokers(leaving)
                self._ensemble.register_brokers(
                    registration for registration in change.registrations if registration.broker_id not in known
                )
            case TopicsCreated(table=table, settings=settings):
                self._operator.perform(CreateTopics(table, tuple(map(_config_of, settings)), with_ids=False))
            case TopicsDeleted(names=names):
                self._operator.perform(DeleteTopics(names))
            case PartitionsAdded(table=table):
                self._ensemble.write_topics(table)
            case SettingsChanged(topic=None, config=config):
                self._ensemble.configure_brokers(config)
            case SettingsChanged(topic=str(topic), config=config):
                self._ensemble.configure_topic(topic, config)
            case IsrsChanged(isrs=isrs):
                for topic, partition, isr in isrs:
                    self._ensemble.write_state(topic, partition, isr=isr)
                self._ensemble.notify_isr_changes((topic, partition) for topic, partition, _ in isrs)
            case ControllerLost():
                self._stop_controller()
            case ControllerElected():
                self._stop_controller()
                self._start().open()
        self._settle()

    def _start(self) -> ControllerLoop:
        controller = ControllerCore(_ID, self._config, Selection({}))
        self._loop = ControllerLoop(controller, self._ensemble.connect(), CountingTransport(), VirtualClock())
        return self._loop

    def _stop_controller(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.queue.put(ResignRequested())
            loop.stop()

    def _submit(self, event: Callable[[int], Event]) -> None:
        assert self._loop is not None
        self._loop.submit(event)
        self._settle()

    def _settle(self) -> None:
        if self._loop is not None:
            self._loop.run_until_idle()


def _config_of(settings: TopicSettings) -> dict[str, str]:
    config = {}
    if settings.unclean != UNSET:
        config[UNCLEAN] = "true" if settings.unclean else "false"
    if settings.min_insync != UNSET:
        config[MIN_INSYNC] = str(settings.min_insync)
    return config
