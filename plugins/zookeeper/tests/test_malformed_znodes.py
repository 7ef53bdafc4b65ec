"""A controller on a tree with many malformed znodes is elected and does its work. It never writes to them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.topics import decode_state

from kframe.embedded import RecordingTransport
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_fixture import FIRST_ID
from kframe.testing.waiting import wait_until
from verification.fuzz import Cases
from verification.support.controllers import controller_loop
from verification.zookeeper.fuzz import targets
from verification.zookeeper.sessions import FixtureFactory

SEED = 8
TOPICS = 40
#: Of each four topics, the first has malformed states, the second a malformed topic znode, the third malformed
#: settings.
KINDS = 4


def refused(kind: str) -> Iterator[bytes]:
    """An endless sequence of malformed znodes of a kind."""
    target = next(target for target in targets() if target.name == kind)
    for first in itertools.count(0, 1024):
        for _, batch in Cases(target, SEED).batches(first, 1024):
            outcomes = target.evaluate(batch)
            yield from (batch[i] for i, outcome in enumerate(outcomes) if outcome is not None and len(batch[i]))


def poisoned(fixture: ZooKeeperFixture) -> dict[str, bytes]:
    """Make znodes of the cluster malformed. Return the data of each by path."""
    states, topics, configs, brokers = (refused(kind) for kind in ("state", "topic", "config", "broker"))
    mutated: dict[str, bytes] = {}
    for number in range(0, TOPICS, KINDS):
        mutated |= {paths.state_path(f"t{number}", partition): next(states) for partition in range(2)}
        mutated[paths.topic_path(f"t{number + 1}")] = next(topics)
        mutated[paths.config_path("topics", f"t{number + 2}")] = next(configs)
    mutated[paths.broker_path(4)] = next(brokers)
    for path, data in mutated.items():
        fixture.operator.set(path, data)
    return mutated


def test_controller_works_beside_malformed_znodes(make_fixture: FixtureFactory) -> None:
    topics = {f"t{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(TOPICS)}
    fixture = make_fixture(cluster_of(topics, registered=[1, 2, 3, 4]))
    mutated = poisoned(fixture)
    versions = {path: fixture.operator.exists(path).version for path in mutated}
    notification = fixture.operator.create(paths.ISR_CHANGE, next(refused("partitions")), sequence=True)
    loop = controller_loop(FIRST_ID, fixture.connect(), RecordingTransport())
    loop.open()
    loop.start()
    try:
        wait_until(lambda: loop.status().active)
        fixture.unregister_brokers([1])
        readable = [paths.state_path(f"t{number}", 0) for number in range(TOPICS) if number % KINDS > 1]
        wait_until(lambda: {decode_state(fixture.operator.get(path)[0], path).leader for path in readable} == {2})
        wait_until(lambda: fixture.operator.exists(notification) is None)
        status = loop.status()
        assert (status.active, status.controller_epoch) == (True, 1)
        assert loop.store.quarantined().keys() >= mutated.keys()
        assert all(loop.store.quarantined()[path].startswith(path) for path in mutated)
        nodes = {path: fixture.operator.get(path) for path in mutated}
        assert {path: data for path, (data, _) in nodes.items()} == mutated
        assert {path: stat.version for path, (_, stat) in nodes.items()} == versions
    finally:
        loop.stop()
