"""The bundled snapshots of a real cluster: each format says what the cluster said, and they agree with one another."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from kframe.snapshot import Snapshot, read_reassignment, read_snapshot, summarize
from kframe.snapshot.decode import topic_id_text
from tests.snapshot.samples import EXAMPLES, MOMENTS, example, facts, raw_znodes

#: What every format tells of a partition, and what kafka-topics tells beyond kcat.
SHARED = ("topic", "partition", "leader", "replicas", "isr")
DESCRIBED = (*SHARED, "adding_replicas", "removing_replicas")


def read(moment: str, source_format: str) -> Snapshot:
    return read_snapshot(example(moment, source_format))


def raw_partitions(moment: str) -> dict[str, dict[str, Any]]:
    """The partition facts straight from the znodes' JSON, one by one."""
    znodes, found = raw_znodes(moment), {}
    for path, node in znodes.items():
        if path.startswith("/brokers/topics/") and path.count("/") == 3:
            topic, data = path.rsplit("/", 1)[1], json.loads(node["data"])
            for partition, replicas in data["partitions"].items():
                state_node = znodes[f"{path}/partitions/{partition}/state"]
                state = json.loads(state_node["data"])
                found[f"{topic}-{partition}"] = {
                    "topic": topic,
                    "partition": int(partition),
                    "leader": state["leader"],
                    "leader_epoch": state["leader_epoch"],
                    "controller_epoch": state["controller_epoch"],
                    "zk_version": state_node["version"],
                    "leader_recovery_state": state.get("leader_recovery_state", 0),
                    "replicas": replicas,
                    "isr": state["isr"],
                    "adding_replicas": data["adding_replicas"].get(partition, []),
                    "removing_replicas": data["removing_replicas"].get(partition, []),
                }
    return found


@pytest.mark.parametrize("moment", MOMENTS)
def test_the_dump_is_read_as_it_stands(moment: str) -> None:
    snapshot = read(moment, "zookeeper")
    assert facts(snapshot) == raw_partitions(moment)
    assert snapshot.unknown == ()
    assert snapshot.assumptions == ()
    assert (snapshot.cluster_id, snapshot.controller_id, snapshot.controller_epoch) == ("Oa7GlkflQAGnPK-XQeKmzQ", 2, 1)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("source_format, columns", [("describe", DESCRIBED), ("kcat", SHARED)])
def test_formats_agree_on_partitions(moment: str, source_format: str, columns: tuple[str, ...]) -> None:
    whole, other = facts(read(moment, "zookeeper")), facts(read(moment, source_format))
    assert {name: [row[column] for column in columns] for name, row in whole.items()} == {
        name: [row[column] for column in columns] for name, row in other.items()
    }


@pytest.mark.parametrize("moment", MOMENTS)
def test_formats_agree_on_topics(moment: str) -> None:
    whole, described, listed = (read(moment, one).topics for one in ("zookeeper", "describe", "kcat"))
    assert whole.names == described.names == listed.names
    assert whole.topic_ids is not None
    assert described.topic_ids is not None
    assert np.array_equal(whole.topic_ids, described.topic_ids)
    assert whole.configs == described.configs
    assert (
        topic_id_text(whole.topic_ids[whole.names.index("clickstream.events.v1")].tobytes()) == "frDXeNPsRbeC4MoAEBPkpQ"
    )


@pytest.mark.parametrize("moment, dead", [("healthy", set()), ("broker-4-dead", {4})])
def test_formats_agree_on_brokers(moment: str, dead: set[int]) -> None:
    registered = {
        source_format: {one.broker_id: one.registered for one in read(moment, source_format).brokers}
        for source_format in ("zookeeper", "describe", "kcat")
    }
    live = {broker_id: broker_id not in dead for broker_id in range(1, 7)}
    assert registered["zookeeper"] == registered["kcat"] == live
    # Broker 4 is in the ISR of five leaderless partitions, which says nothing about today.
    assert registered["describe"] == live | dict.fromkeys(dead)


@pytest.mark.parametrize("moment", MOMENTS)
def test_formats_agree_on_endpoints(moment: str) -> None:
    addresses = [
        {
            one.broker_id: [(at.host, at.port) for at in one.endpoints]
            for one in read(moment, form).brokers
            if one.endpoints
        }
        for form in ("zookeeper", "kcat")
    ]
    assert addresses[0] == addresses[1]
    assert len(addresses[0]) >= 5


@pytest.mark.parametrize(
    "moment, expected",
    [
        (
            "healthy",
            {"offline": 0, "under_replicated": 0, "off_preferred": 0, "reassigning": 0, "registered_brokers": 6},
        ),
        ("broker-4-dead", {"offline": 5, "under_min_isr": 5, "reassigning": 21, "registered_brokers": 5, "racks": 3}),
    ],
)
def test_how_the_cluster_stands(moment: str, expected: dict[str, int]) -> None:
    summary = summarize(read(moment, "zookeeper"))
    assert (summary.brokers, summary.topics, summary.partitions, summary.replicas) == (6, 51, 645, summary.replicas)
    assert {name: getattr(summary, name) for name in expected} == expected


def test_the_broker_epoch_is_the_registrations_czxid() -> None:
    znodes = raw_znodes("healthy")
    expected = {one: znodes[f"/brokers/ids/{one}"]["czxid"] for one in range(1, 7)}
    assert {one.broker_id: one.broker_epoch for one in read("healthy", "zookeeper").brokers} == expected


def test_the_reassignment_was_generated_from_the_healthy_cluster() -> None:
    generated = read_reassignment(EXAMPLES / "reassign-generate.txt")
    executed = read_reassignment(EXAMPLES / "reassignment.json")
    healthy = facts(read("healthy", "zookeeper"))
    assert generated.current is not None
    assert {f"{one.topic}-{one.partition}": one.replicas for one in generated.current} == {
        name: row["replicas"] for name, row in healthy.items() if row["topic"] == "clickstream.events.v1"
    }
    assert executed.current is None
    assert executed.proposed is not None
    assert len(executed.proposed) == 24
