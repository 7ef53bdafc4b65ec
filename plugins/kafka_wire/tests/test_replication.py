"""No acknowledged record is lost whatever happens to brokers and controllers: Kafka's own replication matrix, and more.

Three real brokers, three replicas, two of which have to be in sync, ``acks=all``, one idempotent producer at a steady
rate. In the middle a broker or a controller is ended, again and again, or frozen. Afterwards a consumer reads all.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from kazoo.protocol.states import WatchedEvent
from kframe_kafka_wire.codec import decode_response, encode_request
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.instances import Instance
from kframe_kafka_wire.testing.replication import PATIENCE_S, Scene
from kframe_kafka_wire.testing.worlds import NEWEST, SETUPS, Setup, spelled
from kframe_zookeeper.testing.handover import ALL, ClusterFixture, running_fixture
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import ServerHandle

EVERYTHING: Final = os.environ.get("KFRAME_FAULTS") == "all"
SETTINGS: Final = {
    "min.insync.replicas": "2", "zookeeper.session.timeout.ms": "6000", "controlled.shutdown.max.retries": "3"
}  # fmt: skip
RECORDS: Final = 100_000
BEFORE: Final = 20_000
AFTER: Final = 20_000
BOUNCES: Final = 5
#: CreateTopics, and a topic that nobody should create.
CREATE: Final = 19, 7
STRAY: Final = {"name": "stray", "num_partitions": 1, "replication_factor": 3}
INVALID_TOPIC, NOT_CONTROLLER = 17, 41

OTHERS: Final = [one for one in SETUPS if one != NEWEST]

Story = Callable[[Scene], None]


@pytest.fixture(scope="module")
def fixture_of(
    zookeeper: ServerHandle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Setup], ClusterFixture]]:
    """Three brokers of a release and protocol, Kafka's own controller among them: those of the last one asked for.

    By hand, because pytest ends a fixture with a parameter after each test of a list that names two."""
    running: dict[Setup, ClusterFixture] = {}
    with ExitStack() as until_another:

        def ask(setup: Setup) -> ClusterFixture:
            if setup not in running:
                until_another.close()
                running.clear()
                version, protocol = setup
                folder = tmp_path_factory.mktemp("replication")
                settings = {**SETTINGS, "inter.broker.protocol.version": protocol}
                fixture = running_fixture(f"{zookeeper.address}/{folder.name}", folder, settings, version)
                running[setup] = until_another.enter_context(fixture)
            return running[setup]

        yield ask


@pytest.fixture
def scene(fixture_of: Callable[[Setup], ClusterFixture], tmp_path: Path, setup: Setup, name: str) -> Iterator[Scene]:
    """All brokers up, one of them controller, and a producer at work on a topic of the test's own."""
    fixture = fixture_of(setup)
    fixture.cluster.start()
    assert until(lambda: fixture.controller()[0] in ALL, PATIENCE_S)
    made = Scene(fixture, name, tmp_path, {"inter.broker.protocol.version": setup[1]})
    try:
        yield made
    finally:
        made.close()


def leader(hard: bool, times: int) -> Story:
    """The broker that leads partition 0 ends, and stays away or comes back to see the next leader end.

    The first that is killed stays registered, though dead, until its session has run out."""

    def story(scene: Scene) -> None:
        scene.instance(1000, "--insist").await_ready(active=True)
        scene.load.await_more(BEFORE)
        for number in range(times):
            broker = scene.leader()
            scene.end(broker, hard, waits=EVERYTHING or number == 0)
            if times > 1:
                scene.begin(broker)

    return story


def controller(hard: bool, times: int) -> Story:
    """The kframe that is controller ends, and another takes over, time and again."""

    def story(scene: Scene) -> None:
        active, standby = scene.pair()
        scene.load.await_more(BEFORE)
        for _ in range(times):
            if hard:
                active.kill()
            else:
                assert active.stop(PATIENCE_S) == 0, active.log
            standby.await_ready(active=True)
            if times > 1:
                active, standby = standby, scene.instance(active.number, "--insist")
                standby.await_ready(active=False)

    return story


def killed_with_leader(scene: Scene) -> None:
    """kframe and a leader end at once: the standby finds a broker gone that nobody has heard of."""
    active, standby = scene.pair()
    scene.load.await_more(BEFORE)
    active.kill()
    broker = scene.leader()
    scene.end(broker, hard=True)
    standby.await_ready(active=True)
    assert scene.leader().id != broker.id


def paused(scene: Scene) -> None:
    """kframe sleeps until a standby has taken over and a leader has come and gone; awake, it changes nothing, not even
    what it was asked for while it was still controller."""
    sleeper, standby = scene.pair()
    scene.load.await_more(BEFORE)
    with Client(sleeper.address) as client:
        assert client.ask(*CREATE, topics=[{**STRAY, "name": "."}])["topics"][0]["error_code"] == INVALID_TOPIC
        sleeper.pause()
        client.send(encode_request(*CREATE, 2, "a-test", {"topics": [STRAY]}))
        wake(scene, sleeper, standby)
        assert refused(client)


def refused(client: Client) -> bool:
    """Whether a creation that was asked for is answered by NOT_CONTROLLER, or by the end of the connection."""
    try:
        _, answer = decode_response(*CREATE, client.receive())
    except ConnectionError:
        return True
    return bool(answer["topics"][0]["error_code"] == NOT_CONTROLLER)


