"""Tolerant readers: faulty rows are omitted and reported, all other rows are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kframe.errors import SnapshotError
from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.faults import FaultNotes
from tests.snapshot.samples import DESCRIBE, assignment, dump, dump_text, facts, kcat, registration, state, znode

NAMES = {"zookeeper": "c.jsonl", "describe": "c.txt", "kcat": "c.json"}
U = (assignment("u", {0: [1, 2]}, topic_id="AAAAAAAAAAAAAAAAAAAAAQ"), state("u", 0, 1, [1, 2]))
DESCRIBE_U = DESCRIBE + (
    "Topic: u\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: u\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
)


class Case(NamedTuple):
    """A source, the remaining topics of ``t`` and ``u``, and a part of each reported fault with its topic."""

    name: str
    format: str
    content: str
    topics: list[str]
    noted: list[tuple[str, str | None]]


def zk(name: str, topics: list[str], noted: list[tuple[str, str | None]], *changed: dict[str, Any]) -> Case:
    return Case(name, "zookeeper", dump_text(dump(*U, *changed)), topics, noted)


def zk_text(name: str, old: str, new: str, topics: list[str], noted: list[tuple[str, str | None]]) -> Case:
    text = dump_text(dump(*U))
    assert old in text
    return Case(name, "zookeeper", text.replace(old, new, 1), topics, noted)


def text(name: str, old: str, new: str, topics: list[str], noted: list[tuple[str, str | None]]) -> Case:
    assert old in DESCRIBE_U
    return Case(name, "describe", DESCRIBE_U.replace(old, new, 1), topics, noted)


def kc(
    name: str, topics: list[str], noted: list[tuple[str, str | None]], topic: dict[str, Any], **changed: Any
) -> Case:
    document = kcat()
    second = {**document["topics"][0], "topic": "u"}
    document["topics"] = [{**document["topics"][0], **topic}, second]
    return Case(name, "kcat", json.dumps({**document, **changed}), topics, noted)


STATE = "/brokers/topics/t/partitions/1/state"
CASES = [
    zk("whole", ["t", "u"], []),
    zk("state of broken JSON", ["u"], [(":10 data of /brokers/topics/t/", "t")], znode(STATE, "{")),
    zk("two states broken", ["u"], [("partitions/0/state", "t"), ("partitions/1/state", "t")],
       znode(STATE, "{"), znode(STATE.replace("1", "0"), "{")),
    zk("missing partition", ["u"], [("no partition 1", "t")], assignment("t", {0: [1], 2: [1]})),
    zk("ISR outside the replicas", ["u"], [("field isr: found broker 9", "t")], state("t", 1, 2, [2, 9])),
    zk("leader outside the replicas", ["u"], [("field leader: found broker 9", "t")], state("t", 1, 9, [2])),
    zk("replica twice", ["u"], [("broker 1 twice", "t")], assignment("t", {0: [1, 1, 2, 3], 1: [2, 3]})),
    zk("illegal topic name", ["t", "u"], [("topic name 'v w'", "v w")], assignment("v w", {0: [1]})),
    zk("state without a topic", ["t", "u"], [("a state of topic v", "v")], state("v", 0, 1, [1])),
    zk("wrong topic config", ["u"], [("config min.insync.replicas: found 'x'", "t")],
       znode("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "x"}})),
    zk("wrong default config", ["t", "u"], [("broker default config", None)],
       znode("/config/brokers/<default>", {"version": 1, "config": {"min.insync.replicas": "x"}})),
    zk_text("line of broken JSON with its path", '"data": "{\\"version\\": 1, \\"leader\\": 2', '"data: "{', ["u"],
            [(":10: found malformed JSON", "t")]),
    zk_text("line without a path", json.dumps(state("t", 1, 2, [2, 3], version=7)), "garbage", ["u"],
            [(":10: found malformed JSON", None), ("no state of a partition of topic t", "t")]),
    zk_text("second state", json.dumps(U[1]), json.dumps(U[1]) + "\n" + json.dumps(U[1]), ["t"],
            [("a second state of partition u-0", "u")]),
    text("whole", "Topic", "Topic", ["t", "u"], []),
    text("bad partition line", "Leader: 2", "Leader: two", ["u"], [(":3 field Leader: found 'two'", "t")]),
    text("bad topic line", "PartitionCount: 2", "PartitionCount: x", ["u"], [(":1: found 'x'", "t")]),
    text("missing partition", DESCRIBE.splitlines(keepends=True)[2], "", ["u"],
         [("1 partition of topic t", "t")]),
    text("partition twice", "Partition: 1", "Partition: 0", ["u"], [("partition t-0 again", "t")]),
    text("line of something else", "Topic: u\t", "ERROR what is this\nTopic: u\t", ["t", "u"], [(":4: found", None)]),
    kc("whole", ["t", "u"], [], {}),
    kc("wrong type", ["u"], [("topics[0] field partitions: found 3", "t")], {"partitions": 3}),
    kc("no name", ["u"], [("topics[0] field topic", None)], {"topic": 7}),
    kc("topic twice", [], [("topic u again", "u")], {"topic": "u"}),
]  # fmt: skip


def rows_of_u(snapshot: Snapshot) -> dict[str, tuple[list[int], list[int]]]:
    """Replicas and ISR of each partition of topic u."""
    return {name: (row["replicas"], row["isr"]) for name, row in facts(snapshot).items() if row["topic"] == "u"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.format}: {case.name}")
def test_fault_excludes_only_its_topic(case: Case, tmp_path: Path) -> None:
    path, whole = tmp_path / NAMES[case.format], tmp_path / f"whole-{NAMES[case.format]}"
    path.write_text(case.content)
    whole.write_text(next(other.content for other in CASES if other.format == case.format and other.name == "whole"))
    notes = FaultNotes()
    snapshot = read_snapshot(path, faults=notes)
    assert list(snapshot.topics.names) == case.topics
    assert rows_of_u(snapshot) == (rows_of_u(read_snapshot(whole)) if "u" in case.topics else {})
    assert [noted.topic for noted in notes.noted] == [topic for _, topic in case.noted]
    for noted, (message, _) in zip(notes.noted, case.noted, strict=True):
        assert message in str(noted.fault)
    if case.noted:
        with pytest.raises(SnapshotError):
            read_snapshot(path)


CUT = [
    ("zookeeper", dump_text(dump())[:-20], "malformed JSON"),
    ("zookeeper", dump_text(dump()[:1]), "a dump of the whole tree"),
    ("describe", DESCRIBE[:-8], "a last line without an end"),
    ("describe", "Topic: \n", "no PartitionCount"),
    ("kcat", json.dumps(kcat())[:-9], "malformed JSON"),
]


@pytest.mark.parametrize("format,content,message", CUT)
def test_truncated_file_is_refused(format: str, content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / NAMES[format]
    path.write_text(content)
    with pytest.raises(SnapshotError, match=message):
        read_snapshot(path, format, faults=FaultNotes())


def test_unreadable_broker_is_not_reported_unregistered(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(dump_text(dump(registration(2, port="x"))))
    notes = FaultNotes()
    snapshot = read_snapshot(path, faults=notes)
    assert {broker.broker_id: broker.registered for broker in snapshot.brokers} == {1: True, 2: None, 3: True}
    assert [noted.topic for noted in notes.noted] == [None]


def test_excluded_partitions_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(dump_text(dump(*U, znode(STATE, "{"))))
    notes = FaultNotes()
    read_snapshot(path, faults=notes)
    assert notes.partitions == {"t": 2}


def test_source_with_only_faults_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(dump_text(dump(*U, *(znode(f"/brokers/topics/t/partitions/{n}/state", "{") for n in range(3)))))
    with pytest.raises(SnapshotError, match="after 2 other faults"):
        read_snapshot(path, faults=FaultNotes(limit=2))
