"""The bundled snapshots of a real cluster: each format equals the cluster's output, and the formats agree."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from kframe.snapshot import Snapshot, read_reassignment, read_snapshot
from kframe.snapshot.decode import topic_id_text
from tests.snapshot.samples import EXAMPLES, STATES, example, facts, raw_znodes

#: Partition fields of every format, and fields of kafka-topics that kcat lacks.
SHARED = ("topic", "partition", "leader", "replicas", "isr")
DESCRIBED = (*SHARED, "adding_replicas", "removing_replicas")


def read(state: str, source_format: str) -> Snapshot:
    return read_snapshot(example(state, source_format))


def raw_partitions(state: str) -> dict[str, dict[str, Any]]:
    """Return the partition fields read directly from the znodes' JSON."""
    znodes, partitions = raw_znodes(state), {}
    for path, node in znodes.items():
        if path.startswith("/brokers/topics/") and path.count("/") == 3:
            topic, data = path.rsplit("/", 1)[1], json.loads(node["data"])
            for partition, replicas in data["partitions"].items():
                state_node = znodes[f"{path}/partitions/{partition}/state"]
                leadership = json.loads(state_node["data"])
                partitions[f"{topic}-{partition}"] = {
                    "topic": topic,
                    "partition": int(partition),
                    "leader": leadership["leader"],
                    "leader_epoch": leadership["leader_epoch"],
                    "controller_epoch": leadership["controller_epoch"],
                    "partition_epoch": state_node["version"],
                    "leader_recovery_state": leadership.get("leader_recovery_state", 0),
                    "replicas": replicas,
                    "isr": leadership["isr"],
                    "adding_replicas": data["adding_replicas"].get(partition, []),
                    "removing_replicas": data["removing_replicas"].get(partition, []),
                    "elr": None,
                    "last_known_elr": None,
                }
    return partitions


@pytest.mark.parametrize("state", STATES)
def test_real_dump_equals_raw_znodes(state: str) -> None:
    snapshot = read(state, "zookeeper")
    assert facts(snapshot) == raw_partitions(state)
    assert snapshot.unknown == ()
    assert snapshot.assumptions == ()
    assert (snapshot.cluster_id, snapshot.controller_id, snapshot.controller_epoch) == ("Oa7GlkflQAGnPK-XQeKmzQ", 2, 1)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("source_format, columns", [("describe", DESCRIBED), ("kcat", SHARED)])
def test_formats_agree_on_partitions(state: str, source_format: str, columns: tuple[str, ...]) -> None:
    dumped, other = facts(read(state, "zookeeper")), facts(read(state, source_format))
    assert {name: [row[column] for column in columns] for name, row in dumped.items()} == {
        name: [row[column] for column in columns] for name, row in other.items()
    }


@pytest.mark.parametrize("state", STATES)
def test_formats_agree_on_topics(state: str) -> None:
    dumped, described, listed = (
        read(state, source_format).topics for source_format in ("zookeeper", "describe", "kcat")
    )
    assert dumped.names == described.names == listed.names
    assert dumped.topic_ids is not None
    assert described.topic_ids is not None
    assert np.array_equal(dumped.topic_ids, described.topic_ids)
    assert dumped.configs == described.configs
    assert (
        topic_id_text(dumped.topic_ids[dumped.names.index("clickstream.events.v1")].tobytes())
        == "frDXeNPsRbeC4MoAEBPkpQ"
    )


@pytest.mark.parametrize("state, dead", [("healthy", set()), ("broker-4-dead", {4})])
def test_formats_agree_on_brokers(state: str, dead: set[int]) -> None:
    registered = {
        source_format: {broker.broker_id: broker.registered for broker in read(state, source_format).brokers}
        for source_format in ("zookeeper", "describe", "kcat")
    }
    live = {broker_id: broker_id not in dead for broker_id in range(1, 7)}
    assert registered["zookeeper"] == registered["kcat"] == live
    # Broker 4 is in the ISR of five leaderless partitions. This ISR is not current.
    assert registered["describe"] == live | dict.fromkeys(dead)


@pytest.mark.parametrize("state", STATES)
def test_formats_agree_on_endpoints(state: str) -> None:
    addresses = [
        {
            broker.broker_id: [(endpoint.host, endpoint.port) for endpoint in broker.endpoints]
            for broker in read(state, form).brokers
            if broker.endpoints
        }
        for form in ("zookeeper", "kcat")
    ]
    assert addresses[0] == addresses[1]
    assert len(addresses[0]) >= 5


def test_reassignment_was_generated_from_healthy_cluster() -> None:
    generated = read_reassignment(EXAMPLES / "reassign-generate.txt")
    executed = read_reassignment(EXAMPLES / "reassignment.json")
    healthy = facts(read("healthy", "zookeeper"))
    assert generated.current is not None
    assert {f"{entry.topic}-{entry.partition}": entry.replicas for entry in generated.current} == {
        name: row["replicas"] for name, row in healthy.items() if row["topic"] == "clickstream.events.v1"
    }
    assert executed.current is None
    assert executed.proposed is not None
    assert len(executed.proposed) == 24
