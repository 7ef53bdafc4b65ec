"""Malformed input is refused: the error has the location, the found and the expected value.

``kframe snapshot convert`` also receives each input. It must end with exit code 2 and leave no file.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kframe.cli.snapshot import group
from kframe.errors import SnapshotError
from kframe.snapshot import files, read_snapshot
from tests.snapshot.samples import (
    CONTENT,
    DESCRIBE,
    TOPIC_ID,
    assignment,
    dump,
    dump_text,
    kcat,
    reassignment,
    registration,
    state,
    znode,
)

pytestmark = pytest.mark.kernel

NAMES = {"zookeeper": "c.zookeeper.jsonl", "describe": "c.txt", "kcat": "c.json", "reassignment": "reassignment.json"}


class Bad(NamedTuple):
    """Content of a file, and parts of the error message: where | found | expected."""

    case: str
    format: str
    content: bytes
    message: str


def zk(case: str, message: str, *changed: dict[str, Any], without: tuple[str, ...] = ()) -> Bad:
    """A dump with changed znodes."""
    return Bad(case, "zookeeper", dump_text(dump(*changed, without=without)).encode(), message)


def zk_text(case: str, old: str, new: str, message: str) -> Bad:
    """A dump with changed text."""
    content = dump_text(dump())
    assert old in content
    return Bad(case, "zookeeper", content.replace(old, new, 1).encode(), message)


def zk_raw(case: str, content: bytes, message: str) -> Bad:
    """A dump of these bytes."""
    return Bad(case, "zookeeper", content, message)


def text(case: str, old: str, new: str, message: str) -> Bad:
    """A kafka-topics listing with changed text."""
    assert old in DESCRIBE
    return Bad(case, "describe", DESCRIBE.replace(old, new, 1).encode(), message)


def kc(case: str, change: Callable[[dict[str, Any]], object], message: str) -> Bad:
    """A kcat output with a change."""
    document = kcat()
    change(document)
    return Bad(case, "kcat", json.dumps(document).encode(), message)


def partition(case: str, message: str, **changed: Any) -> Bad:
    """A kcat output with a change in its first partition."""
    return kc(case, lambda document: document["topics"][0]["partitions"][0].update(changed), message)


def move(case: str, message: str, *entries: dict[str, Any], **changed: Any) -> Bad:
    """A reassignment of the entries."""
    document = reassignment(**({"partitions": list(entries)} if entries else {}), **changed)
    return Bad(case, "reassignment", json.dumps(document).encode(), message)


def entry(partition: Any = 0, replicas: Any = (1, 2), topic: str = "t") -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas}


def ids(*broker_ids: int) -> list[dict[str, int]]:
    """Replicas as kcat prints them."""
    return [{"id": broker_id} for broker_id in broker_ids]


STATE_0 = "/brokers/topics/t/partitions/0/state"
BIG = 2**31

ZOOKEEPER = [
    zk_text(
        "malformed line",
        '{"path": "/brokers/topics"',
        '{"path" "/brokers/topics"',
        ":2 | malformed JSON | a whole JSON",
    ),
    zk_raw(
        "truncated line", dump_text(dump()).encode()[:-20], ":14 | malformed JSON (Input data was truncated) | whole"
    ),
    zk_raw("truncated tree", dump_text(dump()[:1]).encode(), "jsonl | no znode /admin/delete_topics | whole tree"),
    zk_raw(
        "broken UTF-8",
        dump_text(dump()).encode().replace(b"/brokers/ids/1", b"/brokers/\xff/1", 1),
        ":5 | 0xff | UTF-8",
    ),
    # From Python 3.14 on the limit is the stack size in bytes: 8 MiB hold some hundred thousand levels.
    zk_raw("nested too deep", b'{"x":' + b"[" * 4_000_000 + b"\n", ":1 | nested too deep | few levels"),
    zk_text("NaN", '"czxid": 101', '"czxid": NaN', ":5 | malformed JSON | whole JSON"),
    zk_text("float version", '"version": 0', '"version": 0.0', ":1 field version | 0.0 | int"),
    zk_text(
        "czxid beyond int64", '"czxid": 101', f'"czxid": {2**63}', f":5 field czxid | {2**63} | <= 9223372036854775807"
    ),
    zk_text("version beyond int32", '"version": 7', f'"version": {BIG}', f":10 field version | {BIG} | <= 2147483647"),
    zk_text("not an object", dump_text(dump()[:1]), "[1]\n", ":1 | array | object"),
    zk("no data in a state", ":9 data | malformed JSON | whole JSON", znode(STATE_0)),
    zk("float leader", f"{STATE_0} field leader | 1.0 | int", state("t", 0, 1.0, [1])),  # type: ignore[arg-type]
    zk("wrong and truncated", "field leader | float | int", znode(STATE_0, '{"leader": 1.5, "isr": [')),
    zk("wrong and no UTF-8", "field leader | float | int", znode(STATE_0, '{"leader": 1.5, "\\udcff')),
    zk("wrong and too deep", "field leader | float | int", znode(STATE_0, '{"leader": 1.5, "x": ' + "[" * 100_000)),
    zk(
        "long number",
        "field leader | Integer value out of range | that fits",
        znode(STATE_0, f'{{"leader": {"9" * 5_000}}}'),
    ),
    zk("negative in ISR", "field isr[0] | -4 | >= 0", state("t", 0, 1, [-4])),
    zk("leader below -1", "field leader | -2 | >= -1", state("t", 0, -2, [1])),
    zk(
        "leader epoch beyond int32",
        f"field leader_epoch | {BIG} | <= 2147483647",
        state("t", 0, 1, [1], leader_epoch=BIG),
    ),
    zk("negative controller epoch", "field controller_epoch | -1 | >= 0", state("t", 0, 1, [1], controller_epoch=-1)),
    zk(
        "unknown recovery state",
        "field leader_recovery_state | 2 | <= 1",
        state("t", 0, 1, [1], leader_recovery_state=2),
    ),
    zk(
        "no ISR",
        ':9 data | no such field | field "isr"',
        znode(STATE_0, {"leader": 1, "leader_epoch": 0, "controller_epoch": 0}),
    ),
    zk("ISR outside replicas", ":9 (t-0) field isr | broker 4 | replicas [1, 2, 3]", state("t", 0, 1, [1, 4])),
    zk("state of no topic", ":15 | topic gone | znode /brokers/topics/gone", state("gone", 0, 1, [1])),
    zk(
        "partition number in a path",
        "partitions/00/state | '00' | 0 to 2147483647",
        znode(
            "/brokers/topics/t/partitions/00/state", {"leader": 1, "leader_epoch": 0, "controller_epoch": 0, "isr": [1]}
        ),
    ),
    zk("duplicate replica", ":8 (t-0) field replicas | broker 2 twice | once", assignment("t", {0: [2, 1, 2]})),
    zk(
        "non-contiguous partitions",
        ":8 | partition 2 of topic t but no partition 1 | without a gap",
        assignment("t", {0: [1], 2: [1]}),
    ),
    zk(
        "huge partition number", ":8 | partition 2147483647 of topic t | without a gap", assignment("t", {BIG - 1: [1]})
    ),
    zk(
        "partition beyond int32",
        "data of /brokers/topics/t | does not fit | <= 2147483647",
        assignment("t", {BIG: [1]}),
    ),
    zk("replica beyond int32", "data of /brokers/topics/t | does not fit | <= 2147483647", assignment("t", {0: [BIG]})),
    zk(
        "duplicate partition key",
        "data of /brokers/topics/t | key '0' twice | each key once",
        znode("/brokers/topics/t", '{"partitions": {"0": [1], "0": [2]}}'),
    ),
    zk(
        "adding outside replicas",
        "(t-0) field adding_replicas | broker 4 | replicas [1, 2, 3]",
        assignment("t", {0: [1, 2, 3]}, adding_replicas={0: [4]}),
        without=("/brokers/topics/t/partitions/1/state",),
    ),
    zk(
        "removing outside replicas",
        "(t-0) field removing_replicas | broker 5 | replicas [1, 2, 3]",
        assignment("t", {0: [1, 2, 3]}, removing_replicas={0: [5]}),
    ),
    zk(
        "adding to no partition",
        "field adding_replicas | partition 6 | partitions of the topic",
        assignment("t", {0: [1]}, adding_replicas={6: [1]}),
    ),
    zk("topic id", "field topic_id | 'short' | 22 characters", assignment("t", {0: [1]}, topic_id="short")),
    zk(
        "topic id twice",
        ":15 (u) field topic_id | of topics t and u | another id for each topic",
        assignment("u", {0: [1]}, topic_id=TOPIC_ID),
    ),
    zk("illegal topic name", ":15 | 'a b' | letters, digits", assignment("a b", {0: [1]})),
    zk("broker id of letters", "/brokers/ids/x | 'x' | 0 to 2147483647", registration(9) | {"path": "/brokers/ids/x"}),
    zk("broker id beyond int32", f"/brokers/ids/{BIG} | '{BIG}' | 0 to 2147483647", registration(BIG)),
    zk(
        "registration without version",
        'data of /brokers/ids/1 | no such field | field "version"',
        znode("/brokers/ids/1", {"host": "h"}),
    ),
    zk("registration of version 0", "field version | 0 | >= 1", registration(1, version=0)),
    zk("endpoint", "field endpoints | 'host:9092' | LISTENER://host:port", registration(1, endpoints=["host:9092"])),
    zk(
        "endpoint port",
        "field endpoints | 'A://h:70000' | LISTENER://host:port",
        registration(1, endpoints=["A://h:70000"]),
    ),
    zk(
        "security protocol",
        "field listener_security_protocol_map | 'TLS' for 'X' | one of PLAINTEXT",
        registration(1, endpoints=["X://h:1"], listener_security_protocol_map={"X": "TLS"}),
    ),
    zk("controller epoch", "data of /controller_epoch | '4.0' | a number", znode("/controller_epoch", "4.0")),
    zk(
        "controller without broker",
        'data of /controller | no such field | field "brokerid"',
        znode("/controller", {"version": 1}),
    ),
    zk(
        "config that is no text",
        "data of /config/topics/t | int | str",
        znode("/config/topics/t", {"config": {"a": 1}}),
    ),
    zk(
        "min.insync.replicas",
        "(t) field config min.insync.replicas | 'many' | 1 to",
        znode("/config/topics/t", {"config": {"min.insync.replicas": "many"}}),
    ),
    zk(
        "min.insync.replicas of 0",
        "(t) field config min.insync.replicas | '0' | 1 to",
        znode("/config/topics/t", {"config": {"min.insync.replicas": "0"}}),
    ),
    zk(
        "unclean election",
        "config unclean.leader.election.enable | 'yes' | true or false",
        znode("/config/topics/t", {"config": {"unclean.leader.election.enable": "yes"}}),
    ),
    zk(
        "default config",
        "broker default config min.insync.replicas | '-1' | 1 to",
        znode("/config/brokers/<default>", {"config": {"min.insync.replicas": "-1"}}),
    ),
    zk_raw("duplicate broker", dump_text([*dump(), registration(2)]).encode(), ":15 | broker id 2 again | once"),
    zk_raw(
        "duplicate topic", dump_text([*dump(), assignment("t", {0: [1]})]).encode(), ":15 | topic t again | first at"
    ),
    zk_raw(
        "duplicate state",
        dump_text([*dump(), state("t", 1, 2, [2])]).encode(),
        ":15 | second state of partition t-1 | one",
    ),
]

LISTING = [
    text("broken label", "Replicas: 1,2,3", "Replcas: 1,2,3", ":2 | no Replicas: | every field"),
    text("not a number", "Partition: 1", "Partition: one", ":3 field Partition | 'one' | 0 to 2147483647"),
    text(
        "digits of another script",
        "Partition: 1",
        "Partition: \u0661",
        ":3 field Partition | '\u0661' | 0 to 2147483647",
    ),
    text("overflow", "Replicas: 2,3,1", f"Replicas: 2,3,{BIG}", f":3 field Replicas | {BIG} | 0 to 2147483647"),
    text("list with a hole", "Replicas: 2,3,1", "Replicas: 2,,1", ":3 field Replicas | '' | 0 to 2147483647"),
    text("ISR outside replicas", "Isr: 2,3", "Isr: 2,9", ":3 (t-1) field isr | broker 9 | replicas [2, 3, 1]"),
    text("partition twice", "Partition: 1", "Partition: 0", ":3 | partition t-0 again | first at"),
    text("gap", "Partition: 1", "Partition: 2", ":3 | partition 2 of topic t but no partition 1 | without a gap"),
    text(
        "fewer than counted",
        "PartitionCount: 2",
        "PartitionCount: 3",
        "c.txt | 2 partitions of topic t | PartitionCount of 3",
    ),
    text("huge count", "PartitionCount: 2", "PartitionCount: 99999999999", ":1 | '99999999999' | 0 to 2147483647"),
    text(
        "unknown topic", "\tTopic: t\tPartition: 0", "\tTopic: u\tPartition: 0", ":2 | topic 'u' | own line before it"
    ),
    text("illegal topic name", "Topic: t\tTopicId", "Topic: t/u\tTopicId", ":1 | 't/u' | letters, digits"),
    text("topic id", "oEwwV51", "oEww!51", ":1 | topic id | 22 characters"),
    Bad(
        "topic id twice",
        "describe",
        (DESCRIBE + DESCRIBE.replace("Topic: t\t", "Topic: a.b\t")).encode(),
        ":1 (t) field topic_id | of topics a.b and t | another id for each topic",
    ),
    text(
        "config without a value",
        "min.insync.replicas=2",
        "min.insync.replicas",
        ":1 field Configs | 'min.insync.replicas' | name=value",
    ),
    text("config value", "min.insync.replicas=2", "min.insync.replicas=-2", ":1 (t) field config | '-2' | 1 to"),
    text(
        "stray line",
        "\tTopic: t\tPartition: 0",
        "something\n\tTopic: t\tPartition: 0",
        ":2 | 'something' | a line of kafka-topics",
    ),
    Bad("topic twice", "describe", (DESCRIBE + DESCRIBE).encode(), ":4 | topic t again | first at"),
    Bad("truncated line", "describe", DESCRIBE.encode()[:-40], ":3 | a last line without an end | truncated"),
    Bad(
        "truncated listing",
        "describe",
        "".join(DESCRIBE.splitlines(True)[:2]).encode(),
        "c.txt | 1 partition of topic t | truncated",
    ),
    Bad("broken UTF-8", "describe", DESCRIBE.encode().replace(b"Leader: 2", b"Leader: \xfe"), ":3 | 0xfe | UTF-8"),
    Bad("UTF-16 without a mark", "describe", DESCRIBE.encode("utf-16-be"), ":1 | x00 | a line of kafka-topics"),
]

KCAT = [
    Bad("truncated", "kcat", json.dumps(kcat()).encode()[:-9], "c.json | truncated | whole JSON"),
    Bad("trailing text", "kcat", json.dumps(kcat()).encode() + b"x", "c.json | trailing characters | whole JSON"),
    Bad("broken UTF-8", "kcat", json.dumps(kcat()).encode().replace(b'"t"', b'"\xff"'), "c.json | 0xff | UTF-8"),
    partition("NaN", "c.json | malformed JSON | whole JSON", leader=float("nan")),
    partition("float", "topics[0].partitions[0].leader | 1.5 | int", leader=1.5),
    partition("overflow", f"topics[0].partitions[0].leader | {BIG} | <= 2147483647", leader=BIG),
    partition("negative replica", "replicas[0].id | -1 | >= 0", replicas=ids(-1)),
    partition("text for a list", "replicas | '1,2' | array", replicas="1,2"),
    partition("ISR outside replicas", "(t-0) field isr | broker 9 | replicas [1, 2, 3]", isrs=ids(9)),
    partition("partition twice", "topics[0] | partition t-1 again | once", partition=1),
    partition("gap", "topics[0] | partition 1 of topic t but no partition 0 | without a gap", partition=5),
    kc(
        "topic twice",
        lambda listing: listing["topics"].append(listing["topics"][0]),
        "topics[1] | topic t again | first at",
    ),
    kc("illegal topic name", lambda listing: listing["topics"][0].update(topic=""), "topics[0] | '' | 1 to 249"),
    kc(
        "broker twice",
        lambda listing: listing["brokers"].append(listing["brokers"][0]),
        "brokers[3] | broker id 3 again | once",
    ),
    kc(
        "broker name",
        lambda listing: listing["brokers"][0].update(name="host"),
        "brokers[0] field name | 'host' | host:port",
    ),
    kc(
        "broker port",
        lambda listing: listing["brokers"][0].update(name="host:70000"),
        "brokers[0] field name | 'host:70000' | host:port",
    ),
    kc("no topics", lambda listing: listing.pop("topics"), 'c.json | no such field | field "topics"'),
]

REASSIGNMENT = [
    move("other version", "field version | 2 | 1", version=2),
    Bad("no partitions", "reassignment", b'{"version": 1}', 'reassignment.json | no such field | field "partitions"'),
    move("empty replica list", "partitions[0] field replicas | [] | at least one", entry(replicas=[])),
    move("duplicate replica", "partitions[0] field replicas | [1, 1] | different brokers", entry(replicas=[1, 1])),
    move("negative replica", "partitions[0].replicas[1] | -1 | >= 0", entry(replicas=[1, -1])),
    move("partition twice", "partitions[1] | partition t-0 again | once", entry(), entry()),
    move("part of a topic", "partitions[0] | partition 1 of topic t but no partition 0 | without a gap", entry(1)),
    move("illegal topic name", "partitions[0] | 't u' | letters, digits", entry(topic="t u")),
    move("float partition", "partitions[0].partition | 0.0 | int", entry(0.0)),
    Bad(
        "stray text",
        "reassignment",
        b"Current partition replica assignment\nsorry\n",
        ":2 | 'sorry' | Proposed partition",
    ),
    Bad(
        "heading alone",
        "reassignment",
        b"Current partition replica assignment\n\n",
        "reassignment.json | no JSON document | one under",
    ),
    Bad(
        "truncated",
        "reassignment",
        b'Current partition replica assignment\n{"version":1,"parti\n',
        ":2 | truncated | whole JSON",
    ),
]

ANY = [Bad(f"empty {name}", name, b"", f"{NAMES[name]} | an empty file | a snapshot") for name in NAMES] + [
    Bad(
        f"damaged gzip {name}",
        name,
        gzip.compress(content.encode())[:-4],
        f"{NAMES[name]} | a damaged gzip file | whole",
    )
    for name, content in CONTENT.items()
]

TABLE = [*ZOOKEEPER, *LISTING, *KCAT, *REASSIGNMENT, *ANY]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.format}: {row.case}")
def test_refused(row: Bad, tmp_path: Path) -> None:
    path = tmp_path / NAMES[row.format]
    path.write_bytes(row.content)
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(path, row.format)
    error = caught.value
    location, actual, expected = row.message.split(" | ")
    assert path.name in error.where
    assert location in error.where
    assert actual in error.actual
    assert expected in error.expected

    result = CliRunner().invoke(group, ["convert", str(path), str(tmp_path / "out"), "--from", row.format])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert sorted(tmp_path.iterdir()) == [path]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    name=st.sampled_from(sorted(CONTENT)),
    changes=st.lists(
        st.tuples(st.integers(0, 2**16), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=3
    ),
)
def test_any_change_raises_only_snapshot_error(
    name: str, changes: list[tuple[int, bytes, int]], tmp_path: Path
) -> None:
    content = CONTENT[name].encode()
    for position, inserted, removed in changes:
        offset = position % (len(content) + 1)
        content = content[:offset] + inserted + content[offset + removed :]
    path = tmp_path / NAMES[name]
    path.write_bytes(content)
    with contextlib.suppress(SnapshotError):
        read_snapshot(path, name).to_cluster()


@pytest.mark.parametrize(
    "name, content", [("c.zookeeper.jsonl", dump_text(dump())), ("c.txt", DESCRIBE)], ids=["zookeeper", "describe"]
)
def test_line_above_limit_is_refused(name: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LINE_BYTES_MAX", 100)
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(SnapshotError, match=r":\d+: found a longer line, expected at most 100 bytes"):
        read_snapshot(path)


def test_document_above_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "DOCUMENT_BYTES_MAX", 1_000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(json.dumps(kcat(padding="x" * 1_000_000)).encode()))
    with pytest.raises(SnapshotError, match="found a larger file, expected at most 1000 bytes"):
        read_snapshot(path)


def test_repeated_keys_cost_no_quadratic_time(tmp_path: Path) -> None:
    # 100,000 keys, and an unknown list that could be mistaken for a repeated key.
    partitions = {number: [1] for number in range(100_000)}
    path = tmp_path / "c.zookeeper.jsonl"
    path.write_text(dump_text(dump(assignment("wide", partitions, something_newer=[]))))
    assert len(read_snapshot(path)) == 100_002


@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_missing_file_or_directory_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "missing" if kind == "missing" else tmp_path
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(path, "kcat")
    assert str(path) in caught.value.where
