"""The transport between a controller and broker models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from kframe.embedded.brokers import REQUEST_TIMEOUT_MS, Delivery, EmbeddedBrokers, FifoChannel
from kframe.embedded.clock import VirtualClock
from kframe.embedded.describe import describe_requests
from kframe.errors import ErrorCode
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.events import Event
from kframe.model.requests import ControlRequests
from kframe.model.topic_partitions import topic_partition
from kframe_simulator.broker.broker import Broker
from kframe_simulator.broker.config import BrokerConfig
from kframe_simulator.broker.messages import ControlResponse
from kframe_simulator.replication.control_requests import ControlMessage, ControlRequest, control_requests


@dataclass(frozen=True, slots=True, eq=False)
class _ModelDelivery(Delivery):
    control: ControlRequest
    """The same request for the broker model."""


class ReplicatingBrokers(EmbeddedBrokers):
    """Implements ``ports.Transport``: models handle every request at once by Kafka's rules.

    A response in the scenario has priority: the model does not receive a request, or a partition, that has an error
    there. A broker that is silent for all three requests is paused. Callers deliver the messages that models send:
    ``kframe.scenario`` and the simulator.
    """

    def __init__(
        self, clock: VirtualClock, config: BrokerConfig | None = None, request_timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> None:
        super().__init__(clock, request_timeout_ms)
        self._config = config
        self.models: dict[int, Broker] = {}
        """Every broker that was ever registered, by id."""
        self._unhandled: dict[int, Delivery] = {}
        """The requests to paused brokers, which handle them later."""

    def follow(self, registrations: Iterable[Registration]) -> None:
        """Start and stop models with their registrations. A broker with a new broker epoch was restarted."""
        now, present = self._clock.now_ms(), {registration.broker_id: registration for registration in registrations}
        for broker_id, model in self.models.items():
            registered = present.get(broker_id)
            if model.running and (registered is None or registered.broker_epoch != model.broker_epoch):
                model.crash(now)
        for broker_id, registered in present.items():
            model = self.models.setdefault(broker_id, Broker(broker_id, self._config))
            if not model.running:
                model.start(registered.broker_epoch, now)

    def awake(self) -> list[Broker]:
        """The running models, by id. Paused models are left out."""
        return [
            self.models[broker_id]
            for broker_id in sorted(self.models)
            if self.models[broker_id].running and not self.mute(broker_id)
        ]

    def mute(self, broker_id: int) -> bool:
        """Whether a scenario has paused a broker."""
        return self._responses.mute(broker_id)

    def fail_log_dir(self, broker_id: int, partitions: Iterable[str]) -> None:
        """Fail the logs of these partitions on a broker. It then returns KAFKA_STORAGE_ERROR for them."""
        names = tuple(partitions)
        super().fail_log_dir(broker_id, names)
        for name in names:
            self.models[broker_id].fail_log(topic_partition(name), self._clock.now_ms())

    def _deliveries(self, cluster: ClusterState, requests: ControlRequests) -> Iterator[Delivery]:
        pairs = zip(describe_requests(cluster, requests), control_requests(cluster, requests), strict=True)
        return (
            _ModelDelivery(shown, control.rows, requests.batch, control.broker_epoch, control)
            for shown, control in pairs
        )

    def _response(self, delivery: Delivery) -> Event | None:
        assert isinstance(delivery, _ModelDelivery)
        control = delivery.control
        if self.mute(control.broker_id):
            self._unhandled[control.broker_id] = delivery
            return None
        model, (top, named) = self.models.get(control.broker_id), self._responses.errors(delivery.request)
        if top is not ErrorCode.NONE or model is None:
            return control.event(ControlResponse(top))
        configured = {topic_partition(name): error for name, error in named.items()}
        response = model.handle(_without(control.message, configured), self._clock.now_ms())
        if not isinstance(response, ControlResponse):
            return None
        return control.event(ControlResponse(response.error, {**response.errors, **configured}))

    def _respond(self, channel: FifoChannel) -> None:
        delivery = channel.in_flight
        if delivery is not None and self._unhandled.pop(delivery.request["broker"], None) is delivery:
            channel.response = self._response(delivery)
        super()._respond(channel)


def _without(request: ControlMessage, keys: Iterable[tuple[str, int]]) -> ControlMessage:
    """A request without some of its partitions."""
    remaining = {key: item for key, item in request.partitions.items() if key not in set(keys)}
    if len(remaining) == len(request.partitions):
        return request
    return msgspec.structs.replace(request, partitions=remaining)
