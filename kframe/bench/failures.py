"""What befalls brokers and controllers: each function goes up to the event and returns it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from kframe.bench.clusters import RACKS
from kframe.bench.life import Life
from kframe.bench.work import Timed


def controller_failover(life: Life, _partitions: int) -> Timed:
    """A controller takes over."""
    life.stand()
    return life.rest


def broker_failure(life: Life, _partitions: int) -> Timed:
    """The broker in the middle fails."""
    return _failing(life, lambda brokers: [brokers // 2])


def several_brokers_failure(life: Life, _partitions: int) -> Timed:
    """A tenth of the brokers fails at once, two at least: partitions that had nobody else go offline."""
    return _failing(life, lambda brokers: range(brokers // 2, brokers // 2 + max(2, brokers // 10)))


def rack_failure(life: Life, _partitions: int) -> Timed:
    """All brokers of a rack fail at once."""
    return _failing(life, lambda brokers: range(0, brokers, RACKS))


def all_led(life: Life, partitions: int) -> None:
    """Every partition has a live leader, and the controller knows who lives."""
    _expect_known(life)
    life.expect_led(partitions)


def all_led_that_can_be(life: Life, partitions: int) -> None:
    """Every partition with a live replica has a live leader; before, all replicas were in sync."""
    _expect_known(life)
    p = life.cluster.partitions
    replicas = p.lists("replica", np.arange(partitions))
    life.expect_led(int(np.count_nonzero(replicas.any(life.cluster.brokers.live[replicas.values] != 0))))


def _expect_known(life: Life) -> None:
    registered = [one.broker_id for one in life.ensemble.registrations()]
    known = life.cluster.brokers.ids[life.cluster.brokers.registered != 0]
    life.expect(sorted(known.tolist()) == registered, f"{len(registered)} registered brokers")


def _failing(life: Life, which: Callable[[int], Iterable[int]]) -> Timed:
    """``which`` chooses broker ids out of so many."""
    life.stand()
    life.rest()
    life.ensemble.unregister_brokers(which(len(life.cluster.brokers)))
    return life.rest
