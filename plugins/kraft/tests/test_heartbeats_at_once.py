"""Heartbeats that are answered while events of the active controller wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from kframe_kraft.log import MemoryLog

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from verification.kraft.held_controller import SECOND_NS, STEADY, WAIT_S, GatedLog, Node


def stalled(node: Node) -> threading.Event:
    """Submit an event that is decided once the returned event is set; return when its decision has begun."""
    begun, go_on = threading.Event(), threading.Event()

    def stall(context: KraftContext) -> ControllerResult[None]:
        begun.set()
        assert go_on.wait(WAIT_S)
        return ControllerResult((), None)

    node.loop.submit(stall)
    assert begun.wait(WAIT_S)
    return go_on


def test_contact_that_waits_in_the_queue_keeps_the_session(nodes: Callable[..., Node]) -> None:
    """A stalled event must not fence anybody."""
    node = nodes(MemoryLog())
    node.begin()
    go_on = stalled(node)
    node.now_ns = 2 * SECOND_NS
    for broker_id in (1, 2):
        assert node.loop.heartbeat(node.steady(broker_id)) == STEADY
    fenced = [node.loop.submit(broker_events.fence_stale_broker) for _ in range(2)]
    go_on.set()
    assert [future.result(WAIT_S) for future in fenced] == [True, False]
    registrations = node.context.metadata.brokers.registrations
    assert [registrations[broker_id].fenced for broker_id in range(3)] == [True, False, False]


def test_heartbeat_waits_for_the_records_of_its_registration(nodes: Callable[..., Node]) -> None:
    """What is not committed may never be: no reply says that a broker is not fenced before."""
    node = nodes(GatedLog())
    node.begin()
    assert node.loop.heartbeat(node.steady(1)) == STEADY
    node.log.gate.clear()
    node.submit_heartbeat(replace(node.steady(1), want_fence=True))
    unfenced = node.submit_heartbeat(node.steady(1))
    node.await_decided()
    assert node.loop.heartbeat(node.steady(1)) is None
    node.log.gate.set()
    assert unfenced.result(WAIT_S) == STEADY
    assert node.loop.heartbeat(node.steady(1)) == STEADY
    node.loop.stop()
    assert node.loop.heartbeat(node.steady(1)) is None


def test_offset_of_an_answered_heartbeat_is_known_after_another_that_waits(nodes: Callable[..., Node]) -> None:
    """A broker that stops waits for the offsets that the others have applied (Kafka 4.4 ``BrokerHeartbeatManager``)."""
    node = nodes(MemoryLog())
    node.begin()
    node.create("a").result(WAIT_S)
    assert node.submit_heartbeat(replace(node.steady(0), want_shut_down=True)).result(WAIT_S).in_controlled_shutdown
    go_on = stalled(node)
    for broker_id in (1, 2):
        assert node.loop.heartbeat(node.steady(broker_id)) == STEADY
    stops = node.submit_heartbeat(replace(node.steady(0), want_shut_down=True))
    assert node.loop.heartbeat(replace(node.steady(2), want_fence=True)) is None
    go_on.set()
    assert stops.result(WAIT_S).should_shut_down
