"""What happens to a few partitions of a large cluster costs no pass over memory for all of them.

Counted in bytes that an event asks for, at most at once: an array of one byte a row would show.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from benchmarks.limits.failure_cost import with_small_brokers
from kframe.bench.clusters import whole_cluster
from kframe.bench.life import Life
from kframe.model.columns import Ragged
from kframe.model.events import AlterPartitionRequested, ElectionRequested, ElectionType

PARTITIONS, BROKERS = 400_000, 10
#: Far less than a byte a row.
FEW_BYTES = PARTITIONS // 4


@pytest.fixture(scope="module")
def life() -> Life:
    life = Life(whole_cluster(PARTITIONS, BROKERS))
    life.adopt()
    return life


@pytest.fixture
def peak() -> Iterator[Callable[[Callable[[], object]], int]]:
    """The most bytes that a call had at once."""

    def of(call: Callable[[], object]) -> int:
        tracemalloc.start()
        call()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    yield of
    tracemalloc.stop()


def alter(life: Life, size: int) -> None:
    """The leader of one partition proposes the first ``size`` replicas."""
    p, brokers, row = life.cluster.partitions, life.cluster.brokers, PARTITIONS // 2
    leader = int(p.leader[row])
    isr = Ragged.of([brokers.ids[p.replicas_of(row)][:size].tolist()])
    name = life.cluster.topics.names[p.topic[row]], int(p.partition[row])
    response = life.ask(lambda token: AlterPartitionRequested(
        int(brokers.ids[leader]), int(brokers.broker_epoch[leader]), 1, (name,), p.leader_epoch[[row]],
        p.partition_epoch[[row]], np.zeros(1, np.uint8), isr, token=token,
    ))  # fmt: skip
    assert response.codes.tolist() == [0]


def test_one_alter_partition(life: Life, peak: Callable[[Callable[[], object]], int]) -> None:
    alter(life, 2)  # topics' names in one piece, and other things that are made once
    assert peak(lambda: alter(life, 3)) < FEW_BYTES


def test_one_election(life: Life, peak: Callable[[Callable[[], object]], int]) -> None:
    name = life.cluster.topics.names[7], 5

    def elect() -> None:
        response = life.ask(lambda token: ElectionRequested(ElectionType.PREFERRED, (name,), token))
        assert len(response.codes) == 1

    elect()
    assert peak(elect) < FEW_BYTES


def test_the_failure_of_a_small_broker(peak: Callable[[Callable[[], object]], int]) -> None:
    """But for room for the rows that may turn out to have no leader, of which the first few are touched."""
    life = Life(with_small_brokers(PARTITIONS, BROKERS, 50, small=2))
    life.adopt()

    life.ensemble.unregister_brokers([BROKERS])
    life.rest()

    def second() -> None:
        life.ensemble.unregister_brokers([BROKERS + 1])
        life.rest()

    assert peak(second) < 4 * PARTITIONS + FEW_BYTES
    life.expect_led(PARTITIONS)
