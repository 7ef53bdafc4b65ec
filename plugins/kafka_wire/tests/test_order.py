"""Brokers that come, go, come back and break connections, while batches are sent: what each registration receives."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kframe_kafka_wire.channel import Channel
from kframe_kafka_wire.testing import fake_broker
from kframe_kafka_wire.testing.fake_broker import FakeBroker
from kframe_kafka_wire.transport import WireTransport
from kframe_zookeeper.testing.process import until

from kframe.model.events import Event, UpdateMetadataAnswered
from kframe.testing.clusters import cluster_of, healthy, registration, requests_of

BROKERS = (1, 2, 3)


def dropped(connection: Any, _reply: bytes) -> None:
    connection.close()


class World:
    """Three brokers, whose registrations are numbered by broker epoch; batches are numbered by controller epoch."""

    def __init__(self) -> None:
        self.fakes = {one: FakeBroker() for one in BROKERS}
        self.cluster = cluster_of({"t": [healthy(1)]}, registered=BROKERS)
        self.transport = WireTransport(fake_broker.settings())
        self.heard: list[Event] = []
        self.transport.open(self.heard.append, lambda: True)
        self.broker_epoch = self.batch = 0
        self.ended: list[Channel] = []
        self.due: dict[int, list[int]] = defaultdict(list)
        """Batches that each registration has been sent."""

    def come(self, broker_id: int) -> None:
        """A registration, perhaps in place of one that stands."""
        self.go(broker_id)
        self.broker_epoch += 1
        known = registration(broker_id, broker_epoch=self.broker_epoch)
        endpoint = replace(known.endpoints[0], port=self.fakes[broker_id].port)
        self.cluster.brokers.register([replace(known, endpoints=(endpoint,))])
        self.transport.connect(self.cluster, (broker_id - 1,))

    def go(self, broker_id: int) -> None:
        if broker_id in self.transport.channels:
            self.ended.append(self.transport.channels[broker_id])
        self.transport.disconnect(self.cluster, (broker_id - 1,))

    def send(self, broker_id: int) -> None:
        """To all brokers but this one."""
        self.batch += 1
        told = [one for one in BROKERS if one != broker_id]
        for one in told:
            if one in self.transport.channels:
                self.due[int(self.cluster.brokers.broker_epoch[one - 1])].append(self.batch)
        batch = requests_of(self.cluster, metadata=(told, ["t-0"]), controller_epoch=self.batch)
        self.transport.send(self.cluster, batch)

    def break_connection(self, broker_id: int) -> None:
        """After the next request has come, before it is answered."""
        self.fakes[broker_id].script.append(dropped)

    def batches(self, which: str) -> dict[int, list[int]]:
        """Those that each registration got, or left ``unanswered``, in order."""
        found = defaultdict(list)
        for fake in self.fakes.values():
            for request in getattr(fake, which):
                found[request.body.broker_epoch].append(request.body.controller_epoch)
        return found

    def close(self) -> None:
        standing = list(self.transport.channels.values())
        self.transport.close()
        assert all(one.join(10.0) for one in (*self.ended, *standing))
        for fake in self.fakes.values():
            fake.close()


STEPS = st.sampled_from([World.come, World.go, World.send, World.send, World.send, World.break_connection])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(STEPS, st.sampled_from(BROKERS)), min_size=5, max_size=30))
def test_each_registration_gets_its_batches_in_order(steps: list[Any]) -> None:
    """Each once and again for every answer that was lost, none left out, none behind the end of the registration."""
    world = World()
    try:
        for one in BROKERS:
            world.come(one)
        for step, broker_id in steps:
            step(world, broker_id)
        standing = {int(world.cluster.brokers.broker_epoch[one - 1]) for one in world.transport.channels}
        assert until(lambda: all(one.idle for one in world.transport.channels.values()))
    finally:
        world.close()
    came, lost = world.batches("requests"), world.batches("unanswered")
    for broker_epoch, due in world.due.items():
        wanted = sorted(due + lost[broker_epoch])
        if broker_epoch not in standing:
            wanted = wanted[: len(came[broker_epoch])]
        assert came[broker_epoch] == wanted
    assert all(isinstance(one, UpdateMetadataAnswered) for one in world.heard)
