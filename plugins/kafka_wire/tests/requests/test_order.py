"""Control requests to each registration are in order while brokers register, unregister and break connections."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kframe_kafka_wire.requests.channel import Channel
from kframe_kafka_wire.requests.transport import WireTransport
from kframe_kafka_wire.sandbox import fake_broker
from kframe_kafka_wire.sandbox.fake_broker import FakeBroker

from kframe.model.events import UpdateMetadataResponseReceived
from verification.kafka_wire.fake_cluster import FakeCluster
from verification.support.properties import examples

BROKERS = (1, 2, 3)


class Driver:
    """Runs the steps. Broker epochs number the registrations, controller epochs the batches."""

    def __init__(self) -> None:
        brokers = {broker_id: FakeBroker() for broker_id in BROKERS}
        self.cluster = FakeCluster(WireTransport(fake_broker.settings()), brokers)
        self.broker_epoch = self.batch = 0
        self.ended: list[Channel] = []
        self.sent: dict[int, list[int]] = defaultdict(list)
        """Batches by broker epoch."""

    def register(self, broker_id: int) -> None:
        """Register a broker, in place of an earlier registration if there is one."""
        self.unregister(broker_id)
        self.broker_epoch += 1
        self.cluster.connect(self.cluster.registration(broker_id, self.broker_epoch))

    def unregister(self, broker_id: int) -> None:
        transport = self.cluster.transport
        if broker_id in transport.channels:
            self.ended.append(transport.channels[broker_id])
        transport.disconnect(self.cluster.state, (broker_id - 1,))

    def send(self, broker_id: int) -> None:
        self.batch += 1
        receivers = [receiver for receiver in BROKERS if receiver != broker_id]
        for broker_epoch in self.registered(receivers):
            self.sent[broker_epoch].append(self.batch)
        self.cluster.send_metadata(receivers, self.batch)

    def break_connection(self, broker_id: int) -> None:
        """Break the connection after the next request, before its response."""
        self.cluster.brokers[broker_id].script.append(lambda connection, _reply: connection.close())

    def registered(self, broker_ids: Any = BROKERS) -> set[int]:
        """Broker epochs of the connected brokers."""
        epochs, channels = self.cluster.state.brokers.broker_epoch, self.cluster.transport.channels
        return {int(epochs[broker_id - 1]) for broker_id in broker_ids if broker_id in channels}

    def batches(self, attribute: str) -> dict[int, list[int]]:
        """Batches by broker epoch, in order, in ``requests`` or ``unanswered`` of the brokers."""
        batches = defaultdict(list)
        for broker in self.cluster.brokers.values():
            for request in getattr(broker, attribute):
                batches[request.body["broker_epoch"]].append(request.body["controller_epoch"])
        return batches

    def close(self) -> None:
        channels = list(self.cluster.transport.channels.values())
        self.cluster.transport.close()
        assert all(channel.join(10.0) for channel in (*self.ended, *channels))
        for broker in self.cluster.brokers.values():
            broker.close()


STEPS: st.SearchStrategy[Callable[[Driver, int], None]] = st.sampled_from(
    [Driver.register, Driver.unregister, Driver.send, Driver.send, Driver.send, Driver.break_connection]
)


@examples(0.5)
@given(st.lists(st.tuples(STEPS, st.sampled_from(BROKERS)), min_size=5, max_size=30))
def test_each_registration_gets_its_batches_in_order(steps: list[Any]) -> None:
    """Each batch is sent once, and again after each lost response. None is omitted, none follows an unregistration."""
    driver = Driver()
    try:
        for broker_id in BROKERS:
            driver.register(broker_id)
        for step, broker_id in steps:
            step(driver, broker_id)
        registered = driver.registered()
        driver.cluster.await_idle()
    finally:
        driver.close()
    received, unanswered = driver.batches("requests"), driver.batches("unanswered")
    for broker_epoch, sent in driver.sent.items():
        expected = sorted(sent + unanswered[broker_epoch])
        if broker_epoch not in registered:
            expected = expected[: len(received[broker_epoch])]
        assert received[broker_epoch] == expected
    assert all(isinstance(event, UpdateMetadataResponseReceived) for event in driver.cluster.events)
