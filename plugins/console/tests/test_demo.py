"""The cluster of ``kframe console --demo``: what each operation does, in both modes, and its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kframe_console.sources.controllers import embedded_reading
from kframe_console.sources.demo.cluster import DemoCluster
from kframe_console.sources.demo.kraft import KraftDemo
from kframe_console.sources.demo.operations import DemoOperation
from kframe_console.sources.demo.source import DemoSource, demo_source
from kframe_console.sources.demo.zookeeper import ZookeeperDemo
from kframe_console.sources.reading_events import broker_state, events_between

from kframe.plugin import ParameterError
from kframe.plugin.cluster import ElectionType
from kframe.plugin.snapshot import conditions_of
from kframe.testing.waiting import wait_until

MODES: dict[str, Callable[[int], DemoCluster]] = {"kraft": KraftDemo, "zookeeper": ZookeeperDemo}


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[DemoCluster]:
    cluster = MODES[request.param](6)
    cluster.start()
    assert cluster.create_topic("orders", 60) == ""
    yield cluster
    cluster.stop()


both_modes = pytest.mark.parametrize("cluster", MODES, indirect=True)
kraft_mode = pytest.mark.parametrize("cluster", ["kraft"], indirect=True)


def state(cluster: DemoCluster) -> tuple[str, int | None, int | None]:
    """The brokers that are not active, partitions with replicas out of sync, and partitions without a leader."""
    snapshot = cluster.snapshot()
    brokers = {broker.broker_id: broker_state(broker) for broker in snapshot.brokers}
    inactive = ", ".join(f"{broker_id} {name}" for broker_id, name in brokers.items() if name != "active")
    conditions = conditions_of(snapshot).counts()
    return inactive, conditions["under_replicated"], conditions["offline"]


#: Broker 2 has replicas of 30 of the 60 partitions.
ENDED = {"kraft": "2 fenced", "zookeeper": "2 unregistered"}


@both_modes
@pytest.mark.parametrize("end", ["kill_broker", "shut_down_broker"])
def test_broker_that_ends_leaves_isrs_and_returns(cluster: DemoCluster, end: str) -> None:
    getattr(cluster, end)(2)
    assert state(cluster) == (ENDED[cluster.mode], 30, 0)
    getattr(cluster, end)(2)  # It has ended already.
    cluster.catch_up()
    assert state(cluster) == (ENDED[cluster.mode], 30, 0)
    cluster.start_broker(2)
    assert state(cluster) == ("", 30, 0)
    cluster.catch_up()
    assert state(cluster) == ("", 0, 0)


@kraft_mode
def test_fenced_broker_returns_in_the_same_epoch(cluster: DemoCluster) -> None:
    epoch = {broker.broker_id: broker.broker_epoch for broker in cluster.snapshot().brokers}
    cluster.fence_broker(2)
    cluster.fail_directory(2)  # The report does not arrive.
    cluster.shut_down_broker(3)  # Heartbeats of others do not unfence it.
    assert state(cluster)[0] == "2 fenced, 3 fenced"
    cluster.start_broker(2)
    assert state(cluster)[0] == "3 fenced"
    assert {broker.broker_id: broker.broker_epoch for broker in cluster.snapshot().brokers} == epoch


@both_modes
def test_failed_directory_takes_its_replicas_and_the_last_one_its_broker(cluster: DemoCluster) -> None:
    cluster.fail_directory(2)
    inactive, under_replicated, offline = state(cluster)
    assert (inactive, offline) == ("", 0)
    assert under_replicated in range(1, 30)
    cluster.catch_up()
    assert state(cluster)[1] == under_replicated, "replicas in a failed directory do not catch up"
    cluster.fail_directory(2)
    assert state(cluster) == (ENDED[cluster.mode], 30, 0)
    cluster.start_broker(2)
    cluster.catch_up()
    assert state(cluster) == ("", 0, 0)


@both_modes
def test_elections(cluster: DemoCluster) -> None:
    before = cluster.snapshot()
    for broker_id in (1, 2, 3, 4, 5):
        cluster.kill_broker(broker_id)
    assert state(cluster)[2]
    cluster.start_broker(1)
    cluster.elect_leaders(ElectionType.UNCLEAN)
    for broker_id in (2, 3, 4, 5):
        cluster.start_broker(broker_id)
    cluster.catch_up()
    cluster.elect_leaders(ElectionType.UNCLEAN)
    cluster.catch_up()
    cluster.elect_leaders(ElectionType.PREFERRED)
    assert state(cluster) == ("", 0, 0)
    assert cluster.snapshot().known_leaders().tolist() == before.known_leaders().tolist()


@pytest.mark.parametrize("cluster", ["zookeeper"], indirect=True)
def test_standby_takes_over(cluster: DemoCluster) -> None:
    for active, epoch in ((1001, 2), (1000, 3)):
        cluster.resign()
        readings = map(embedded_reading, cluster.controllers)
        assert [reading.details["controller_id"] for reading in readings if reading.details["active"]] == [active]
        assert cluster.snapshot().controller_epoch == epoch


@both_modes
def test_events_name_what_has_changed(cluster: DemoCluster) -> None:
    events = []
    before = cluster.snapshot()
    steps = ((cluster.kill_broker, 2), (cluster.start_broker, 2), (cluster.catch_up,), (cluster.create_topic, "new", 3))
    for operation, *arguments in steps:
        operation(*arguments)
        after = cluster.snapshot()
        events.append(sorted(events_between(before, after)))
        before = after
    assert events == [
        [
            ("election", "10 leaders elected, in place of 10 of broker 2"),
            ("fencing", f"broker {ENDED[cluster.mode].replace(' ', ' is ')}"),
            ("isr", "30 ISRs shrunk"),
        ],
        [("broker", "broker 2 is active")],
        [("isr", "30 ISRs expanded")],
        [("topic", "1 topic created: new")],
    ]


# -- The source.


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Iterator[DemoSource]:
    source = DemoSource(MODES[getattr(request, "param", "kraft")](4), 25, step_s=0.01)
    source.start()
    wait_until(lambda: len(source.reading("").snapshot) == 25)
    yield source
    source.close()


@pytest.mark.parametrize("source", MODES, indirect=True)
def test_each_operation_makes_a_reading(source: DemoSource) -> None:
    number = source.reading("").number
    assert source.request(DemoOperation("kill", 2))
    wait_until(lambda: source.reading("").number > number)
    wait_until(lambda: bool(source.reading("").conditions.counts()["under_replicated"]))
    assert source.request(DemoOperation("start", 2))
    wait_until(lambda: not source.reading("").conditions.counts()["under_replicated"])


@pytest.mark.parametrize("source", MODES, indirect=True)
def test_rolling_restart_ends_with_all_replicas_in_sync(source: DemoSource) -> None:
    epochs = [broker.broker_epoch for broker in source.reading("").snapshot.brokers]
    source.request(DemoOperation("roll"))
    source.request(DemoOperation("create_topic", topic="last", partitions=1))
    wait_until(lambda: "last" in source.reading("").snapshot.topics.names)
    snapshot = source.reading("").snapshot
    assert all(
        now is not None and was is not None and now > was
        for now, was in zip((broker.broker_epoch for broker in snapshot.brokers), epochs, strict=True)
    )
    assert conditions_of(snapshot).counts()["under_replicated"] == 0


def test_refusals_of_the_cluster_are_known(source: DemoSource) -> None:
    source.request(DemoOperation("create_topic", topic="topic-0001"))
    wait_until(lambda: source.refusal == "Topic 'topic-0001' already exists.")
    source.request(DemoOperation("start", 1))
    wait_until(lambda: source.refusal is None)


@pytest.mark.parametrize(
    "operation, parameter",
    [(DemoOperation("resign"), "operation"), (DemoOperation("kill"), "broker"), (DemoOperation("kill", 9), "broker")],
)
def test_operations_that_there_are_not(source: DemoSource, operation: DemoOperation, parameter: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        source.request(operation)
    assert refusal.value.parameter == parameter


def test_few_operations_wait() -> None:
    source = DemoSource(KraftDemo(3), 10)  # Its thread does not run.
    requested = [source.request(DemoOperation("roll")) for _ in range(40)]
    assert (requested.count(True), requested[-1]) == (32, False)


@pytest.mark.parametrize("partitions, directories", [(100, 2), (1_000_000, 1)])
def test_brokers_of_large_clusters_have_one_directory(partitions: int, directories: int) -> None:
    cluster = demo_source("kraft", partitions, 3).cluster
    cluster.start()
    registrations = [broker.registration for broker in cluster.snapshot().brokers]
    counts = [len(registration.directories) for registration in registrations if registration is not None]
    assert counts == [directories] * 3
    cluster.stop()
