"""``kframe controller status`` with running instances: controller, standbys, malformed znodes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.cluster import encode_controller

from kframe.testing.waiting import until
from verification.zookeeper.commands import Start, invoke


def status(address: str, *arguments: str) -> dict[str, Any]:
    done = invoke("controller", "status", "--zookeeper", address, "-o", "json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def first_lines(address: str) -> str:
    """The lines of the controller and its standbys."""
    done = invoke("controller", "status", "--zookeeper", address, "-o", "wide")
    assert (done.returncode, done.stderr) == (0, "")
    return "\n".join(done.stdout.splitlines()[:2])


def test_first_lines_name_controller_and_standbys(start: Start, address: str, client: KazooClient) -> None:
    assert re.fullmatch(r"controller +none \(epoch 1\)\nstandbys +none", first_lines(address))
    first = start(1000, "--metrics-listen", "0")
    assert first.settle(), first.log
    second = start(999)
    assert second.logs("is a candidate for controller as")
    pattern = (
        rf"controller +kframe 1000 on \S+ pid {first.pid}, epoch 2, since 20\S+\nstandbys +999 on \S+ pid {second.pid}"
    )
    assert re.fullmatch(pattern, first_lines(address))
    assert first.stop() == 0
    assert second.settle(), second.log
    pattern = rf"controller +kframe 999 on \S+ pid {second.pid}, epoch 3, since 20\S+\nstandbys +none"
    assert re.fullmatch(pattern, first_lines(address))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (encode_controller(3, 0), "broker 3, epoch 1, since 1970-01-01T00:00:00.000+00:00"),
        (
            encode_controller(77, 0),
            "77, not a registered broker or instance of kframe, epoch 1, since 19",
        ),
        (b'{"version":2,"brokerid":3000,"timestamp":"0","kraftControllerEpoch":4}', "KRaft controller 3000, epoch 1"),
        (b"not JSON", "-, not a registered broker or instance of kframe, epoch 1, since -"),
    ],
    ids=["a broker", "an instance without a record", "KRaft", "unreadable"],
)
def test_first_line_names_a_foreign_controller(address: str, client: KazooClient, record: bytes, message: str) -> None:
    client.create(paths.CONTROLLER, record, ephemeral=True)
    assert first_lines(address).partition(" ")[2].strip().startswith(message)


def test_counts_equal_those_of_the_active_controller(start: Start, address: str, client: KazooClient) -> None:
    client.delete("/brokers/ids/1")
    client.delete("/brokers/ids/2")
    run = start(1000, "--metrics-listen", "0")
    assert run.settle(), run.log
    gauge = "kafka_controller_kafkacontroller_"
    assert until(lambda: run.metric(f"{gauge}globalpartitioncount") > 0)
    report = status(address)
    assert report["partitions"] == run.metric(f"{gauge}globalpartitioncount")
    assert report["offline_partitions"] == run.metric(f"{gauge}offlinepartitionscount") > 0
    assert report["under_replicated_partitions"] >= report["under_min_isr_partitions"] >= report["offline_partitions"]
    assert (report["topics_to_delete"], report["reassigning_partitions"]) == (0, 0)
    assert report["queues_unknown"] is None
    assert run.stop() == 0
    assert status(address)["offline_partitions"] == report["offline_partitions"], "without a controller, by storage"
    assert status(address)["queues_unknown"] == "there is no controller"


def test_pending_deletions_and_reassignments_are_counted(address: str, client: KazooClient) -> None:
    """They stay pending, because there is no controller."""
    topic = client.get_children(paths.TOPICS)[0]
    client.create(paths.delete_topic_path(topic))
    plan = {"version": 1, "partitions": [{"topic": "later", "partition": 0, "replicas": [1]}]}
    client.create(paths.REASSIGN_PARTITIONS, json.dumps(plan).encode())
    moving = b'{"version":3,"partitions":{"0":[1,2,3]},"adding_replicas":{"0":[3]},"removing_replicas":{}}'
    client.create(paths.topic_path("moving"), moving)
    report = status(address)
    assert (report["topics_to_delete"], report["reassigning_partitions"]) == (1, 2)


#: A malformed record of each kind that a controller reads.
BROKEN: Final = {
    "/brokers/topics/torn": b'{"partitions":{"0":[1,',
    "/brokers/ids/9": b"not JSON",
    "/brokers/topics/odd/partitions/1/state": b"[]",
    "/config/topics/odd": b"[]",
    "/admin/preferred_replica_election": b"not JSON",
    "/admin/reassign_partitions": b"not JSON",
}


def test_quarantined_records_equal_the_metric(start: Start, address: str, client: KazooClient) -> None:
    client.create("/brokers/topics/odd", b'{"version":2,"partitions":{"0":[1,2],"1":[2,1]}}')
    for path, data in BROKEN.items():
        if client.exists(path):
            client.set(path, data)
        else:
            client.create(path, data, makepath=True)
    by_storage = status(address)
    run = start(1000, "--metrics-listen", "0")
    assert run.settle(), run.log
    by_page: dict[str, Any] = {}

    def equal() -> bool:
        by_page.update(status(address))
        return len(by_page["quarantined"]) == run.metric("kframe_store_quarantined")

    assert until(equal)
    assert (by_storage["quarantined_by"], by_page["quarantined_by"]) == ("storage", "controller")
    assert {entry["path"] for entry in by_page["quarantined"]} == set(BROKEN)
    assert by_storage["quarantined"] == by_page["quarantined"]


def test_znodes_that_no_controller_reads_are_listed_separately(address: str, client: KazooClient) -> None:
    for path in ("/cluster/id", "/config/brokers/<default>"):
        client.ensure_path(path)
        client.set(path, b"[]")
    report = status(address)
    assert report["quarantined"] == []
    assert [entry["path"] for entry in report["unreadable"]] == ["/cluster/id", "/config/brokers/<default>"]
    output = invoke("controller", "status", "--zookeeper", address).stdout
    assert "\nunreadable\n  /cluster/id: " in output


def test_quarantined_records_come_from_storage_without_the_page(
    start: Start, address: str, client: KazooClient
) -> None:
    client.create("/brokers/topics/torn", BROKEN["/brokers/topics/torn"])
    run = start(1000)
    assert run.settle(), run.log
    report = status(address)
    assert [entry["path"] for entry in report["quarantined"]] == ["/brokers/topics/torn"]
    assert (report["quarantined_by"], report["queues"]) == ("storage", None)
    assert report["queues_unknown"] == "the controller serves no pages (--metrics-listen)"
