"""The event queue: first in first out, preemption, and queue time."""

from __future__ import annotations

import pytest

from kframe.embedded import VirtualClock
from kframe.model.events import (
    BrokerModified,
    BrokersChanged,
    ControllerChanged,
    ElectionRequested,
    ElectionType,
    Event,
    RebalanceLeaders,
    Reelect,
    SessionExpired,
)
from kframe.runtime.queue import EventQueue
from kframe.runtime.samples import SAMPLES_MAX

FIRST, SECOND, THIRD = (BrokerModified(broker_id) for broker_id in (1, 2, 3))


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(now_ms=1_000.0)


@pytest.fixture
def queue(clock: VirtualClock) -> EventQueue:
    return EventQueue(clock)


def drain(queue: EventQueue) -> list[Event]:
    events = []
    while (event := queue.take()) is not None:
        events.append(event)
    return events


def test_first_in_first_out(queue: EventQueue) -> None:
    """controller 1: enqueue, first in first out."""
    for event in (SECOND, FIRST, THIRD):
        queue.put(event)
    assert len(queue) == 3
    assert drain(queue) == [SECOND, FIRST, THIRD]
    assert len(queue) == 0


def test_waiting_returns_queued_events_without_removing_them(queue: EventQueue) -> None:
    queue.put(FIRST)
    queue.put(SECOND)
    assert queue.waiting() == (FIRST, SECOND)
    assert queue.take() is FIRST
    assert queue.waiting() == (SECOND,)


def test_clear_and_put_drains_queue_and_adds_event(queue: EventQueue) -> None:
    """controller 1: clearAndPut."""
    for event in (FIRST, SECOND):
        queue.put(event)
    assert queue.clear_and_put(SessionExpired()) == [FIRST, SECOND]
    queue.put(THIRD)
    assert drain(queue) == [SessionExpired(), THIRD]


@pytest.mark.parametrize(
    "event", [Reelect(), ControllerChanged(), BrokersChanged()], ids=lambda event: type(event).__name__
)
def test_events_without_data_are_queued_once(queue: EventQueue, event: Event) -> None:
    for item in (event, FIRST, event, event):
        queue.put(item)
    assert drain(queue) == [event, FIRST]
    queue.put(event)
    assert drain(queue) == [event]


@pytest.mark.parametrize(
    "event",
    [BrokerModified(1), RebalanceLeaders(), ElectionRequested(ElectionType.PREFERRED, None), SessionExpired()],
    ids=lambda event: type(event).__name__,
)
def test_events_with_data_are_queued_repeatedly(queue: EventQueue, event: Event) -> None:
    queue.put(event)
    queue.put(event)
    assert drain(queue) == [event, event]


def test_queue_time_is_from_put_to_take(queue: EventQueue, clock: VirtualClock) -> None:
    """controller 1: queue time."""
    assert queue.times.quantile(0.5) == 0.0
    for waited in (10.0, 20.0, 30.0, 40.0):
        queue.put(FIRST)
        clock.advance(waited / 1_000.0)
        queue.take()
    quantiles = [queue.times.quantile(quantile) for quantile in (0.0, 0.25, 0.5, 0.75, 0.99, 1.0)]
    assert quantiles == pytest.approx([10.0, 20.0, 30.0, 40.0, 40.0, 40.0])


@pytest.mark.parametrize("idle_s, remembered", [(299.999, 50.0), (300.0, 0.0), (1_000.0, 0.0)])
def test_queue_times_are_forgotten_after_five_idle_minutes(
    queue: EventQueue, clock: VirtualClock, idle_s: float, remembered: float
) -> None:
    """controller 1: queue time histogram is cleared."""
    queue.put(FIRST)
    clock.advance(0.05)
    queue.take()
    clock.advance(idle_s)
    queue.put(SECOND)
    queue.take()
    assert queue.times.quantile(1.0) == pytest.approx(remembered)


def test_only_the_last_queue_times_are_retained(queue: EventQueue, clock: VirtualClock) -> None:
    queue.put(FIRST)
    clock.advance(1.0)
    queue.take()
    for _ in range(SAMPLES_MAX):
        queue.put(FIRST)
        queue.take()
    assert queue.times.quantile(1.0) == 0.0
