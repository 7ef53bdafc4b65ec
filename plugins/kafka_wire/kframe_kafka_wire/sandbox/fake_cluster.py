"""The brokers of ``kframe plugins check`` for the transport."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import replace

from kframe.embedded.describe import Request
from kframe.plugin.cluster import ClusterState
from kframe.testing.waiting import until
from kframe_kafka_wire.requests.channel import Channel
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import CONTROLLER_ID, FakeBroker, closed, respond, settings


def open_fake_brokers(url: str, cluster: ClusterState) -> FakeBrokers:
    """The brokers of ``kframe plugins check`` for the transport, on loopback ports."""
    return FakeBrokers(WireTransport(settings()), cluster)


class FakeBrokers:
    """Implements ``kframe.testing.transport_sandbox.TransportSandbox``. Brokers respond until a test changes that."""

    def __init__(self, transport: WireTransport, cluster: ClusterState) -> None:
        """Start a broker for each registration of ``cluster``, and change its endpoint to the broker's port."""
        self.transport = transport
        self.brokers: dict[int, FakeBroker] = {}
        self._held: dict[int, Channel | None] = {}
        """The channels with a request to a silent broker."""
        self._released: dict[int, threading.Event] = {}
        for index, known in enumerate(cluster.brokers.registrations):
            if known is not None:
                self.brokers[known.broker_id] = fake = FakeBroker()
                (endpoint,) = known.endpoints
                cluster.brokers.registrations[index] = replace(known, endpoints=(replace(endpoint, port=fake.port),))

    def close(self) -> None:
        """Close all brokers."""
        for released in self._released.values():
            released.set()
        for broker in self.brokers.values():
            broker.close()

    def settle(self) -> None:
        """Return when every channel is idle, or waits for a silent broker or for the role."""
        assert until(lambda: all(self._settled(*channel) for channel in self.transport.channels.items()))

    def received(self) -> Sequence[Request]:
        """The requests since the last call, without the controller among the live brokers."""
        traces = []
        for broker_id, broker in self.brokers.items():
            came, broker.requests = broker.requests, []
            traces += [{"broker": broker_id, **request.trace} for request in came]
        for trace in traces:
            if "live_brokers" in trace:
                assert CONTROLLER_ID in trace["live_brokers"]
                trace["live_brokers"].remove(CONTROLLER_ID)
        return traces

    def silence(self, broker_id: int) -> None:
        """From now on a broker receives requests without responding."""
        released = self._released[broker_id] = threading.Event()

        def hold(connection: socket.socket, reply: bytes) -> None:
            self._held[broker_id] = self.transport.channels.get(broker_id)
            released.wait()
            respond(connection, reply)

        self.brokers[broker_id].default_action = hold

    def respond(self, broker_id: int) -> None:
        """A broker responds again, also to the requests that it has received."""
        self.brokers[broker_id].default_action = respond
        self._held.pop(broker_id, None)
        self._released.pop(broker_id).set()

    def lose_next(self, broker_id: int) -> None:
        """Break the connection after the next request."""
        self.brokers[broker_id].script.append(closed)

    def _settled(self, broker_id: int, channel: Channel) -> bool:
        return channel.idle or channel.waits_for_role or self._held.get(broker_id) is channel
