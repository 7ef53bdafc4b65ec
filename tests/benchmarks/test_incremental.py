"""An event on a few partitions of a large cluster allocates no array of all partitions.

The measure is the peak of allocated bytes: an array of one byte per row would exceed the limit.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from benchmarks.limits.failure_cost import with_small_brokers
from kframe.bench.clusters import whole_cluster
from kframe.bench.controller import TimedController
from kframe.model.arrays import Ragged
from kframe.model.events import AlterPartitionRequested, ElectionRequested, ElectionType
from kframe.model.tables import RequestedPartitions

PARTITIONS, BROKERS = 400_000, 10
#: Far less than one byte per row.
FEW_BYTES = PARTITIONS // 4


@pytest.fixture(scope="module")
def controller() -> TimedController:
    controller = TimedController(whole_cluster(PARTITIONS, BROKERS))
    controller.adopt()
    return controller


@pytest.fixture
def peak() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Return the peak of bytes that a call allocates."""

    def of(call: Callable[[], object]) -> int:
        tracemalloc.start()
        call()
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    yield of
    tracemalloc.stop()


def alter(controller: TimedController, size: int) -> None:
    """The leader of one partition proposes the first ``size`` replicas."""
    p, brokers, row = controller.cluster.partitions, controller.cluster.brokers, PARTITIONS // 2
    leader = int(p.leader[row])
    isr = Ragged.of([brokers.ids[p.replicas_of(row)][:size].tolist()])
    name = controller.cluster.topics.names[p.topic[row]], int(p.partition[row])
    response = controller.request(
        lambda token: AlterPartitionRequested(
            int(brokers.ids[leader]),
            int(brokers.broker_epoch[leader]),
            1,
            RequestedPartitions.of([name]),
            p.leader_epoch[[row]],
            p.partition_epoch[[row]],
            np.zeros(1, np.uint8),
            isr,
            token=token,
        )
    )
    assert response.codes.tolist() == [0]


def test_alter_partition_of_single_partition(
    controller: TimedController, peak: Callable[[Callable[[], object]], int]
) -> None:
    alter(controller, 2)  # joined topic names, and other objects that are created once
    assert peak(lambda: alter(controller, 3)) < FEW_BYTES


def test_election_of_single_partition(controller: TimedController, peak: Callable[[Callable[[], object]], int]) -> None:
    name = controller.cluster.topics.names[7], 5

    def elect() -> None:
        response = controller.request(lambda token: ElectionRequested(ElectionType.PREFERRED, (name,), token))
        assert len(response.codes) == 1

    elect()
    assert peak(elect) < FEW_BYTES


def test_failure_of_small_broker(peak: Callable[[Callable[[], object]], int]) -> None:
    """Except for the buffer of rows that may become leaderless, of which only the first few are used."""
    controller = TimedController(with_small_brokers(PARTITIONS, BROKERS, 50, small=2))
    controller.adopt()

    controller.ensemble.unregister_brokers([BROKERS])
    controller.run_until_idle()

    def second() -> None:
        controller.ensemble.unregister_brokers([BROKERS + 1])
        controller.run_until_idle()

    assert peak(second) < 4 * PARTITIONS + FEW_BYTES
    controller.expect_led(PARTITIONS)
