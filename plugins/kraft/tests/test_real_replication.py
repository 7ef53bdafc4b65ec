"""No acknowledged record is lost under faults of brokers and of kframe as their KRaft controller.

Three real brokers, three replicas, ``min.insync.replicas=2``, ``acks=all``, an idempotent producer at a steady rate.
Brokers and the controller are stopped, killed or frozen meanwhile. Then a consumer reads all records.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from kframe.testing.waiting import wait_until
from verification.kraft.led_process import LoadedCluster

#: Least duration of the load of a case, and of the load before and after its faults.
WHOLE_S, PART_S = 10, 2
#: Longer than the session of a broker.
FROZEN_S: Final = 8


class Scale(NamedTuple):
    """The size of a case."""

    records_per_second: int
    bounces: int


SHORT: Final = Scale(records_per_second=500, bounces=2)
EXTENDED: Final = Scale(records_per_second=10_000, bounces=5)
Scenario = Callable[[LoadedCluster, int], None]


def leader(hard: bool, bounces: bool) -> Scenario:
    """The leader of partition 0 ends. If it ``bounces``, it restarts before the next leader ends."""

    def scenario(cluster: LoadedCluster, times: int) -> None:
        for _ in range(times if bounces else 1):
            broker = cluster.leader()
            cluster.stop_broker(broker, hard=hard)
            if bounces:
                cluster.start_broker(broker)

    return scenario


def controller(hard: bool, bounces: bool) -> Scenario:
    """kframe ends, and starts again after a while, or five times at once."""

    def scenario(cluster: LoadedCluster, times: int) -> None:
        for _ in range(times if bounces else 1):
            if hard:
                cluster.controller.kill()
            else:
                assert cluster.controller.stop() == 0, cluster.controller.log
            if not bounces:
                cluster.load.await_more(PART_S * 500)
            cluster.lead()

    return scenario


def killed_with_leader(cluster: LoadedCluster, times: int) -> None:
    """kframe and a leader end at once: its next process ends the session of the broker."""
    broker = cluster.leader()
    cluster.controller.kill()
    broker.kill()
    cluster.lead()
    cluster.stop_broker(broker, hard=True)
    assert cluster.leader().id != broker.id


def frozen(cluster: LoadedCluster, times: int) -> None:
    """kframe is frozen for longer than the sessions of brokers, and fences none of them."""
    before = sorted(cluster.states())
    cluster.controller.pause()
    time.sleep(FROZEN_S)
    cluster.controller.resume()
    wait_until(lambda: cluster.controller.page("/readyz")[0] == 200)
    cluster.load.await_more(PART_S * 500)
    assert cluster.controller.metric("kafka_controller_kafkacontroller_fencedbrokercount") == 0
    assert [state[0] for state in sorted(cluster.states())] == [state[0] for state in before]


def frozen_with_leader(cluster: LoadedCluster, times: int) -> None:
    """A leader is killed while kframe is frozen."""
    for _ in range(times):
        broker = cluster.leader()
        cluster.controller.pause()
        broker.kill()
        time.sleep(1)
        cluster.controller.resume()
        cluster.stop_broker(broker, hard=True)
        cluster.start_broker(broker)
        cluster.await_all_in_sync()


def rolling_restart(cluster: LoadedCluster, times: int) -> None:
    """All brokers restart in order, each when all are in sync."""
    for broker in cluster.kafka.brokers.values():
        cluster.stop_broker(broker, hard=False)
        cluster.start_broker(broker)
        cluster.await_all_in_sync()


def handed_over(cluster: LoadedCluster, times: int) -> None:
    """Kafka's controller takes over, a leader restarts, and kframe takes over again."""
    assert cluster.controller.stop() == 0, cluster.controller.log
    cluster.kafkas_controller.start()
    cluster.kafkas_controller.await_started()
    broker = cluster.leader()
    cluster.stop_broker(broker, hard=True)
    cluster.start_broker(broker)
    cluster.kafkas_controller.stop()
    cluster.lead()


MATRIX: Final = {
    f"{way}-{action}-{target.__name__}": target(way == "hard", action == "bounce")
    for way, action, target in itertools.product(("clean", "hard"), ("stop", "bounce"), (leader, controller))
}
SCENARIOS: Final[dict[str, Scenario]] = MATRIX | {
    scenario.__name__: scenario
    for scenario in (killed_with_leader, frozen, frozen_with_leader, rolling_restart, handed_over)
}
CHOSEN: Final = ("hard-bounce-controller", "frozen")
CASES: Final = [
    *(pytest.param(name, SHORT, id=name, marks=pytest.mark.extended) for name in CHOSEN),
    *(pytest.param(name, EXTENDED, id=f"{name}-extended", marks=pytest.mark.matrix) for name in SCENARIOS),
]


@pytest.mark.real
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name, scale", CASES)
def test_no_acknowledged_record_is_lost(
    name: str, scale: Scale, tmp_path: Path, record_property: Callable[[str, int], None]
) -> None:
    with LoadedCluster(tmp_path, scale.records_per_second) as cluster:
        cluster.load.await_more(PART_S * scale.records_per_second)
        SCENARIOS[name](cluster, scale.bounces)
        records = WHOLE_S * scale.records_per_second
        cluster.load.await_more(max(0, records - cluster.load.count().acknowledged))
        count = cluster.load.finish()
        for broker in cluster.kafka.brokers.values():
            if broker.pid is None:
                cluster.start_broker(broker)
        cluster.await_all_in_sync()
        report = cluster.load.report()
    report.record(record_property, count.failed)
    assert report.good, report
    assert report.acknowledged == count.acknowledged >= records
    assert count.failed == 0
