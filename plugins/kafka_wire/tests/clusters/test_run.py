"""``kframe controller run`` as operators run it: two instances, and real Kafka 3.9.1 brokers.

Topics are created automatically.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from kframe_kafka_wire.admin.client import open_admin

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.instances import InstanceProcess
from verification.zookeeper.commands import invoke, kframe, kframe_json
from verification.zookeeper.handover import ClusterFixture
from verification.zookeeper.kafka import Cluster

#: As the brokers are configured.
PARTITIONS: Final = 6


def topic(client: KazooClient, name: str) -> Any:
    try:
        return json.loads(client.get(f"/brokers/topics/{name}")[0])
    except NoNodeError:
        return None


def test_replicas_assigned_to_instances_are_repaired(kafka: ClusterFixture, tmp_path: Path) -> None:
    cluster, clients, client = kafka.cluster, kafka.clients, kafka.client
    with ExitStack() as stack:
        first = InstanceProcess(cluster.zookeeper, tmp_path / "first", 1000, "--takeover", session_ms=8_000)
        stack.callback(first.kill)
        first.await_ready(active=True)
        second = InstanceProcess(cluster.zookeeper, tmp_path / "second", 1001, "--insist")
        stack.callback(second.kill)
        second.await_ready(active=False)
        assert_it_is_seen(cluster, first, second)
        assert_ids_are_unchanged(cluster)
        assert "Broker 1000 has been elected as the controller, so stopping the election process." in second.log

        assert until(lambda: known_controller(cluster) == 1000), first.log
        assert clients.request("produce", topic="auto", partition=0, values=["a"]) == 1
        stored = topic(client, "auto")
        assert len(stored["partitions"]) == PARTITIONS
        assert all(set(replicas) <= {1, 2, 3} and len(replicas) == 2 for replicas in stored["partitions"].values()), (
            stored
        )
        assert stored["topic_id"]
        assert "were assigned to ids of no broker; 0 get fewer replicas" in first.log
        for number in range(PARTITIONS):
            state = json.loads(client.get(f"/brokers/topics/auto/partitions/{number}/state")[0])
            assert set(state["isr"]) <= set(stored["partitions"][str(number)])

        channels = "queuesize|requestrateandqueuetimems_count"
        metrics = rf'kafka_controller_controllerchannelmanager_(?:{channels})\{{broker_id="[123]"\}} \d+'
        metrics += "|kafka_controller_kafkacontroller_activecontrollercount 1"
        assert len(re.findall(metrics, first.page("/metrics")[1])) == 7

        execute = ("--execute", "--bootstrap-server", cluster.address)
        moved = invoke("reassign", "start", "auto-0=1,2,3", *execute, folder=tmp_path)
        assert moved.returncode == 0, moved.stderr + first.log
        assert topic(client, "auto")["partitions"]["0"] == [1, 2, 3]
        refused = invoke("reassign", "start", "auto-0=1,2,1000", *execute, folder=tmp_path)
        assert refused.returncode == 1
        assert_plans_use_brokers_only(cluster, tmp_path)

        first.kill()
        second.await_ready(active=True)
        assert until(lambda: known_controller(cluster) == 1001), second.log
        assert clients.request("produce", topic="later", partition=0, values=["b"]) == 1
        assert all(set(replicas) <= {1, 2, 3} for replicas in topic(client, "later")["partitions"].values())
        assert topic(client, "auto")["partitions"]["0"] == [1, 2, 3]
        assert second.stop(PATIENCE_S) == 0, second.log
        assert "received a signal to stop" in second.log
        assert "stopped" in second.log
        assert until(lambda: known_controller(cluster) in (1, 2, 3))


def assert_it_is_seen(cluster: Cluster, active: InstanceProcess, standby: InstanceProcess) -> None:
    """``controller status`` shows the controller and its standby. It also shows the queue of each broker."""
    status = kframe_json("controller", "status", "--zookeeper", cluster.zookeeper)
    assert (status["controller_id"], status["controller_kind"], status["controller_pid"]) == (
        1000,
        "kframe",
        active.pid,
    )
    assert [(standby["id"], standby["pid"]) for standby in status["standbys"]] == [(1001, standby.pid)]
    assert (status["brokers"], sorted(status["queues"])) == ([1, 2, 3], ["1", "2", "3"]), status["queues_unknown"]
    assert status["offline_partitions"] == 0


def assert_ids_are_unchanged(cluster: Cluster) -> None:
    """Another instance gets neither the id of a registered broker nor that of a live instance."""
    for number, holder in (
        (2, f"the registered broker at PLAINTEXT://{cluster.brokers[2].address}"),
        (1000, "the live instance on "),
    ):
        options = ("--zookeeper", cluster.zookeeper, "--id", str(number), "--transport", "recording:")
        done = kframe("controller", "run", *options, "--takeover")
        assert done.returncode == 2, done.stderr
        assert f"found {number}, which is the id of {holder}" in done.stderr.splitlines()[-1]


def assert_plans_use_brokers_only(cluster: Cluster, folder: Path) -> None:
    """Captures mark the instances that they see. No plan treats one as a broker."""
    urls = {f"kafka://{cluster.address}": [1000], f"zookeeper://{cluster.zookeeper}": [1000, 1001]}
    for number, (url, controllers) in enumerate(urls.items()):
        captured = json.loads(invoke("snapshot", "capture", url, f"{number}", "-o", "json", folder=folder).stdout)
        assert (captured["controllers"], captured["brokers"]) == (controllers, 3)
        plan = invoke("plan", "generate", f"{number}", "--rebalance", "-o", "json", folder=folder)
        assert [broker["broker_id"] for broker in json.loads(plan.stdout)["brokers"]] == [1, 2, 3]
    plan_file = folder / "plan.json"
    plan_file.write_text('{"version":1,"partitions":[{"topic":"auto","partition":0,"replicas":[1,1000]}]}')
    dry_run = invoke("plan", "execute", f"kafka://{cluster.address}", str(plan_file), folder=folder)
    assert dry_run.returncode == 1
    assert "node 1000 is an instance of kframe, no broker" in dry_run.stdout + dry_run.stderr


def known_controller(cluster: Cluster) -> int | None:
    """The controller in the brokers' metadata."""
    with closing(open_admin(f"kafka://{cluster.brokers[1].address}", {})) as admin:
        return admin.capture().controller_id