def wake(scene: Scene, sleeper: Instance, standby: Instance) -> None:
    """The standby takes over and a leader comes and goes while the other one sleeps; then that one wakes up."""
    standby.await_ready(active=True)
    broker = scene.leader()
    scene.end(broker, hard=True)
    scene.begin(broker)
    scene.await_full()
    before, (_, epoch) = scene.fixture.tree(), scene.fixture.controller()
    resigned = sleeper.log.count("Resigned")
    sleeper.resume()
    assert until(lambda: sleeper.log.count("Resigned") > resigned, PATIENCE_S), sleeper.log
    sleeper.await_ready(active=False)
    scene.load.await_more(AFTER)
    after = scene.fixture.tree()
    assert after.keys() == before.keys()
    changed = [path for path in after if after[path] != before[path]]
    # An ISR may shrink and grow on a busy machine: by order of the controller that is.
    assert all(path.endswith("/state") for path in changed), changed
    assert all(json.loads(after[path][0] or b"")["controller_epoch"] == epoch for path in changed), changed
    assert (scene.controller(), scene.fixture.controller()[1]) == (standby.number, epoch)


def paused_at_work(scene: Scene) -> None:
    """kframe freezes as it hears of a leader's end, and wakes up when another has done the work, time and again."""
    active, standby = scene.pair()
    scene.load.await_more(BEFORE)
    for _ in range(BOUNCES):
        broker = scene.leader()
        frozen = threading.Event()

        def freeze(_event: WatchedEvent, who: Instance = active, done: threading.Event = frozen) -> None:
            who.pause()
            done.set()

        scene.fixture.client.exists(f"/brokers/ids/{broker.id}", watch=freeze)
        scene.end(broker, hard=True)
        assert frozen.wait(PATIENCE_S)
        standby.await_ready(active=True)
        scene.begin(broker)
        active.resume()
        active.await_ready(active=False)
        assert scene.controller() == standby.number
        active, standby = standby, active


def handed_over(scene: Scene) -> None:
    """Kafka hands over to kframe, a leader bounces, and kframe hands back before that one is in sync again."""
    scene.load.await_more(BEFORE)
    kframe = scene.instance(1000, "--takeover")
    kframe.await_ready(active=True)
    broker = scene.leader()
    scene.end(broker, hard=True)
    scene.begin(broker)
    assert kframe.stop(PATIENCE_S) == 0, kframe.log
    assert until(lambda: scene.controller() in ALL, PATIENCE_S)


def torn_away(scene: Scene) -> None:
    """kframe takes over and dies, and takes over again from a broker that has died with the role."""
    scene.load.await_more(BEFORE)
    first = scene.instance(1000, "--takeover")
    first.await_ready(active=True)
    first.kill()
    assert until(lambda: scene.controller() in ALL, PATIENCE_S)
    broker = scene.fixture.cluster.brokers[scene.controller()]
    broker.kill()
    second = scene.instance(1001, "--insist")
    second.await_ready(active=True)
    scene.end(broker, hard=True)
    assert scene.leader().id != broker.id


def rolled(scene: Scene) -> None:
    """All brokers are restarted in order, each when all are in sync: no partition is ever without a leader."""
    scene.instance(1000, "--insist").await_ready(active=True)
    scene.load.await_more(BEFORE)
    for broker in scene.fixture.cluster.brokers.values():
        scene.end(broker, hard=False)
        scene.begin(broker)
        scene.await_full()
    assert not scene.went_offline


MATRIX: Final = {
    f"{way}-{what}-{target.__name__}": target(way == "hard", BOUNCES if what == "bounce" else 1)
    for way, what, target in itertools.product(("clean", "hard"), ("stop", "bounce"), (leader, controller))
}
STORIES: Final[dict[str, Story]] = MATRIX | {
    story.__name__: story for story in (killed_with_leader, paused, paused_at_work, handed_over, torn_away, rolled)
}
#: What runs unless everything is asked for: every way of the matrix on some brokers.
CHOSEN: Final = [
    *((NEWEST, name) for name in ("hard-bounce-leader", "hard-stop-controller", "paused", "handed_over")),
    *zip(OTHERS, ("clean-bounce-controller", "hard-stop-leader", "clean-stop-leader"), strict=True),
]
ASKED: Final = [(setup, name) for setup in SETUPS for name in STORIES] if EVERYTHING else CHOSEN


@pytest.mark.timeout(900)
@pytest.mark.parametrize("setup, name", [pytest.param(*one, id=f"{one[1]}-on-{spelled(one[0])}") for one in ASKED])
def test_no_acknowledged_record_is_lost(name: str, scene: Scene, record_property: Callable[[str, int], None]) -> None:
    STORIES[name](scene)
    scene.load.await_more(max(AFTER, RECORDS - scene.load.count().acknowledged))
    count = scene.load.finish()
    for broker in scene.fixture.cluster.brokers.values():
        if broker.pid is None:
            scene.begin(broker)
    scene.await_full()

    verdict = scene.load.verdict()
    for key in ("acknowledged", "lost", "moved", "doubled", "disordered", "unannounced"):
        record_property(key, getattr(verdict, key))
    record_property("failed", count.failed)
    assert verdict.good, verdict
    assert verdict.acknowledged == count.acknowledged >= RECORDS
    assert count.failed == 0
    assert scene.fallen() == []
    assert scene.fixture.unlike_kafkas() == {}
