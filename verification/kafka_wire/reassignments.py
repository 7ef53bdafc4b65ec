"""Reassignments on real brokers, verified in the brokers' logs and log directories."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Final

from kframe_kafka_wire.admin.client import open_admin

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import Targets
from kframe.testing.waiting import until
from verification.kafka_wire.broker_metadata import create, metadata
from verification.kafka_wire.kafka_python import KafkaPython
from verification.kafka_wire.real_cluster import RealCluster
from verification.zookeeper.kafka import KafkaProcess
from verification.zookeeper.sessions import end_session_of

#: Log lines of a leader for each new leader epoch, 2.8 and 3.9: ISR, adding and removing replicas.
_LEADS: Final = (
    r"Leader {} .*starts at leader epoch \d+ .*ISR \[([\d,]*)\],? adding ?[rR]eplicas \[([\d,]*)\] (?:and )?"
    r"removing ?[rR]eplicas \[([\d,]*)\]"
)
#: Two of these are more than a follower fetches at once (``replica.fetch.max.bytes``, 1 MiB).
_LARGE: Final = "x" * 700_000


def check_reassignment_completes(cluster: RealCluster) -> None:
    """A reassignment ends with the target as ISR, in storage, on all nodes and at the leader (KAFKA-9672).

    One partition keeps its leader, another loses it, the third only gains a replica. Raises AssertionError.
    """
    topic, before, targets = "moved", [[1, 2], [1, 2], [1]], [[3, 1], [2, 3], [1, 3]]
    create(cluster.client, topic, before)
    assert until(lambda: _in_sync(cluster, topic, before))
    _reassign(cluster, topic, targets)
    assert until(lambda: _assigned(cluster, topic) == [(target, [], []) for target in targets])
    # A reassignment that is reported complete must be complete, so there is no wait for the ISR here.
    assert [sorted(cluster.state(topic, number)["isr"]) for number in range(3)] == [
        sorted(target) for target in targets
    ]
    assert until(lambda: _in_sync(cluster, topic, targets))
    leaders = [cluster.state(topic, number)["leader"] for number in range(3)]
    assert (leaders[0], leaders[1] in targets[1], leaders[2]) == (1, True, 1)

    def logged() -> list[tuple[list[int], ...]]:
        return [
            _leads(cluster.kafka.brokers[broker_id], f"{topic}-{number}") for number, broker_id in enumerate(leaders)
        ]

    assert until(lambda: logged() == [(sorted(target), [], []) for target in targets]), logged()


def check_cancelled_reassignment(cluster: RealCluster) -> None:
    """A broker deletes the log of an added replica if the reassignment is cancelled (KAFKA-13972).

    Brokers before 3.4.1 do so only for a higher leader epoch. Raises AssertionError.
    """
    topic, added = "given-up", cluster.kafka.brokers[3]
    create(cluster.client, topic, [[1, 2]])
    assert until(lambda: _in_sync(cluster, topic, [[1, 2]]))
    _throttle(cluster, topic, 1)
    _produce(cluster, topic, [_LARGE, _LARGE, _LARGE])
    _reassign(cluster, topic, [[1, 3]])
    assert until(lambda: bool(_folders(added, "data", topic)))
    moving = cluster.state(topic, 0)
    assert (sorted(moving["isr"]), _assigned(cluster, topic)[0]) == ([1, 2], ([1, 3, 2], [3], [2]))

    _reassign(cluster, topic, [None])
    assert until(lambda: _folders(added, "data", topic) == [])
    state = cluster.state(topic, 0)
    assert (sorted(state["isr"]), state["leader"], _assigned(cluster, topic)[0]) == ([1, 2], 1, ([1, 2], [], []))
    assert state["leader_epoch"] > moving["leader_epoch"]
    assert all(_folders(cluster.kafka.brokers[broker_id], "data", topic) for broker_id in (1, 2))
    _delete(cluster, topic)


def check_reassignment_to_broker_with_failed_directory(cluster: RealCluster) -> None:
    """A broker with a failed log directory creates a new replica in the other directory (KAFKA-10314).

    A replica without ``is_new`` would count as lost with the failed directory. Raises AssertionError.
    """
    topic, version = "to-half-dead", cluster.kafka.brokers[1].version
    settings = {**cluster.settings, "log.dirs": "data,dead"}
    broker = KafkaProcess(cluster.folder / "broker-4", cluster.kafka.zookeeper, 4, settings, version)
    (broker.folder / "dead").write_text("no directory\n")
    create(cluster.client, topic, [[1, 2]])
    try:
        broker.start()
        assert until(lambda: _in_sync(cluster, topic, [[1, 2]]))
        broker.await_started()
        _reassign(cluster, topic, [[4, 1]])
        assert until(lambda: _assigned(cluster, topic)[0] == ([4, 1], [], [])), broker.log("server")[-4000:]
        assert set(cluster.state(topic, 0)["isr"]) == {1, 4}
        assert [folder.name for folder in _folders(broker, "data", topic)] == [f"{topic}-0"]
        assert "dead" in "".join(
            complaint.message for complaint in broker.complaints("server") if complaint.level == "ERROR"
        )
        _delete(cluster, topic)
    finally:
        broker.kill()
        end_session_of(cluster.client, cluster.kafka.zookeeper, "/brokers/ids/4")
    cluster.await_nodes()


def _reassign(cluster: RealCluster, topic: str, targets: Sequence[Sequence[int] | None]) -> None:
    """Reassign the partitions from 0 on to these replicas. None cancels a reassignment."""
    requested = Targets.of([((topic, number), target) for number, target in enumerate(targets)])
    with closing(open_admin(f"kafka://{cluster.kframe.address}", {})) as admin:
        assert set(admin.reassign(requested)) == {ErrorCode.NONE}


def _assigned(cluster: RealCluster, topic: str) -> list[tuple[list[int], list[int], list[int]]]:
    """Replicas, adding replicas and removing replicas by partition, as stored."""
    stored = json.loads(cluster.client.get(f"/brokers/topics/{topic}")[0])
    return [
        (
            stored["partitions"][number],
            *(stored[key].get(number, []) for key in ("adding_replicas", "removing_replicas")),
        )
        for number in sorted(stored["partitions"])
    ]


def _in_sync(cluster: RealCluster, topic: str, lists: Sequence[Sequence[int]]) -> bool:
    """Whether each node's metadata has exactly these partitions, with all replicas in sync."""
    topics = [[entry for entry in metadata(node)["topics"] if entry["name"] == topic] for node in cluster.nodes]
    expected = [(sorted(replicas), sorted(replicas)) for replicas in lists]
    return all(
        expected
        == [
            (sorted(partition["replica_nodes"]), sorted(partition["isr_nodes"]))
            for partition in sorted(node_topics[0]["partitions"], key=itemgetter("partition_index"))
        ]
        for node_topics in topics
        if node_topics
    ) and all(topics)


