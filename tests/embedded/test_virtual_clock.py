"""The virtual clock: order of timers, replacement, and timers that other timers set."""

from __future__ import annotations

import math
from functools import partial

import pytest

from kframe.embedded import VirtualClock
from kframe.errors import InputError


def test_timers_fire_by_time_then_creation_order() -> None:
    clock, fired = VirtualClock(now_ms=100.0), list[tuple[str, float]]()
    for name, delay_ms in [
        ("late", 900),
        ("first", 10),
        ("same-a", 500),
        ("same-b", 500),
        ("beyond", 1001),
        ("now", 0),
    ]:
        clock.schedule(name, delay_ms, partial(lambda name: fired.append((name, clock.now_ms())), name))
    assert list(clock.pending) == ["now", "first", "same-a", "same-b", "late", "beyond"]
    clock.advance(1)
    assert fired == [("now", 100.0), ("first", 110.0), ("same-a", 600.0), ("same-b", 600.0), ("late", 1000.0)]
    assert (clock.now_ms(), clock.pending) == (1100.0, {"beyond": 1101.0})


def test_timer_with_same_name_is_replaced_and_cancel_removes_it() -> None:
    clock, fired = VirtualClock(), list[str]()
    clock.schedule("check", 10, lambda: fired.append("first"))
    clock.schedule("check", 20, lambda: fired.append("second"))
    clock.schedule("gone", 5, lambda: fired.append("gone"))
    clock.cancel("gone")
    clock.cancel("never set")
    clock.advance(1)
    assert fired == ["second"]


def test_timer_set_by_timer_fires_in_same_advance() -> None:
    clock, fired = VirtualClock(), list[float]()

    def fire_again() -> None:
        fired.append(clock.now_ms())
        clock.schedule("again", 300, fire_again)

    clock.schedule("again", 300, fire_again)
    clock.advance(1)
    assert fired == [300.0, 600.0, 900.0]
    assert clock.pending == {"again": 1200.0}


def test_settle_runs_after_each_timer_at_its_time() -> None:
    clock, queue, handled = VirtualClock(), list[str](), list[tuple[str, float]]()

    def settle() -> None:
        while queue:
            handled.append((queue.pop(0), clock.now_ms()))

    for name, delay_ms in (("b", 200), ("a", 100)):
        clock.schedule(name, delay_ms, partial(queue.append, name))
    clock.advance(1, settle)
    assert handled == [("a", 100.0), ("b", 200.0)]


@pytest.mark.parametrize("span", [-1, -0.001, math.nan, math.inf, -math.inf])
def test_time_does_not_run_backwards_or_to_infinity(span: float) -> None:
    clock = VirtualClock()
    with pytest.raises(InputError):
        clock.advance(span)
    with pytest.raises(InputError):
        clock.schedule("never", span, lambda: None)
    assert (clock.now_ms(), clock.pending) == (0.0, {})
