"""The counts of a summary equal a count in plain Python loops."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from kframe.snapshot import Snapshot, generate, read_snapshot, summarize
from kframe.snapshot.listing import broker_rows, summary_record, topic_rows
from kframe.snapshot.summary import conditions_of, loads_of
from kframe.whatif import WhatIf
from tests.snapshot.samples import EXAMPLES, example, facts
from tests.snapshot.strategies import snapshots


def reference_conditions(snapshot: Snapshot, row: dict[str, Any]) -> dict[str, bool | None]:
    """Return the conditions of one partition."""
    adding, removing, topics = row["adding_replicas"], row["removing_replicas"], snapshot.topics
    reassigning = None if adding is None or removing is None else bool(adding or removing)
    if row["leader"] is None:
        names = ("offline", "under_replicated", "under_min_isr", "at_min_isr", "preferred_replica_imbalance")
        return {**dict.fromkeys(names), "reassigning": reassigning}
    unregistered = {broker.broker_id for broker in snapshot.brokers if broker.registered is False}
    offline = row["leader"] == -1 or row["leader"] in unregistered
    default = int((snapshot.broker_default_configs or {}).get("min.insync.replicas", "1"))
    min_isr = min(topics.min_insync(topics.names.index(row["topic"])) or default, len(row["replicas"]))
    has_configs = topics.configs is not None
    return {
        "offline": offline,
        "under_replicated": len(row["isr"]) < len(row["replicas"]) - len(adding or []),
        "under_min_isr": (offline or len(row["isr"]) < min_isr) if has_configs else None,
        "at_min_isr": (not offline and len(row["isr"]) == min_isr) if has_configs else None,
        "preferred_replica_imbalance": row["leader"] not in (-1, row["replicas"][0]),
        "reassigning": reassigning,
    }


@given(snapshots())
def test_conditions(snapshot: Snapshot) -> None:
    rows = list(facts(snapshot).values())
    conditions = conditions_of(snapshot)
    for number, row in enumerate(rows):
        for name, expected in reference_conditions(snapshot, row).items():
            mask = getattr(conditions, name)
            assert (None if mask is None else bool(mask[number])) == expected, (name, row)


@given(snapshots())
def test_loads(snapshot: Snapshot) -> None:
    rows, loads = facts(snapshot).values(), loads_of(snapshot)
    ids = [broker.broker_id for broker in snapshot.brokers]
    replicas = Counter(broker_id for row in rows for broker_id in row["replicas"])
    preferred = Counter(row["replicas"][0] for row in rows)
    assert loads.replicas.tolist() == [replicas[broker_id] for broker_id in ids]
    assert loads.preferred.tolist() == [preferred[broker_id] for broker_id in ids]
    if loads.leaders is not None and loads.in_sync is not None:
        leaders = Counter(row["leader"] for row in rows)
        in_sync = Counter(broker_id for row in rows for broker_id in row["isr"])
        assert loads.leaders.tolist() == [leaders[broker_id] for broker_id in ids]
        assert loads.in_sync.tolist() == [in_sync[broker_id] for broker_id in ids]


@pytest.mark.parametrize("name", ["healthy", "broker-4-dead"])
def test_conditions_are_those_of_a_what_if(name: str) -> None:
    snapshot = read_snapshot(EXAMPLES / f"{name}.zookeeper.jsonl.gz")
    counts, before = conditions_of(snapshot).counts(), WhatIf(snapshot).health().counts()
    names = ("offline", "under_replicated", "under_min_isr", "at_min_isr")
    assert {name: counts[name] for name in names} == {name: before[name] for name in names}


def test_skew_excludes_unregistered_brokers() -> None:
    snapshot = generate(90, 3, partitions_per_topic=90)
    assert summarize(snapshot).leader_skew == 1.0
    brokers = (dataclasses.replace(snapshot.brokers[0], registered=False), *snapshot.brokers[1:])
    leader = snapshot.partitions.leader
    assert leader is not None
    leaders = np.where(leader == 0, 1, leader).astype(np.int32)
    partitions = dataclasses.replace(snapshot.partitions, leader=leaders)
    summary = summarize(dataclasses.replace(snapshot, brokers=brokers, partitions=partitions))
    assert (summary.unregistered_brokers, summary.offline) == (1, 0)
    assert summary.leader_skew == pytest.approx(60 / 45, abs=0.001)


def test_empty_cluster() -> None:
    snapshot = generate(3, 3)
    topics = dataclasses.replace(snapshot.topics, names=(), partition_counts=np.empty(0, np.int32))
    empty = dataclasses.replace(
        snapshot,
        topics=topics,
        partitions=type(snapshot.partitions)(snapshot.partitions.replicas.take(np.empty(0, int))),
    )
    summary = summarize(empty)
    assert (summary.partitions, summary.offline, summary.leader_skew, summary.replica_skew) == (0, None, None, None)


def test_rows_of_brokers_and_topics() -> None:
    snapshot = read_snapshot(example("broker-4-dead", "zookeeper"))
    brokers = {row.broker_id: row for row in broker_rows(snapshot)}
    down = brokers[4]
    assert (down.registered, down.leaders, down.in_sync_replicas, down.endpoints) == (False, 0, 5, None)
    assert brokers[1].endpoints == ["PLAINTEXT://127.0.0.1:19191"]
    topics = {row.topic: row for row in topic_rows(snapshot)}
    assert sum(row.offline or 0 for row in topics.values()) == 5
    moving = topics["clickstream.events.v1"]
    assert (moving.partition_count, moving.replication_factor, moving.topic_id) == (24, 3, "frDXeNPsRbeC4MoAEBPkpQ")
    assert list(topic_rows(snapshot, {"orders.dlq.v1"})) == [topics["orders.dlq.v1"]]


def test_rows_of_topics_whose_leaders_are_unknown() -> None:
    rows = list(topic_rows(read_snapshot(EXAMPLES / "reassignment.json")))
    assert [(row.topic, row.offline, row.under_replicated) for row in rows] == [("clickstream.events.v1", None, None)]


def test_summary_record_has_source_and_provenance() -> None:
    record = summary_record(read_snapshot(example("healthy", "kcat")))
    assert record["source"] == "kcat: healthy.kcat.json.gz"
    assert record["provenance"]["partitions.leader_epoch"] == "not in kcat -L -J"
    assert record["under_min_isr"] is None
    assert len(record["assumptions"]) > 5