def _leads(broker: KafkaProcess, name: str) -> tuple[list[int], ...]:
    """ISR, adding and removing replicas, each sorted, of the last LeaderAndIsr in a leader's log."""
    matches = re.findall(_LEADS.format(re.escape(name)), broker.log("state-change"))
    return tuple(sorted(map(int, filter(None, ids.split(",")))) for ids in matches[-1]) if matches else ()


def _throttle(cluster: RealCluster, topic: str, leader: int) -> None:
    """Limit a follower that is out of sync to one fetch, for as long as the quota window lasts."""
    settings = {
        f"topics/{topic}": {"leader.replication.throttled.replicas": "*"},
        f"brokers/{leader}": {"leader.replication.throttled.rate": "1"},
    }
    for path, config in settings.items():
        data = json.dumps({"version": 1, "config": config}).encode()
        cluster.client.ensure_path(f"/config/{path}")  # Earlier tests may have left settings of the broker.
        cluster.client.set(f"/config/{path}", data)
    # A broker that processes the second notification has processed all before it.
    for path in (*settings, f"topics/{topic}"):
        data = json.dumps({"version": 2, "entity_path": path}).encode()
        cluster.client.create("/config/changes/config_change_", data, sequence=True)
    line = f"Processing override for entityPath: topics/{topic} "
    assert until(lambda: cluster.kafka.brokers[leader].log("server").count(line) == 2)


def _produce(cluster: RealCluster, topic: str, values: Sequence[str]) -> None:
    """With a producer that is closed. An open producer would create the topic again after its deletion."""
    with closing(KafkaPython(cluster.folder, cluster.address)) as client:
        client.produce(topic, values)


def _folders(broker: KafkaProcess, data: str, topic: str) -> list[Path]:
    """A broker's logs of a topic in one of its directories, including those marked for deletion."""
    return sorted((broker.folder / data).glob(f"{topic}-[0-9]*"))


def _delete(cluster: RealCluster, topic: str) -> None:
    cluster.client.create(f"/admin/delete_topics/{topic}")
    assert until(lambda: not cluster.assignment(topic))
