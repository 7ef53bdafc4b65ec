"""No acknowledged record is lost under faults of brokers and controllers: Kafka's replication test matrix, and more.

Three real brokers, three replicas, ``min.insync.replicas=2``, ``acks=all``, an idempotent producer at a steady rate.
Brokers and controllers are stopped, killed or frozen meanwhile. Then a consumer reads all records.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from kazoo.protocol.states import WatchedEvent
from kframe_kafka_wire.protocol.codec import decode_response, encode_request

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.client import Client
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.real_cluster import OLDEST, SETUPS, Setup, setup_id
from verification.kafka_wire.replication import ReplicationFixture
from verification.zookeeper.handover import ALL, ClusterFixture, running_fixture
from verification.zookeeper.servers import ServerHandle

SETTINGS: Final = {
    "min.insync.replicas": "2",
    "zookeeper.session.timeout.ms": "6000",
    "controlled.shutdown.max.retries": "3",
}
#: CreateTopics, and a topic that must not be created.
CREATE: Final = 19, 7
UNWANTED: Final = {"name": "unwanted", "num_partitions": 1, "replication_factor": 3}
INVALID_TOPIC, NOT_CONTROLLER = 17, 41

#: Least duration of the load of a case, and of the load before and after its faults.
WHOLE_S, PART_S = 10, 2


@dataclass(frozen=True)
class Scale:
    """The size of a case."""

    records_per_second: int
    bounces: int
    #: Whether the session of each killed broker expires, and not only that of the first.
    all_expire: bool


SHORT: Final = Scale(records_per_second=500, bounces=2, all_expire=False)
EXTENDED: Final = Scale(records_per_second=10_000, bounces=5, all_expire=True)


class ReplicationCase(ReplicationFixture):
    """The cluster, the load and the instances of a case."""

    def __init__(
        self, fixture: ClusterFixture, name: str, folder: Path, settings: dict[str, str], scale: Scale
    ) -> None:
        super().__init__(fixture, name, folder, settings, records_per_second=scale.records_per_second)
        self.scale = scale

    def load_more(self) -> None:
        """Wait for the records of ``PART_S``."""
        self.load.await_more(PART_S * self.scale.records_per_second)


Scenario = Callable[[ReplicationCase], None]


@pytest.fixture(scope="module")
def fixture_of(
    zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Setup], ClusterFixture]]:
    """Three brokers of a setup, with Kafka's own controller; a change of setup ends the previous brokers.

    Not a parametrized fixture: pytest would restart the brokers after each test."""
    running: dict[Setup, ClusterFixture] = {}
    with ExitStack() as stack:

        def ask(setup: Setup) -> ClusterFixture:
            if setup not in running:
                stack.close()
                running.clear()
                version, protocol = setup
                folder = tmp_path_factory.mktemp("replication")
                settings = {**SETTINGS, "inter.broker.protocol.version": protocol}
                fixture = running_fixture(f"{zookeeper.address}/{folder.name}", folder, settings, version)
                running[setup] = stack.enter_context(fixture)
            return running[setup]

        yield ask


@pytest.fixture
def replication(
    fixture_of: Callable[[Setup], ClusterFixture], tmp_path: Path, setup: Setup, name: str, scale: Scale
) -> Iterator[ReplicationCase]:
    """All brokers running, and one of them controller. The producer writes to the test's own topic."""
    fixture = fixture_of(setup)
    fixture.cluster.start()
    assert until(lambda: fixture.controller()[0] in ALL)
    settings = {"inter.broker.protocol.version": setup[1]}
    replication_fixture = ReplicationCase(fixture, name, tmp_path, settings, scale)
    try:
        yield replication_fixture
    finally:
        replication_fixture.close()


def leader(hard: bool, bounces: bool) -> Scenario:
    """The leader of partition 0 ends. If it ``bounces``, it restarts before the next leader ends.

    The first killed broker stays registered until its session expires."""

    def scenario(replication: ReplicationCase) -> None:
        replication.instance(1000, "--insist").await_ready(active=True)
        replication.load_more()
        for number in range(replication.scale.bounces if bounces else 1):
            broker = replication.leader()
            replication.stop_broker(broker, hard, waits=replication.scale.all_expire or number == 0)
            if bounces:
                replication.start_broker(broker)

    return scenario


def controller(hard: bool, bounces: bool) -> Scenario:
    """The active kframe ends and a standby takes over. If it ``bounces``, it restarts before the next one ends."""

    def scenario(replication: ReplicationCase) -> None:
        active, standby = replication.start_pair()
        replication.load_more()
        for _ in range(replication.scale.bounces if bounces else 1):
            if hard:
                active.kill()
            else:
                assert active.stop(PATIENCE_S) == 0, active.log
            standby.await_ready(active=True)
            if bounces:
                active, standby = standby, replication.instance(active.number, "--insist")
                standby.await_ready(active=False)

    return scenario


def killed_with_leader(replication: ReplicationCase) -> None:
    """kframe and a leader end at once: the standby handles the broker failure during its failover."""
    active, standby = replication.start_pair()
    replication.load_more()
    active.kill()
    broker = replication.leader()
    replication.stop_broker(broker, hard=True)
    standby.await_ready(active=True)
    assert replication.leader().id != broker.id


def paused(replication: ReplicationCase) -> None:
    """kframe is frozen until a standby has taken over and a leader has restarted. Then it changes nothing.

    It does not even execute a request that it received as controller."""
    sleeper, standby = replication.start_pair()
    replication.load_more()
    with Client(sleeper.address) as client:
        assert client.ask(*CREATE, topics=[{**UNWANTED, "name": "."}])["topics"][0]["error_code"] == INVALID_TOPIC
        sleeper.pause()
        client.send(encode_request(*CREATE, 2, "a-test", {"topics": [UNWANTED]}))
        wake(replication, sleeper, standby)
        assert refused(client)


