"""A transport that is connected to fake brokers, with the cluster that its requests describe."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox.fake_broker import APIS, Action, FakeBroker, respond

from kframe.plugin.cluster import Registration
from kframe.plugin.transport import Event
from kframe.testing.clusters import cluster_of, healthy, requests_of
from kframe.testing.waiting import until


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


def send_frame(length: int, content: bytes) -> Action:
    """An action that sends these bytes."""
    return lambda connection, _reply: connection.sendall(struct.pack(">i", length) + content)


def delay_next_response(broker: FakeBroker) -> threading.Event:
    """Delay the next response of a broker until the event is set."""
    release = threading.Event()

    def hold(connection: socket.socket, reply: bytes) -> None:
        release.wait(30)
        respond(connection, reply)

    broker.script.append(hold)
    return release


def settings_response(values: Mapping[str, str], code: int = 0) -> Mapping[str, Any]:
    """The response to DescribeConfigs with these static settings of a broker. A ``code`` other than 0 refuses it."""
    source = {"config_source": 4, "source": 4}
    configs = [
        {"name": key, "value": value, **source, "synonyms": [{"name": key, "value": value, **source}]}
        for key, value in values.items()
    ]
    return {"results": [{"error_code": code, "resource_type": 4, "resource_name": "1", "configs": configs}]}
