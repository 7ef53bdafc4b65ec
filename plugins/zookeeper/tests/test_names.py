"""Malformed names of topics and brokers in ZooKeeper have no effect."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest
from kframe_zookeeper.znodes import paths

from kframe.plugin.store import ReadPreferredElection
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_fixture import FIRST_ID
from kframe.testing.waiting import wait_until
from verification.zookeeper.sessions import FixtureFactory
from verification.zookeeper.trees import read_tree
from verification.zookeeper.victims import build, settle

#: ZooKeeper itself refuses "/", ".", ".." and control characters in a path, but not in the data of a node.
TOPICS: Final = [
    "a b",
    "tab;rm",
    "\u00e4",
    "x" * 250,
    '"quoted"',
    "line\u2028break",
    "\u202eright to left",
    "{label}",
    "%s",
]
INSIDE: Final = [*TOPICS, "", ".", "..", "a/b", "../../controller", "line\nbreak", "bell\a", "nul\0"]
BROKERS: Final = ["-1", "01", "x", "99999999999", "\u0663", "1 "]
ASSIGNMENT: Final = b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}'
#: A sample of the Prometheus text format whose label values are numbers.
SAMPLE: Final = re.compile(r'[a-z_][a-z0-9_]*(\{[a-z_]+="[0-9.]+"(,[a-z_]+="[0-9.]+")*\})?')


def listed(*topics: str, **others: object) -> bytes:
    parts = [{"topic": topic, "partition": 0, **others} for topic in topics]
    return json.dumps({"version": 1, "partitions": parts}).encode()


def test_invalid_names_are_ignored(make_fixture: FixtureFactory) -> None:
    fixture = make_fixture(cluster_of({"orders": [healthy(1, 2)]}, [1, 2]))
    operator = fixture.operator
    for topic in TOPICS:
        operator.create(paths.topic_path(topic), ASSIGNMENT)
    for broker in BROKERS:
        operator.create(f"{paths.BROKER_IDS}/{broker}", b'{"version":1,"host":"h","port":9092}')
    controller, loop = build(FIRST_ID, fixture.connect())
    controller.open()
    loop.start()
    wait_until(lambda: controller.status().active)
    fixture.settle()
    assert settle(controller)
    before = read_tree(operator)

    for topic in TOPICS:
        operator.set(paths.topic_path(topic), ASSIGNMENT)
        operator.create(paths.delete_topic_path(topic))
    for topic in INSIDE:
        operator.create(paths.ISR_CHANGE, listed(topic), sequence=True)
        change = {"version": 2, "entity_path": f"topics/{topic}"}
        operator.create(paths.CONFIG_CHANGE, json.dumps(change).encode(), sequence=True)
        for path, data in (
            (paths.REASSIGN_PARTITIONS, listed(topic, replicas=[2, 1])),
            (paths.PREFERRED_ELECTION, listed(topic)),
        ):
            operator.create(path, data)
            fixture.settle()
            assert settle(controller)
            assert operator.get(path)[0] == data, "malformed znodes stay"
            operator.delete(path)
    for broker in BROKERS:
        operator.set(f"{paths.BROKER_IDS}/{broker}", b"")
    fixture.settle()
    assert settle(controller)

    assert controller.status().controller_epoch == 1
    after = read_tree(operator)
    ours = {path for path in after if path.startswith((paths.TOPICS, paths.CONFIG + "/topics", paths.BROKER_IDS))}
    assert ours == {
        path for path in before if path.startswith((paths.TOPICS, paths.CONFIG + "/topics", paths.BROKER_IDS))
    }
    assert {path for path in after if path.count("/") == 1} == {path for path in before if path.count("/") == 1}
    assert {f"{paths.TOPICS}/{topic}" for topic in TOPICS} <= loop.store.quarantined().keys()
    assert {f"{paths.BROKER_IDS}/{broker}" for broker in BROKERS} <= loop.store.quarantined().keys()
    assert [name for name in controller.metrics() if not SAMPLE.fullmatch(name)] == []
    controller.stop()


@pytest.mark.parametrize("topic", INSIDE)
def test_reasons_never_break_a_log_line(make_fixture: FixtureFactory, topic: str) -> None:
    """Reasons show the content of a znode escaped."""
    fixture = make_fixture(cluster_of({"orders": [healthy(1, 2)]}, [1, 2]))
    fixture.operator.create(paths.PREFERRED_ELECTION, listed(topic))
    store = fixture.connect()
    store.open(lambda _: None)
    assert store.perform(ReadPreferredElection()) is None
    (reason,) = store.quarantined().values()
    assert reason.isprintable()
    assert len(reason) < 500