def refused(client: Client) -> bool:
    """Whether CreateTopics gets a response with NOT_CONTROLLER. A closed connection also counts."""
    try:
        _, response = decode_response(*CREATE, client.receive())
    except ConnectionError:
        return True
    return bool(response["topics"][0]["error_code"] == NOT_CONTROLLER)


def wake(replication: ReplicationCase, sleeper: InstanceProcess, standby: InstanceProcess) -> None:
    """The standby takes over and a leader restarts. Then the frozen instance resumes."""
    standby.await_ready(active=True)
    broker = replication.leader()
    replication.stop_broker(broker, hard=True)
    replication.start_broker(broker)
    replication.await_all_in_sync()
    before, (_, epoch) = replication.fixture.tree(), replication.fixture.controller()
    resigned = sleeper.log.count("Resigned")
    sleeper.resume()
    assert until(lambda: sleeper.log.count("Resigned") > resigned), sleeper.log
    sleeper.await_ready(active=False)
    replication.load_more()
    after = replication.fixture.tree()
    assert after.keys() == before.keys()
    changed = [path for path in after if after[path] != before[path]]
    # An ISR may shrink and grow on a busy machine, under the current controller.
    assert all(path.endswith("/state") for path in changed), changed
    assert all(json.loads(after[path][0] or b"")["controller_epoch"] == epoch for path in changed), changed
    assert (replication.controller(), replication.fixture.controller()[1]) == (standby.number, epoch)


def paused_at_work(replication: ReplicationCase) -> None:
    """kframe freezes at the notification of a leader's failure, and resumes after another instance has handled it."""
    active, standby = replication.start_pair()
    replication.load_more()
    for _ in range(replication.scale.bounces):
        broker = replication.leader()
        frozen = threading.Event()

        def freeze(_event: WatchedEvent, instance: InstanceProcess = active, done: threading.Event = frozen) -> None:
            instance.pause()
            done.set()

        replication.fixture.client.exists(f"/brokers/ids/{broker.id}", watch=freeze)
        replication.stop_broker(broker, hard=True)
        assert frozen.wait(PATIENCE_S)
        standby.await_ready(active=True)
        replication.start_broker(broker)
        active.resume()
        active.await_ready(active=False)
        assert replication.controller() == standby.number
        active, standby = standby, active


def handed_over(replication: ReplicationCase) -> None:
    """Kafka's controller hands over to kframe, a leader restarts, and kframe resigns before the leader is in sync."""
    replication.load_more()
    kframe = replication.instance(1000, "--takeover")
    kframe.await_ready(active=True)
    broker = replication.leader()
    replication.stop_broker(broker, hard=True)
    replication.start_broker(broker)
    assert kframe.stop(PATIENCE_S) == 0, kframe.log
    assert until(lambda: replication.controller() in ALL)


def role_lost_twice(replication: ReplicationCase) -> None:
    """kframe takes the role and is killed, then takes it again from a broker that was killed with the role."""
    replication.load_more()
    first = replication.instance(1000, "--takeover")
    first.await_ready(active=True)
    first.kill()
    assert until(lambda: replication.controller() in ALL)
    broker = replication.fixture.cluster.brokers[replication.controller()]
    broker.kill()
    second = replication.instance(1001, "--insist")
    second.await_ready(active=True)
    replication.stop_broker(broker, hard=True)
    assert replication.leader().id != broker.id


def rolling_restart(replication: ReplicationCase) -> None:
    """All brokers restart in order, each when all are in sync: no partition goes offline."""
    replication.instance(1000, "--insist").await_ready(active=True)
    replication.load_more()
    for broker in replication.fixture.cluster.brokers.values():
        replication.stop_broker(broker, hard=False)
        replication.start_broker(broker)
        replication.await_all_in_sync()
    assert not replication.was_offline


MATRIX: Final = {
    f"{way}-{action}-{target.__name__}": target(way == "hard", action == "bounce")
    for way, action, target in itertools.product(("clean", "hard"), ("stop", "bounce"), (leader, controller))
}
SCENARIOS: Final[dict[str, Scenario]] = MATRIX | {
    scenario.__name__: scenario
    for scenario in (killed_with_leader, paused, paused_at_work, handed_over, role_lost_twice, rolling_restart)
}
#: A short case on the oldest release; ``test_failovers.py`` kills controllers on the newest.
CHOSEN: Final = [(OLDEST, "hard-bounce-leader")]
CASES: Final = [
    *(pytest.param(setup, name, SHORT, id=f"{name}-on-{setup_id(setup)}") for setup, name in CHOSEN),
    *(
        pytest.param(setup, name, EXTENDED, id=f"{name}-on-{setup_id(setup)}-extended", marks=pytest.mark.matrix)
        for setup in SETUPS
        for name in SCENARIOS
    ),
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("setup, name, scale", CASES)
def test_no_acknowledged_record_is_lost(
    name: str, replication: ReplicationCase, record_property: Callable[[str, int], None]
) -> None:
    SCENARIOS[name](replication)
    records = WHOLE_S * replication.scale.records_per_second
    replication.load_more()
    replication.load.await_more(max(0, records - replication.load.count().acknowledged))
    count = replication.load.finish()
    for broker in replication.fixture.cluster.brokers.values():
        if broker.pid is None:
            replication.start_broker(broker)
    replication.await_all_in_sync()

    report = replication.load.report()
    report.record(record_property, count.failed)
    assert report.good, report
    assert report.acknowledged == count.acknowledged >= records
    assert count.failed == 0
    assert replication.decreased_epochs() == []
    assert replication.fixture.znodes_unlike_kafkas() == {}
