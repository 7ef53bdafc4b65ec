"""``kframe plan restarts --watch`` leads an operator through the restart of a real cluster under load."""

from __future__ import annotations

import re
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from kframe.testing.waiting import until
from verification.kafka_wire.load import ProducerLoad
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.zookeeper.commands import RunningCommand, invoke
from verification.zookeeper.kafka import KafkaClients

TOPIC: Final = "records"
REPLICAS: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
SETTINGS: Final = {"min.insync.replicas": "2", "broker.session.timeout.ms": "6000", "default.replication.factor": "3"}
ANNOUNCED: Final = re.compile(r"^batch (\d) of 3 may start: restart broker (\d)$", re.MULTILINE)


@pytest.mark.real
@pytest.mark.extended
def test_watch_announces_each_batch_of_a_real_cluster(tmp_path: Path) -> None:
    options = KraftOptions("4.4.0", brokers=3, combined=False, settings=SETTINGS)
    with KraftCluster(tmp_path / "nodes", options) as cluster:
        with closing(KafkaClients(tmp_path / "clients", cluster.address)) as clients:
            clients.request("create", topic=TOPIC, replicas=REPLICAS)
            assert until(lambda: in_sync(clients) == [{1, 2, 3}] * 3)
        with closing(ProducerLoad(tmp_path / "load", cluster.address, TOPIC, len(REPLICAS), 20)) as load:
            load.await_more(20)
            url = f"kafka://{cluster.address}"
            watch = RunningCommand(tmp_path / "watch", "plan", "restarts", url, "--watch", url, "--interval", "0.5")
            watch.start()
            for number in range(1, 4):
                assert until(partial(has_announced, watch, number))
                batch, broker_id = map(int, ANNOUNCED.findall(watch.log)[-1])
                assert batch == number, watch.log
                broker = cluster.brokers[broker_id]
                broker.stop()
                refused = invoke("plan", "restarts", url, "--watch", url, "--batch", "9")
                assert (refused.returncode, refused.stdout) == (2, "")
                load.await_more(20)
                broker.start()
                broker.await_started()
            assert until(lambda: watch.pid is None), watch.log
            assert "3 batches restarted" in watch.log
            load.await_more(20)
            assert load.count().failed == 0


def has_announced(watch: RunningCommand, batches: int) -> bool:
    """Whether so many batches may start, or the command has ended."""
    return len(ANNOUNCED.findall(watch.log)) == batches or watch.pid is None


def in_sync(clients: KafkaClients) -> list[set[int]]:
    """The ISR of each partition."""
    return [set(each["isr"]) for _, each in sorted(clients.request("describe").get(TOPIC, {}).items())]
