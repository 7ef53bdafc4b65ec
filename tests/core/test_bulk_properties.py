"""Cost of creating, reassigning and deleting many partitions in one request.

A partition must cost no call and no object; array work must be linear. The counts are exact and need no clock. Topics
and brokers stay constant while partitions grow, since each topic and broker costs calls and objects.
"""

from __future__ import annotations

import gc
import logging
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import pytest

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import CountingTransport, MemoryEnsemble, VirtualClock
from kframe.embedded.describe import deletion_responses
from kframe.errors import ErrorCode
from kframe.model.admin import NewTopic
from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.events import (
    AlterPartitionRequested,
    CreateTopicsRequested,
    DeleteTopicsRequested,
    Event,
    ReassignmentRequested,
)
from kframe.model.requests import ControlRequests
from kframe.model.tables import RequestedPartitions, Targets
from kframe.ports.store import MayAct, Notify
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import registration
from tests.fresh import in_fresh_process

TOPICS = 20
BROKERS = 12
SMALL, LARGE = 5_000, 40_000
#: Largest growth of array work and memory relative to the growth of partitions.
EXPONENT = 1.1
#: Peak bytes per partition of a request: columns before and after, lists, flags and temporaries.
BYTES_MAX = 900
STEPS = ("create", "reassign", "cancel", "repeat", "complete", "delete")


@dataclass
class Cost:
    """Cost of an action: Python and C calls, elements of all returned arrays, and the peak of small objects above the
    start."""

    calls: int = 0
    elements: int = 0
    objects: int = 0


def cost_of(act: Callable[[], object]) -> Cost:
    cost = Cost()
    gc.collect()
    before = sys.getallocatedblocks()

    def look(_frame: FrameType, event: str, value: Any) -> None:
        cost.calls += event in ("call", "c_call")
        if event == "return" and isinstance(value, np.ndarray):
            cost.elements += value.size
        if event in ("return", "c_return"):
            cost.objects = max(cost.objects, sys.getallocatedblocks() - before)

    sys.setprofile(look)
    try:
        act()
    finally:
        sys.setprofile(None)
    return cost


def traced_peak(act: Callable[[], object]) -> int:
    """Return the peak of allocated bytes above the start."""
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class Confirming(CountingTransport):
    """Every broker confirms each deletion at once."""

    def open(self, notify: Notify, may_act: MayAct) -> None:
        super().open(notify, may_act)
        self._notify = notify

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        super().send(cluster, requests)
        for response in deletion_responses(cluster, requests):
            self._notify(response)


