"""Create and delete topics on real brokers: the response comes when all brokers know, and a deletion may follow."""

from __future__ import annotations

from pathlib import Path

from kframe import ErrorCode, NewPartitions, NewTopic
from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.clusters import ManagedCluster, metadata_of
from verification.zookeeper.servers import ServerHandle

#: Brokers need seconds to create that many partitions.
PARTITIONS = 120
TIMEOUT_MS = int(PATIENCE_S * 1000)


def counts(live: ManagedCluster, topic: str) -> list[int]:
    """The number of partitions of a topic with a leader, by broker."""
    shown = [metadata_of(broker)[2] for broker in live.cluster.brokers.values()]
    return [sum(name.rpartition("-")[0] == topic and leader >= 0 for name, (leader, *_) in known.items())
            for known in shown]  # fmt: skip


def test_change_is_visible_on_every_broker_after_response(zookeeper: ServerHandle, tmp_path: Path) -> None:
    with ManagedCluster(tmp_path / "kafka", f"{zookeeper.address}/create-and-delete") as live:
        admin = live.controller
        new = [NewTopic("big", PARTITIONS, 3)]
        assert admin.create_topics(new, timeout_ms=TIMEOUT_MS).result(PATIENCE_S) == {"big": ErrorCode.NONE}
        assert counts(live, "big") == [PARTITIONS] * 3
        grown = admin.create_partitions([NewPartitions("big", PARTITIONS + 30)], timeout_ms=TIMEOUT_MS)
        assert grown.result(PATIENCE_S) == {"big": ErrorCode.NONE}
        assert counts(live, "big") == [PARTITIONS + 30] * 3
        deleted = admin.delete_topics(["big"], timeout_ms=TIMEOUT_MS)
        assert deleted.result(PATIENCE_S) == {"big": ErrorCode.NONE}
        assert counts(live, "big") == [0] * 3
        assert until(lambda: live.client.exists("/brokers/topics/big") is None)

        # A deletion need not wait for the creation.
        created = admin.create_topics([NewTopic("brief", PARTITIONS, 3)], timeout_ms=0)
        deleted = admin.delete_topics(["brief"], timeout_ms=TIMEOUT_MS)
        assert created.result(PATIENCE_S) == {"brief": ErrorCode.REQUEST_TIMED_OUT}
        assert deleted.result(PATIENCE_S) == {"brief": ErrorCode.NONE}
        assert until(lambda: live.client.exists("/brokers/topics/brief") is None)
        assert until(lambda: live.client.get_children("/admin/delete_topics") == [])
        assert counts(live, "brief") == [0] * 3
