"""A whole controller on a tree full of bent znodes: it takes office, does its work beside them, and writes to none."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

from kframe_zookeeper import paths
from kframe_zookeeper.testing.fuzz.targets import targets
from kframe_zookeeper.testing.store_world import ZooKeeperWorld
from kframe_zookeeper.znodes import decode_state

from kframe.core.controller import Controller
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import RecordingTransport
from kframe.model.config import ControllerConfig
from kframe.runtime.clock import SystemClock
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import cluster_of, healthy
from kframe.testing.store_world import ONE
from kframe_simulator.fuzz import Cases

PATIENCE_S = 60.0
SEED = 8
TOPICS = 40
#: Of each four topics, the first has bent states, the second is bent itself, the third has bent settings.
KINDS = 4


def refused(kind: str) -> Iterator[bytes]:
    """Bent znodes of a kind that are refused, without end."""
    target = next(one for one in targets() if one.name == kind)
    for first in itertools.count(0, 1024):
        for _, batch in Cases(target, SEED).batches(first, 1024):
            outcomes = target.judge(batch)
            yield from (batch[i] for i, outcome in enumerate(outcomes) if outcome is not None and len(batch[i]))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


def poisoned(world: ZooKeeperWorld) -> dict[str, bytes]:
    """Bend znodes of the world; what stands in each now, by path."""
    states, topics, configs, brokers = (refused(kind) for kind in ("state", "topic", "config", "broker"))
    bent: dict[str, bytes] = {}
    for number in range(0, TOPICS, KINDS):
        bent |= {paths.state_path(f"t{number}", partition): next(states) for partition in range(2)}
        bent[paths.topic_path(f"t{number + 1}")] = next(topics)
        bent[paths.config_path("topics", f"t{number + 2}")] = next(configs)
    bent[paths.broker_path(4)] = next(brokers)
    for path, data in bent.items():
        world.operator.set(path, data)
    return bent


def test_a_controller_works_beside_bent_znodes_and_leaves_them(worlds: Callable[..., ZooKeeperWorld]) -> None:
    topics = {f"t{number}": [healthy(1, 2, 3), healthy(2, 3, 1)] for number in range(TOPICS)}
    world = worlds(cluster_of(topics, registered=[1, 2, 3, 4]))
    bent = poisoned(world)
    versions = {path: world.operator.exists(path).version for path in bent}
    notification = world.operator.create(paths.ISR_CHANGE, next(refused("partitions")), sequence=True)
    loop = ControllerLoop(
        Controller(ONE, ControllerConfig(), Selection({})), world.connect(), RecordingTransport(), SystemClock()
    )
    loop.open()
    loop.start()
    try:
        until(lambda: loop.status().active)
        world.unregister_brokers([1])
        sound = [paths.state_path(f"t{number}", 0) for number in range(TOPICS) if number % KINDS > 1]
        until(lambda: {decode_state(world.operator.get(one)[0], one)[0].leader for one in sound} == {2})
        until(lambda: world.operator.exists(notification) is None)
        status = loop.status()
        assert (status.active, status.controller_epoch) == (True, 1)
        assert loop.store.quarantined().keys() >= bent.keys()
        assert all(loop.store.quarantined()[path].startswith(path) for path in bent)
        found = {path: world.operator.get(path) for path in bent}
        assert {path: data for path, (data, _) in found.items()} == bent
        assert {path: stat.version for path, (_, stat) in found.items()} == versions
    finally:
        loop.stop()
