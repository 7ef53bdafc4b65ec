"""Golden scenarios on a real ZooKeeper give the same traces as in memory: those of Kafka's controller."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.session.settings import settings_of_url
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.brokers import decode_broker
from kframe_zookeeper.znodes.topics import StoredTopic, decode_state, decode_topic

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.ids import RecoveryState
from kframe.scenario.format import read_scenario
from kframe.scenario.runner import ScenarioRunner
from kframe.testing.clusters import PartitionSpec, cluster_of
from verification.support.sampling import every_nth
from verification.zookeeper.servers import ServerHandle
from verification.zookeeper.sessions import fixture_factory

GOLDEN = Path(__file__).parents[3] / "tests" / "golden"
#: ``tests/scenario/test_golden.py`` plays all of them in memory, and the contract tests compare both stores.
SCENARIOS = every_nth(6, sorted((GOLDEN / "scenarios").glob("*.yaml")))
COMPARISON = runpy.run_path(str(GOLDEN / "compare.py"))["Comparison"]


class Storage(ZooKeeperFixture):
    """Implements ``kframe.ports.storage.ScenarioStorage``. Reads back each node by kazoo's own calls."""

    def stored(self) -> ClusterState:
        names = self.operator.get_children(paths.TOPICS)
        results = [self.operator.get_async(paths.topic_path(name)) for name in names]
        topics = [decode_topic(name, result.get()[0]) for name, result in zip(names, results, strict=True)]
        cluster = cluster_of({topic.name: list(self._partitions(topic)) for topic in topics}, registered=())
        for index, topic in enumerate(topics):
            if topic.topic_id is not None:
                cluster.topics.set_id(index, topic.topic_id)
        return cluster

    def registrations(self) -> tuple[Registration, ...]:
        names = sorted(self.operator.get_children(paths.BROKER_IDS), key=int)
        nodes = ((name, *self.operator.get(f"{paths.BROKER_IDS}/{name}")) for name in names)
        return tuple(decode_broker(name, data, stat.czxid) for name, data, stat in nodes)

    def _partitions(self, topic: StoredTopic) -> Iterator[PartitionSpec]:
        states = [paths.state_path(topic.name, number) for number in range(len(topic.replicas))]
        results = [self.operator.get_async(path) for path in states]
        for number, (replicas, result) in enumerate(zip(topic.replicas, results, strict=True)):
            adding, removing = tuple(topic.adding.get(number, ())), tuple(topic.removing.get(number, ()))
            result.wait()
            if not result.successful():
                yield PartitionSpec(tuple(replicas), adding_replicas=adding, removing_replicas=removing)
                continue
            data, stat = result.get()
            state = decode_state(data, states[number])
            yield PartitionSpec(
                tuple(replicas),
                None if state.leader < 0 else state.leader,
                tuple(state.isr),
                leader_epoch=state.leader_epoch,
                controller_epoch=state.controller_epoch,
                partition_epoch=stat.version,
                recovery=RecoveryState(state.leader_recovery_state),
                adding_replicas=adding,
                removing_replicas=removing,
            )


@pytest.fixture
def make_storage(zookeeper: ServerHandle) -> Iterator[Callable[[ClusterState], Storage]]:
    with fixture_factory(settings_of_url(f"zookeeper://{zookeeper.address}"), Storage) as make:
        yield make


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_trace_equals_kafkas(path: Path, make_storage: Callable[[ClusterState], Storage]) -> None:
    golden = json.loads((GOLDEN / "traces" / f"{path.stem}.json").read_text())
    own = json.loads(json.dumps(ScenarioRunner(read_scenario(path), make_storage=make_storage).play()))
    comparison = COMPARISON(golden, own)
    comparison.run()
    assert comparison.differences == []
