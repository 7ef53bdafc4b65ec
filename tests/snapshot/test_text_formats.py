"""Output of kafka-topics, kcat and kafka-reassign-partitions in different releases."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kframe.errors import SnapshotError
from kframe.snapshot import Snapshot, read_reassignment, read_snapshot
from kframe.snapshot.listing import partition_rows
from tests.snapshot.samples import CONTENT, DESCRIBE, TOPIC_ID, facts, kcat, reassignment

OLD = "Topic:t\tPartitionCount:1\tReplicationFactor:2\tConfigs:{configs}{mark}\n\tTopic: t\tPartition: 0\t{fields}\n"


def described(tmp_path: Path, text: str) -> Snapshot:
    path = tmp_path / "c.txt"
    path.write_text(text)
    return read_snapshot(path)


def listed(tmp_path: Path, document: dict[str, Any]) -> Snapshot:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document))
    return read_snapshot(path)


@pytest.mark.parametrize(
    "fields, leader, replicas, isr",
    [
        ("Leader: 2\tReplicas: 2,1\tIsr: 2,1", 2, [2, 1], [2, 1]),
        ("Leader: none\tReplicas: 2,1\tIsr: ", -1, [2, 1], []),
        ("Leader: -1\tReplicas: 2,1\tIsr: 1", -1, [2, 1], [1]),
        ("Leader:2  Replicas:2, 1   Isr:2", 2, [2, 1], [2]),
        ("Isr: 1\tReplicas: 2,1\tLeader: 1\tMarkedForDeletion: true", 1, [2, 1], [1]),
        ("Leader: 0\tReplicas: 0,2147483647\tIsr: 0\n", 0, [0, 2147483647], [0]),
    ],
    ids=["0.8", "none", "-1", "spaces", "order", "ids and a blank line"],
)
def test_spacing_and_order_of_labels(
    fields: str, leader: int, replicas: list[int], isr: list[int], tmp_path: Path
) -> None:
    row = facts(described(tmp_path, OLD.format(configs="", mark="", fields=fields)))["t-0"]
    assert (row["leader"], row["replicas"], row["isr"], row["adding_replicas"]) == (leader, replicas, isr, [])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", {}),
        ("a=b", {0: {"a": "b"}}),
        (
            "cleanup.policy=compact,delete,retention.ms=-1",
            {0: {"cleanup.policy": "compact,delete", "retention.ms": "-1"}},
        ),
        (
            "follower.replication.throttled.replicas=0:1,0:2",
            {0: {"follower.replication.throttled.replicas": "0:1,0:2"}},
        ),
        ("a=,b=x=y", {0: {"a": "", "b": "x=y"}}),
    ],
)
def test_configs(text: str, expected: dict[int, dict[str, str]], tmp_path: Path) -> None:
    fields = "Leader: 2\tReplicas: 2,1\tIsr: 2,1"
    assert described(tmp_path, OLD.format(configs=text, mark="", fields=fields)).topics.configs == expected


def test_marked_for_deletion(tmp_path: Path) -> None:
    text = OLD.format(configs="", mark="\tMarkedForDeletion:true", fields="Leader: 2\tReplicas: 2,1\tIsr: 2,1")
    snapshot = described(tmp_path, text)
    assert snapshot.topics.deleting is not None
    assert snapshot.topics.deleting.tolist() == [1]
    assert "topics.deleting" not in snapshot.provenance


def test_columns_absent_from_describe_are_unknown(tmp_path: Path) -> None:
    snapshot = described(tmp_path, DESCRIBE)
    assert snapshot.unknown == (
        "topics.deleting",
        "partitions.leader_epoch",
        "partitions.controller_epoch",
        "partitions.partition_epoch",
        "partitions.leader_recovery_state",
    )
    assert set(snapshot.unknown) <= set(snapshot.provenance)
    assert [broker.registered for broker in snapshot.brokers] == [True, True, True]


def test_only_isr_of_led_partition_implies_live_brokers(tmp_path: Path) -> None:
    text = DESCRIBE.replace("Leader: 2\tReplicas: 2,3,1\tIsr: 2,3", "Leader: none\tReplicas: 7,8,9\tIsr: 7")
    snapshot = described(tmp_path, text)
    assert {broker.broker_id: broker.registered for broker in snapshot.brokers} == {
        1: True,
        2: True,
        3: True,
        7: None,
        8: None,
        9: None,
    }
    assert any(
        "brokers 7, 8, 9" in assumption and "taken as unregistered" in assumption for assumption in snapshot.assumptions
    )
    assert snapshot.to_cluster().brokers.registered_ids() == [1, 2, 3]


def test_kcat_lists_live_brokers(tmp_path: Path) -> None:
    document = kcat()
    del document["brokers"][0]
    snapshot = listed(tmp_path, document)
    assert {broker.broker_id: broker.registered for broker in snapshot.brokers} == {1: True, 2: True, 3: False}
    assert snapshot.controller_id == 3


def test_columns_absent_from_kcat_are_unknown(tmp_path: Path) -> None:
    snapshot = listed(tmp_path, kcat())
    assert set(snapshot.unknown) == {
        "topics.topic_id",
        "topics.deleting",
        "topics.configs",
        "partitions.leader_epoch",
        "partitions.controller_epoch",
        "partitions.partition_epoch",
        "partitions.leader_recovery_state",
        "partitions.adding_replicas",
        "partitions.removing_replicas",
    }
    assert {snapshot.provenance[column] for column in snapshot.unknown} == {"not in kcat -L -J"}
    view = snapshot.to_cluster()["t", 1]
    assert (view.leader_epoch, view.controller_epoch, view.partition_epoch) == (0, 0, 0)


@pytest.mark.parametrize("controller", [-1, None])
def test_kcat_without_a_controller(controller: int | None, tmp_path: Path) -> None:
    document = kcat(controllerid=controller)
    if controller is None:
        del document["controllerid"]
    snapshot = listed(tmp_path, document)
    assert snapshot.controller_id is None
    assert "cluster.controller_id" in snapshot.provenance


def test_topic_with_kcat_error_is_excluded(tmp_path: Path) -> None:
    document = kcat()
    document["topics"].insert(0, {"topic": "secret", "error": "Broker: Topic authorization failed", "partitions": []})
    snapshot = listed(tmp_path, document)
    assert snapshot.topics.names == ("t",)
    assert "secret" in snapshot.provenance["topics.topic"]
    assert any("secret" in assumption for assumption in snapshot.assumptions)


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"brokers": [], "topics": []}, "no broker and no topic"),
        ({"query": {"topic": "x"}, "topics": []}, "found no topic"),
        (
            {"topics": [{"topic": "x", "error": "Broker: Topic authorization failed", "partitions": []}]},
            "with errors: x",
        ),
    ],
    ids=["no broker", "one topic", "errors"],
)
def test_kcat_output_that_proves_no_empty_cluster(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=message):
        listed(tmp_path, kcat(**changed))


def test_cluster_without_topics_in_kcat(tmp_path: Path) -> None:
    assert len(listed(tmp_path, kcat(topics=[]))) == 0


def test_kcat_output_of_one_topic_is_an_assumption(tmp_path: Path) -> None:
    snapshot = listed(tmp_path, kcat(query={"topic": "t"}))
    assert any("asked for topic t only" in assumption for assumption in snapshot.assumptions)


def test_topic_id_in_another_form_is_named(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="hexadecimal, which Kafka prints as oEwwV51-QoiZY0G02A_A6Q"):
        described(tmp_path, DESCRIBE.replace(TOPIC_ID, "a04c30579d7e4288996341b4d80fc0e9"))


def test_topic_ids_that_kafka_does_not_print_are_unknown(tmp_path: Path) -> None:
    # Their last characters differ in bits that no id has: both texts are the same 16 bytes.
    ids = ("AAAAAAAAAAAAAAAAAAAA00", "AAAAAAAAAAAAAAAAAAAA01")
    texts = [DESCRIBE.replace(TOPIC_ID, topic_id) for topic_id in ids]
    snapshot = described(tmp_path, texts[0] + texts[1].replace("Topic: t\t", "Topic: u\t"))
    assert snapshot.topics.topic_ids is None
    assert "left out where Kafka would not print it: t, u" in snapshot.provenance["topics.topic_id"]
    with pytest.raises(SnapshotError, match=f"found topic id {ids[0]} of topics t and u, expected another id"):
        described(tmp_path, texts[0] + texts[0].replace("Topic: t\t", "Topic: u\t"))


def test_kcat_text_is_refused_with_the_option() -> None:
    path = Path(__file__).parent / "texts" / "kcat-without-json.txt"
    for source_format in (None, "kcat"):
        with pytest.raises(SnapshotError, match="expected its JSON: use kcat -L -J"):
            read_snapshot(path, source_format)


@pytest.mark.parametrize("indent", [None, 2])
def test_reassignment_file_has_assignments_only(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "reassignment.json"
    path.write_text(json.dumps(reassignment(), indent=indent))
    snapshot = read_snapshot(path)
    assert [row.replicas for row in partition_rows(snapshot)] == [[1, 2, 3], [2, 3, 1]]
    assert snapshot.partitions.leader is None
    assert snapshot.partitions.isr is None
    assert {broker.registered for broker in snapshot.brokers} == {None}
    cluster = snapshot.to_cluster()
    assert cluster["t", 0].leader is None
    assert cluster.brokers.registered_ids() == []


def test_generate_prints_two_assignments(tmp_path: Path) -> None:
    proposed = reassignment(partitions=[{"topic": "t", "partition": 0, "replicas": [9], "log_dirs": ["any"]}])
    path = tmp_path / "printed.txt"
    path.write_text(
        f"Current partition replica assignment\n{json.dumps(reassignment())}\n\n"
        f"Proposed partition reassignment configuration\n{json.dumps(proposed)}\n"
    )
    reassignment_ = read_reassignment(path)
    assert reassignment_.current is not None
    assert reassignment_.proposed is not None
    assert [entry.replicas for entry in reassignment_.current] == [[1, 2, 3], [2, 3, 1]]
    assert [entry.replicas for entry in reassignment_.proposed] == [[9]]
    assert len(read_snapshot(path)) == 2


def test_reassignment_may_cover_part_of_a_topic(tmp_path: Path) -> None:
    path = tmp_path / "reassignment.json"
    path.write_text(json.dumps(reassignment(partitions=[{"topic": "t", "partition": 5, "replicas": [1]}])))
    reassignment_ = read_reassignment(path)
    assert reassignment_.proposed is not None
    assert (reassignment_.proposed[0].topic, reassignment_.proposed[0].partition) == ("t", 5)


KAFKA_4 = (
    "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1\tElr: 2,3\tLastKnownElr: \n"
    "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 2,3,1\tIsr: \tElr: \tLastKnownElr: 2\n"
)


def test_elr_columns_are_retained_and_identify_kraft(tmp_path: Path) -> None:
    snapshot = described(tmp_path, KAFKA_4)
    rows = facts(snapshot)
    assert [rows[f"t-{number}"]["elr"] for number in (0, 1)] == [[2, 3], []]
    assert [rows[f"t-{number}"]["last_known_elr"] for number in (0, 1)] == [[], [2]]
    assert (snapshot.is_kraft, snapshot.elr_partitions) == (True, 2)


def test_unreported_elr_is_unknown(tmp_path: Path) -> None:
    snapshot = described(tmp_path, DESCRIBE)  # Elr: N/A
    assert (snapshot.partitions.elr, snapshot.is_kraft, snapshot.elr_partitions) == (None, False, 0)


def test_confluent_offline_column_is_excluded_from_isr(tmp_path: Path) -> None:
    fields = "Leader: 2\tReplicas: 2,1\tIsr: 2\tOffline: 1"
    row = facts(described(tmp_path, OLD.format(configs="", mark="", fields=fields)))["t-0"]
    assert (row["isr"], row["replicas"]) == ([2], [2, 1])


WARNINGS = (
    "OpenJDK 64-Bit Server VM warning: If the number of processors is expected to increase from one\n"
    "Picked up JAVA_TOOL_OPTIONS: -Xmx256m\n"
    "SLF4J: Class path contains multiple SLF4J bindings.\n"
    "\n"
    "[main] INFO org.apache.kafka.clients.admin.AdminClientConfig - AdminClientConfig values:\n"
    "\tbootstrap.servers = [localhost:9092]\n"
    "\tclient.id =\n"
    "\n"
    "[2026-11-24 10:00:00,000] WARN [AdminClient clientId=adminclient-1] a warning (org.apache.kafka.clients)\n"
    "WARNING: Due to limitations in metric names, topics with a period ('.') could collide.\n"
)
_ENCODINGS: Final[dict[str, Callable[[str], bytes]]] = {
    "UTF-8 with a byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16 little endian": lambda text: b"\xff\xfe" + text.encode("utf-16-le"),
    "UTF-16 big endian": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "carriage returns": lambda text: text.replace("\n", "\r\n").encode(),
    "no last line feed": lambda text: text.rstrip("\n").encode(),
    "warnings of the JVM": lambda text: (WARNINGS + text).encode(),
    "warnings after the output": lambda text: (text + ("" if text[0] in "{[" else WARNINGS)).encode(),
    "warnings in UTF-16": lambda text: (WARNINGS + text).encode("utf-16"),
    "gzip": lambda text: gzip.compress((WARNINGS + text).encode("utf-16")),
}
_TEXTS = {**CONTENT, "Kafka 4": KAFKA_4}


@pytest.mark.parametrize("encoding", _ENCODINGS)
@pytest.mark.parametrize("text", _TEXTS)
def test_encodings_and_warnings_do_not_change_snapshot(text: str, encoding: str, tmp_path: Path) -> None:
    plain, encoded = tmp_path / "plain", tmp_path / "encoded"
    plain.write_text(_TEXTS[text])
    encoded.write_bytes(_ENCODINGS[encoding](_TEXTS[text]))
    assert read_snapshot(encoded).digest() == read_snapshot(plain).digest()


@pytest.mark.parametrize(
    "content, expected",
    [
        (b"\xff\xfeT\x00o\x00p", "broken UTF-16"),
        (b"[2026-11-24 10:00:00,000] ERROR TimeoutException (kafka.admin.TopicCommand$)\n", "a file that starts with"),
        (b"hello world\n", r"a file that starts with 'hello world\\n', expected one of"),
        ("Grüße aus dem Äther:öl".encode(), "a file that starts with 'Grüße aus dem Äther:'"),
        (b"\xfe\x01 binary", r"a file that starts with '\\xfe\\x01 binary'"),
        (WARNINGS.encode(), "an empty file"),
        (KAFKA_4.encode()[: -len("\tLastKnownElr: 2\n")], "a last line without an end"),
    ],
    ids=[
        "half a UTF-16 character",
        "an error",
        "text",
        "text cut in a character",
        "no text",
        "warnings only",
        "a cut last line",
    ],
)
def test_truncated_text_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match=expected):
        read_snapshot(path)


def test_missing_final_line_feed_is_an_assumption(tmp_path: Path) -> None:
    assert any("no line feed" in assumption for assumption in described(tmp_path, KAFKA_4.rstrip("\n")).assumptions)