class Simulation:
    """A controller that receives these requests in order, each of them for ``partitions`` partitions."""

    def __init__(self, partitions: int, brokers: int = BROKERS) -> None:
        cluster = ClusterState()
        cluster.brokers.register([registration(broker_id) for broker_id in range(brokers)])
        self.partitions, self.brokers = partitions, brokers
        config = ControllerConfig({"auto.leader.rebalance.enable": False})
        self.loop = ControllerLoop(
            ControllerCore(1000, config, Selection({})),
            MemoryEnsemble.from_cluster(cluster).connect(),
            Confirming(),
            VirtualClock(),
        )
        self.loop.adopt()
        self.names = tuple(f"topic-{number}" for number in range(TOPICS))

    def ask(self, *events: Callable[[int], Event]) -> list[Any]:
        futures = []
        for event in events:
            futures.append(self.loop.submit(event))
            self.loop.run_until_idle()
        return [response.result(0) for response in futures]

    def prepared(self, step: str) -> Callable[[], None]:
        """Return the action of a step. Its request objects are created before the measurement."""
        act: Callable[[], None] = getattr(self, step)()
        return act

    def create(self) -> Callable[[], None]:
        topics = tuple(NewTopic(name, self.partitions // TOPICS, 3) for name in self.names)
        return lambda: self._accepted(lambda token: CreateTopicsRequested(topics, 1000, token=token))

    def reassign(self) -> Callable[[], None]:
        p, rows = self.loop.controller.cluster.partitions, self._rows()
        replicas = p.lists("replica", rows)
        targets = Ragged(replicas.offsets, (replicas.values + self.brokers // 2) % self.brokers)
        return self._reassigned(targets, cancel=False)

    repeat = reassign

    def cancel(self) -> Callable[[], None]:
        return self._reassigned(Ragged.empty(self.partitions), cancel=True)

    def complete(self) -> Callable[[], None]:
        """Each leader reports all replicas as in sync."""
        p, rows = self.loop.controller.cluster.partitions, self._rows()
        requests = [self._proposal(leader, rows[p.leader[rows] == leader]) for leader in np.unique(p.leader[rows])]

        def act() -> None:
            assert not any(response.codes.any() for response in self.ask(*requests))
            assert not len(p.reassigning_rows())

        return act

    def delete(self) -> Callable[[], None]:
        def act() -> None:
            self._accepted(lambda token: DeleteTopicsRequested(self.names, 1000, token=token))
            assert self.loop.controller.cluster.topics.known_count == 0

        return act

    def _accepted(self, event: Callable[[int], Event]) -> None:
        (response,) = self.ask(event)
        assert set(response.codes.values()) == {ErrorCode.NONE}

    def _reassigned(self, replicas: Ragged, cancel: bool) -> Callable[[], None]:
        p, rows = self.loop.controller.cluster.partitions, self._rows()
        targets = Targets(self.names, p.topic[rows], p.partition[rows], replicas, np.full(len(rows), cancel))

        def act() -> None:
            (response,) = self.ask(lambda token: ReassignmentRequested(targets, token))
            assert not response.codes.any()
            assert p.reassigning(rows).all() == (not cancel)

        return act

    def _rows(self) -> Int32:
        return np.flatnonzero(self.loop.controller.cluster.partitions.topic >= 0).astype(np.int32)

    def _proposal(self, leader: int, rows: Int32) -> Callable[[int], Event]:
        cluster = self.loop.controller.cluster
        p, brokers = cluster.partitions, cluster.brokers
        names = RequestedPartitions(self.names, p.topic[rows], p.partition[rows])
        return lambda token: AlterPartitionRequested(
            int(brokers.ids[leader]),
            int(brokers.broker_epoch[leader]),
            1,
            names,
            p.leader_epoch[rows],
            p.partition_epoch[rows],
            np.zeros(len(rows), np.uint8),
            p.lists("replica", rows),
            token,
        )


@contextmanager
def silent() -> Iterator[None]:
    """Log lines name a few partitions, whatever their number. A handler that captures records retains more."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@cache
def costs(partitions: int, brokers: int = BROKERS, steps: tuple[str, ...] = STEPS) -> dict[str, Cost]:
    """Return the cost of each step. Each step runs once before, so that caches are filled."""
    return in_fresh_process(_costs, partitions, brokers, steps)


def _costs(partitions: int, brokers: int, steps: tuple[str, ...]) -> dict[str, Cost]:
    with silent():
        for simulation in (Simulation(10 * TOPICS, brokers), Simulation(partitions, brokers)):
            costs = {step: cost_of(simulation.prepared(step)) for step in steps}
    return costs


@pytest.mark.extended
def test_no_call_or_object_per_partition() -> None:
    few, many = costs(SMALL), costs(LARGE)
    for step in STEPS:
        assert many[step].calls < few[step].calls * 1.05 + 200, step
        assert many[step].objects - few[step].objects < (LARGE - SMALL) // 50, step


@pytest.mark.extended
def test_array_work_is_linear_in_partitions() -> None:
    few, many = costs(SMALL), costs(LARGE)
    for step in STEPS:
        assert many[step].elements < few[step].elements * (LARGE / SMALL) ** EXPONENT, step


def test_deletion_work_is_linear_in_partitions_and_brokers() -> None:
    """Four times as many partitions on four times as many brokers cost four times the work, not sixteen times."""
    steps = ("create", "delete")
    few, many = costs(SMALL, BROKERS, steps), costs(4 * SMALL, 4 * BROKERS, steps)
    assert many["delete"].elements < few["delete"].elements * 4**EXPONENT


@pytest.mark.parametrize("partitions", [SMALL, LARGE])
def test_peak_memory_is_bounded(partitions: int) -> None:
    simulation = Simulation(partitions)
    for step in STEPS:
        with silent():
            peak = traced_peak(simulation.prepared(step))
        assert peak < BYTES_MAX * partitions + 2_000_000, step
