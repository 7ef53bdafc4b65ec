"""Transports connected to fake brokers, with the cluster that their requests describe."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kframe.embedded.describe import Request
from kframe.plugin.cluster import ClusterState, Registration
from kframe.plugin.transport import Event
from kframe.testing.clusters import cluster_of, healthy, requests_of
from kframe.testing.waiting import until
from kframe_kafka_wire.requests.channel import Channel
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import APIS, CONTROLLER_ID, FakeBroker, closed, respond, settings


class FakeCluster:
    """Partitions ``t-0`` and ``u-0`` with the only replica on broker 1. ``t-1`` is on brokers 1 and 2."""

    def __init__(self, transport: WireTransport, brokers: Mapping[int, FakeBroker]) -> None:
        """Open the transport. ``brokers`` are by id from 1 on, and not connected yet."""
        self.transport = transport
        self.brokers = dict(brokers)
        self.state = cluster_of({"t": [healthy(1), healthy(1, 2)], "u": [healthy(1)]}, registered=tuple(brokers))
        self.events: list[Event] = []
        """The notifications of the transport."""
        self.has_role = True
        self.role_checks = 0
        transport.open(self.events.append, self._may_act)

    def _may_act(self) -> bool:
        self.role_checks += 1
        return self.has_role

    @property
    def broker(self) -> FakeBroker:
        """Broker 1."""
        return self.brokers[1]

    @property
    def received(self) -> list[str]:
        """Names of the requests that broker 1 has received."""
        return [APIS[request.api_key] for request in self.broker.requests]

    def registration(self, broker_id: int = 1, broker_epoch: int = 7) -> Registration:
        """A registration of a broker with the port of its fake."""
        return self.brokers[broker_id].registration(broker_id, broker_epoch)

    def register(self, *registrations: Registration) -> tuple[int, ...]:
        """Add registrations to the cluster, by default those of all brokers. Return the broker indexes."""
        registrations = registrations or tuple(self.registration(broker_id) for broker_id in self.brokers)
        return tuple(self.state.brokers.register(registrations).tolist())

    def connect(self, *registrations: Registration) -> None:
        """Register brokers, and connect the transport to them."""
        self.transport.connect(self.state, self.register(*registrations))

    def send(self, *partitions: str, controller_epoch: int = 1) -> None:
        """LeaderAndIsr and UpdateMetadata of these partitions to broker 1."""
        leader_and_isr = {1: partitions} if partitions else None
        self._send(leader_and_isr=leader_and_isr, metadata=([1], partitions), controller_epoch=controller_epoch)

    def send_metadata(self, brokers: Iterable[int] = (1,), controller_epoch: int = 1) -> None:
        """UpdateMetadata of ``t-0`` to these brokers."""
        self._send(metadata=(list(brokers), ["t-0"]), controller_epoch=controller_epoch)

    def stop(self, **deletions: bool) -> None:
        """StopReplica of partition 0 of these topics to broker 1, with or without deletion."""
        self._send(stop_replica={1: {f"{topic}-0": (0, delete) for topic, delete in deletions.items()}})

    def _send(self, **requests: object) -> None:
        self.transport.send(self.state, requests_of(self.state, **requests))  # type: ignore[arg-type]

    def await_idle(self) -> None:
        """Wait until every request has a response."""
        assert until(lambda: all(channel.idle for channel in self.transport.channels.values()))


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
