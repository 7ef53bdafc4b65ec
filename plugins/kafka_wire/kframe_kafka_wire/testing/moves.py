"""Reassignments on real brokers, looked at where brokers keep them: in their logs and in their directories."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Final

from kframe_zookeeper.testing.expiry import end_session_of
from kframe_zookeeper.testing.kafka import Broker
from kframe_zookeeper.testing.process import until

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import Targets
from kframe_kafka_wire.client import open_admin
from kframe_kafka_wire.testing.clients import KafkaPython
from kframe_kafka_wire.testing.clusters import create
from kframe_kafka_wire.testing.instances import PATIENCE_S
from kframe_kafka_wire.testing.worlds import World, await_told, metadata

#: What a leader logs of each leader epoch that it takes up, 2.8 and 3.9: ISR, adding and removing replicas.
_LEADS: Final = (
    r"Leader {} .*starts at leader epoch \d+ .*ISR \[([\d,]*)\],? adding ?[rR]eplicas \[([\d,]*)\] (?:and )?"
    r"removing ?[rR]eplicas \[([\d,]*)\]"
)
#: Two of these are more than a follower fetches at once (``replica.fetch.max.bytes``, 1 MiB).
_LARGE: Final = "x" * 700_000


def a_move_ends(world: World) -> None:
    """One partition keeps its leader, another loses it, and of the third nobody goes. Storage, all nodes and the leader
    itself then have the target for ISR (KAFKA-9672). Raises AssertionError."""
    topic, before, targets = "moved", [[1, 2], [1, 2], [1]], [[3, 1], [2, 3], [1, 3]]
    create(world.client, topic, before)
    assert until(lambda: _in_sync(world, topic, before), PATIENCE_S)
    _reassign(world, topic, targets)
    assert until(lambda: _assigned(world, topic) == [(one, [], []) for one in targets], PATIENCE_S)
    # What is told to have ended has ended: nobody waits for the ISR here.
    assert [sorted(world.state(topic, number)["isr"]) for number in range(3)] == [sorted(one) for one in targets]
    assert until(lambda: _in_sync(world, topic, targets), PATIENCE_S)
    leaders = [world.state(topic, number)["leader"] for number in range(3)]
    assert (leaders[0], leaders[1] in targets[1], leaders[2]) == (1, True, 1)

    def told() -> list[tuple[list[int], ...]]:
        return [_leads(world.cluster.brokers[one], f"{topic}-{number}") for number, one in enumerate(leaders)]

    assert until(lambda: told() == [(sorted(one), [], []) for one in targets], PATIENCE_S), told()


def a_move_is_given_up(world: World) -> None:
    """Before the added replica has caught up: its broker deletes it, files and all (KAFKA-13972). Brokers before 3.4.1
    do so under a leader epoch alone that they do not know yet. Raises AssertionError."""
    topic, added = "given-up", world.cluster.brokers[3]
    create(world.client, topic, [[1, 2]])
    assert until(lambda: _in_sync(world, topic, [[1, 2]]), PATIENCE_S)
    _throttle(world, topic, 1)
    _produce(world, topic, [_LARGE, _LARGE, _LARGE])
    _reassign(world, topic, [[1, 3]])
    assert until(lambda: bool(_folders(added, "data", topic)), PATIENCE_S)
    moving = world.state(topic, 0)
    assert (sorted(moving["isr"]), _assigned(world, topic)[0]) == ([1, 2], ([1, 3, 2], [3], [2]))

    _reassign(world, topic, [None])
    assert until(lambda: _folders(added, "data", topic) == [], PATIENCE_S)
    left = world.state(topic, 0)
    assert (sorted(left["isr"]), left["leader"], _assigned(world, topic)[0]) == ([1, 2], 1, ([1, 2], [], []))
    assert left["leader_epoch"] > moving["leader_epoch"]
    assert all(_folders(world.cluster.brokers[one], "data", topic) for one in (1, 2))
    _delete(world, topic)


def a_half_dead_broker_is_moved_to(world: World) -> None:
    """A fourth broker has two directories, of which one cannot be used: what it is told is new it makes in the
    other one, all else it takes for lost with the dead one (KAFKA-10314). Raises AssertionError."""
    topic, version = "to-half-dead", world.cluster.brokers[1].version
    settings = {**world.settings, "log.dirs": "data,dead"}
    broker = Broker(world.folder / "broker-4", world.cluster.zookeeper, 4, settings, version)
    (broker.folder / "dead").write_text("no directory\n")
    create(world.client, topic, [[1, 2]])
    try:
        broker.start()
        assert until(lambda: _in_sync(world, topic, [[1, 2]]), PATIENCE_S)
        broker.await_started()
        _reassign(world, topic, [[4, 1]])
        assert until(lambda: _assigned(world, topic)[0] == ([4, 1], [], []), PATIENCE_S), broker.log("server")[-4000:]
        assert set(world.state(topic, 0)["isr"]) == {1, 4}
        assert [one.name for one in _folders(broker, "data", topic)] == [f"{topic}-0"]
        assert "dead" in "".join(one.message for one in broker.complaints("server") if one.level == "ERROR")
        _delete(world, topic)
    finally:
        broker.kill()
        end_session_of(world.client, world.cluster.zookeeper, "/brokers/ids/4")
    await_told(world, lambda told: len(told["brokers"]) == len(world.nodes))


def _reassign(world: World, topic: str, targets: Sequence[Sequence[int] | None]) -> None:
    """Ask kframe to move the partitions from 0 on to these replicas; None gives up what is under way."""
    admin = open_admin(f"kafka://{world.kframe.address}", {})
    try:
        asked = Targets.of([((topic, number), target) for number, target in enumerate(targets)])
        assert set(admin.reassign(asked)) == {ErrorCode.NONE}
    finally:
        admin.close()


def _assigned(world: World, topic: str) -> list[tuple[list[int], list[int], list[int]]]:
    """Replicas, and who of them is added and removed, by partition, as stored."""
    stored = json.loads(world.client.get(f"/brokers/topics/{topic}")[0])
    return [
        (
            stored["partitions"][number],
            *(stored[key].get(number, []) for key in ("adding_replicas", "removing_replicas")),
        )
        for number in sorted(stored["partitions"])
    ]


def _in_sync(world: World, topic: str, lists: Sequence[Sequence[int]]) -> bool:
    """Whether each node tells of just these partitions, all replicas in sync and nobody else."""
    told = [[one for one in metadata(node)["topics"] if one["name"] == topic] for node in world.nodes]
    wanted = [(sorted(one), sorted(one)) for one in lists]
    return all(
        wanted == [
            (sorted(one["replica_nodes"]), sorted(one["isr_nodes"]))
            for one in sorted(found[0]["partitions"], key=itemgetter("partition_index"))
        ]
        for found in told if found
    ) and all(told)  # fmt: skip


def _leads(broker: Broker, name: str) -> tuple[list[int], ...]:
    """ISR, adding and removing replicas, each in order, as a leader was told last of a partition."""
    found = re.findall(_LEADS.format(re.escape(name)), broker.log("state-change"))
    return tuple(sorted(map(int, filter(None, one.split(",")))) for one in found[-1]) if found else ()


def _throttle(world: World, topic: str, leader: int) -> None:
    """Have the leader give a follower that is not in sync one fetch, and no more for as long as its quota remembers."""
    settings = {
        f"topics/{topic}": {"leader.replication.throttled.replicas": "*"},
        f"brokers/{leader}": {"leader.replication.throttled.rate": "1"},
    }
    for path, config in settings.items():
        data = json.dumps({"version": 1, "config": config}).encode()
        world.client.ensure_path(f"/config/{path}")  # others may have left settings of the broker
        world.client.set(f"/config/{path}", data)
    # Whoever turns to the second word on the topic is done with all before it.
    for path in (*settings, f"topics/{topic}"):
        data = json.dumps({"version": 2, "entity_path": path}).encode()
        world.client.create("/config/changes/config_change_", data, sequence=True)
    said = f"Processing override for entityPath: topics/{topic} "
    assert until(lambda: world.cluster.brokers[leader].log("server").count(said) == 2, PATIENCE_S)


def _produce(world: World, topic: str, values: Sequence[str]) -> None:
    """By a producer that ends: one that stays would make the topic anew once it is deleted."""
    client = KafkaPython(world.folder, world.address)
    try:
        client.produce(topic, values)
    finally:
        client.close()


def _folders(broker: Broker, data: str, topic: str) -> list[Path]:
    """What a broker has of a topic in one of its directories, also what it is about to delete."""
    return sorted((broker.folder / data).glob(f"{topic}-[0-9]*"))


def _delete(world: World, topic: str) -> None:
    world.client.create(f"/admin/delete_topics/{topic}")
    assert until(lambda: not world.assignment(topic), PATIENCE_S)
