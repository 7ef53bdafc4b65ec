"""kframe decides the steps of golden traces as Kafka 4.4's KRaft controller did, and replays all of their records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from kframe.core.kraft.decision import RecordAndVersion
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.records import TopicRecord
from kframe.model.kraft.views import partition_record
from tests.kraft.golden_traces import (
    GOLDEN,
    RESERVED,
    GoldenCluster,
    decide,
    is_decided,
    read_scenario,
    read_trace,
    step_records,
    symbolic_epoch,
    symbolic_uuid,
)
from tests.kraft.oracle_json import sort_runs

TRACES: Final = sorted((GOLDEN / "traces").iterdir())
#: Steps by trace and number in which heartbeats of other brokers decide more, in the same step.
OTHER_HEARTBEATS: Final = {
    ("controlled-shutdown-waits", 4): "a broker that waited in controlled shutdown may stop",
    ("directories-cordoned", 13): "the broker names its cordoned directories after it is unfenced",
    ("register-again", 8): "the broker in controlled shutdown may stop",
}
#: Traces in which the controller lost the end of its log: their images lack records that were replayed.
LOST_BATCHES: Final = {"lost-tail-elr"}


def name_of(path: Path) -> str:
    return path.name.split(".")[0]


def names(cluster: GoldenCluster, decided: list[RecordAndVersion]) -> dict[UUID, str]:
    created = [item.record for item in decided if isinstance(item.record, TopicRecord)]
    topics = cluster.metadata.topics
    return dict(zip(topics.ids, topics.names, strict=True)) | {record.topic_id: record.name for record in created}


@pytest.mark.parametrize("path", TRACES, ids=name_of)
def test_a_trace_is_decided_as_kafka_decided_it(path: Path) -> None:
    cluster = GoldenCluster(read_scenario(name_of(path)))
    trace = read_trace(path)
    for number, step in enumerate(trace["steps"]):
        recorded = list(step_records(step))
        cluster.note_inputs(step)
        if is_decided(cluster, step) and (name_of(path), number) not in OTHER_HEARTBEATS:
            decided = decide(cluster.copy(), step)
            by_id = names(cluster, recorded + decided)
            assert sort_runs(decided, by_id) == sort_runs(recorded, by_id), f"step {number}: {step['step']}"
        for record in recorded:
            cluster.apply(record)
    if name_of(path) not in LOST_BATCHES:
        assert_image(cluster, trace["image"])


def assert_image(cluster: GoldenCluster, image: dict[str, Any]) -> None:
    """The metadata equal the trace's image: features, brokers, topics, partitions and configurations."""
    metadata = cluster.metadata
    assert metadata.features == image["features"]
    assert {str(broker): broker_image(cluster, broker) for broker in metadata.brokers.registrations} == {
        broker: normalized(expected) for broker, expected in image["brokers"].items()
    }
    assert {name: metadata.topics.ids[index] for name, index in metadata.topics.index_by_name.items()} == {
        name: symbolic_uuid(topic) for name, topic in image["topics"].items()
    }
    rows = [row for row in range(len(metadata.partitions)) if metadata.partitions.topic[row] >= 0]
    assert dict(partition_image(cluster, row) for row in rows) == {
        name: normalized(expected) for name, expected in image["partitions"].items()
    }
    kinds = {ResourceType.TOPIC: "topic", ResourceType.BROKER: "broker", ResourceType.GROUP: "group",
             ResourceType.CLIENT_METRICS: "client-metrics"}  # fmt: skip
    assert {
        f"{kinds[ResourceType(kind)]}:{name}": values for (kind, name), values in metadata.configs.items()
    } == image["configs"]


def normalized(expected: dict[str, Any]) -> dict[str, Any]:
    """A part of an image without what stands for defaults, with UUIDs and numbers in place of symbols."""
    converted = dict(expected)
    for key in ("directories", "cordoned_directories"):
        if converted.get(key) is not None:
            converted[key] = [symbolic_uuid(name) for name in converted[key]]
    if "epoch" in converted:
        converted["epoch"] = symbolic_epoch(converted["epoch"])
        converted["incarnation"] = symbolic_uuid(converted["incarnation"])
        converted["directories"].sort()
    for key in ("elr", "last_known_elr"):
        if key in converted:
            converted[key] = sorted(converted[key])
    return {key: value for key, value in converted.items() if key not in ("features", "endpoints")}


def broker_image(cluster: GoldenCluster, broker: int) -> dict[str, Any]:
    registration = cluster.registration(broker)
    return {
        "epoch": registration.broker_epoch,
        "incarnation": registration.incarnation_id,
        "rack": registration.rack,
        "fenced": registration.fenced,
        "in_controlled_shutdown": registration.in_controlled_shutdown,
        "directories": sorted(registration.directories),
        "cordoned_directories": None if registration.cordoned is None else list(registration.cordoned),
    }


def partition_image(cluster: GoldenCluster, row: int) -> tuple[str, dict[str, Any]]:
    record = partition_record(cluster.metadata, row)
    topic = cluster.metadata.topics.names[int(cluster.metadata.partitions.topic[row])]
    return f"{topic}-{record.partition_id}", {
        "replicas": list(record.replicas),
        "adding_replicas": list(record.adding_replicas),
        "removing_replicas": list(record.removing_replicas),
        "leader": record.leader,
        "leader_epoch": record.leader_epoch,
        "isr": list(record.isr),
        "leader_recovery_state": record.leader_recovery_state,
        "partition_epoch": record.partition_epoch,
        "elr": sorted(record.eligible_leader_replicas or ()),
        "last_known_elr": sorted(record.last_known_elr or ()),
        "directories": list(record.directories),
    }


def test_most_steps_are_decided() -> None:
    counts: Counter[bool] = Counter()
    for path in TRACES:
        cluster = GoldenCluster(read_scenario(name_of(path)))
        for step in read_trace(path)["steps"]:
            cluster.note_inputs(step)
            counts[is_decided(cluster, step)] += 1
            for record in step_records(step):
                cluster.apply(record)
    assert counts[True] > 600


def test_symbolic_names() -> None:
    assert symbolic_uuid("LOST") == RESERVED["LOST"]
    assert symbolic_uuid("1.a") != symbolic_uuid("2.a")
    assert symbolic_epoch("12.3") == 12_003
