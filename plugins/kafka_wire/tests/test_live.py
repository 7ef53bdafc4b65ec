"""Unmodified brokers of Kafka, with kframe as their controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from kframe_kafka_wire.testing.clusters import PATIENCE_S, LiveCluster
from kframe_zookeeper.testing.process import until
from kframe_zookeeper.testing.servers import ServerHandle


@pytest.mark.parametrize(
    ("version", "protocol"), [("3.9.1", "3.9"), ("3.9.1", "2.8"), ("3.9.1", "2.4"), ("2.8.2", "2.8")]
)
def test_brokers_follow(zookeeper: ServerHandle, tmp_path: Path, version: str, protocol: str) -> None:
    place = f"{zookeeper.address}/follow-{version}-{protocol}"
    settings = {"inter.broker.protocol.version": protocol}
    with LiveCluster(tmp_path, place, version=version, settings=settings) as live:
        live.create("t", [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2]])
        live.create("gone", [[3], [2, 1]])
        known = {
            "t-0": (1, [1, 2, 3], [1, 2, 3]), "t-1": (2, [2, 3, 1], [2, 3, 1]), "t-2": (3, [3, 1, 2], [3, 1, 2]),
            "t-3": (1, [1, 3, 2], [1, 3, 2]), "gone-0": (3, [3], [3]), "gone-1": (2, [2, 1], [2, 1]),
        }  # fmt: skip
        assert live.agree(known)

        live.cluster.brokers[1].kill()
        known |= {
            "t-0": (2, [2, 3], [1, 2, 3]), "t-1": (2, [2, 3], [2, 3, 1]), "t-2": (3, [3, 2], [3, 1, 2]),
            "t-3": (3, [3, 2], [1, 3, 2]), "gone-1": (2, [2], [2, 1]),
        }  # fmt: skip
        assert live.agree(known, (2, 3))

        live.cluster.brokers[1].start()
        live.cluster.brokers[1].await_started()
        live.delete("gone")
        assert until(lambda: live.client.exists("/brokers/topics/gone") is None, PATIENCE_S)
        brokers = live.cluster.brokers.values()
        left = ["t-0", "t-1", "t-2", "t-3"]
        assert until(lambda: all(sorted(live.knows(one)[2]) == left for one in brokers), PATIENCE_S)
        assert until(lambda: not any(list((one.folder / "data").glob("gone-?")) for one in brokers), PATIENCE_S)
        assert [one for one in live.cluster.complaints() if one.log == "state-change"] == []
