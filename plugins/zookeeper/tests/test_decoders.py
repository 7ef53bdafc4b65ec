"""Input of every Kafka release that each decoder accepts. Input that it refuses, with field, actual and expected
value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from kframe_zookeeper.znodes.brokers import decode_broker
from kframe_zookeeper.znodes.cluster import (
    ProducerIdBlock,
    decode_cluster_id,
    decode_controller,
    decode_controller_epoch,
    decode_producer_ids,
)
from kframe_zookeeper.znodes.configs import ConfigNotification, decode_config, decode_config_change
from kframe_zookeeper.znodes.lists import decode_log_dir_event, decode_partitions, decode_targets
from kframe_zookeeper.znodes.ordering import properties_order, scala_order
from kframe_zookeeper.znodes.paths import sequence_of
from kframe_zookeeper.znodes.strict import ZNODE_BYTES_MAX
from kframe_zookeeper.znodes.topics import StoredTopic, decode_state, decode_topic, encode_topics, table_of

from kframe.model.brokers import Endpoint, Registration
from kframe.model.tables import Targets
from kframe.plugin import ZnodeError
from kframe.plugin.znodes import ControllerZnode

pytestmark = pytest.mark.kernel

STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'
STATE_PATH = "/brokers/topics/t/partitions/0/state"
ID = "mA8vAkY2Ssm6tZkQZf3h0A"


def state(raw: bytes | None) -> Any:
    return decode_state(raw, STATE_PATH)


def topic(raw: bytes | None) -> StoredTopic:
    return decode_topic("t", raw)


def broker(raw: bytes | None) -> Registration:
    return decode_broker("7", raw, 9)


def config(raw: bytes | None) -> Any:
    return decode_config(raw, "/config/topics/t")


def change(raw: bytes | None) -> ConfigNotification:
    return decode_config_change(raw, "/config/changes/config_change_0000000001")


def partitions(raw: bytes | None) -> Any:
    return decode_partitions(raw)


def log_dir_event(raw: bytes | None) -> int:
    return decode_log_dir_event(raw, "/log_dir_event_notification/log_dir_event_0000000001")


PLAIN = Endpoint("PLAINTEXT", "h", 9092)
PARTS = b'"partitions":{"0":[1,2],"1":[2,3]}'
NO_EXTRA: dict[str, Any] = {}


def stored(topic_id: bytes | None = None, adding: Any = None, removing: Any = None) -> StoredTopic:
    return StoredTopic("t", topic_id, [[1, 2], [2, 3]], adding or {}, removing or {}, NO_EXTRA)


ID_BYTES = bytes.fromhex("980f2f0246364ac9bab5991065fde1d0")
READ: list[tuple[str, Callable[[bytes | None], Any], bytes | None, Any]] = [
    ("topic v1", topic, b'{"version":1,' + PARTS + b"}", stored()),
    ("topic v2", topic, b'{"version":2,' + PARTS + b',"adding_replicas":{},"removing_replicas":{}}', stored()),
    ("topic v3", topic, b'{"version":3,' + PARTS + b',"topic_id":"' + ID.encode() + b'"}', stored(ID_BYTES)),
    ("topic being moved", topic, b"{" + PARTS + b',"adding_replicas":{"0":[1]},"removing_replicas":{"0":[2],"1":[3]}}',
     stored(None, {0: [1]}, {0: [2], 1: [3]})),
    ("topic without data", topic, None, StoredTopic("t", None, [], {}, {}, NO_EXTRA)),
    ("topic without keys", topic, b"{}", StoredTopic("t", None, [], {}, {}, NO_EXTRA)),
    ("broker v1", broker, b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"1"}',
     Registration(7, 9, (PLAIN,))),
    ("broker v2", broker, b'{"version":2,"host":"x","port":1,"endpoints":["PLAINTEXT://h:9092"]}',
     Registration(7, 9, (PLAIN,))),
    ("broker v3", broker, b'{"version":3,"endpoints":["PLAINTEXT://h:9092"],"rack":"r"}',
     Registration(7, 9, (PLAIN,), "r")),
    ("broker v4", broker,
     b'{"version":4,"host":null,"port":-1,"endpoints":["IN://[::1]:1"],"listener_security_protocol_map":{"IN":"SSL"}}',
     Registration(7, 9, (Endpoint("IN", "::1", 1, "SSL"),))),
    ("broker v5", broker, b'{"features":{"f":{"min_version":1,"max_version":2}},"endpoints":["SSL://:9"],"version":5}',
     Registration(7, 9, (Endpoint("SSL", "", 9, "SSL"),))),
    ("broker without a rack", broker, b'{"version":4,"rack":null,"endpoints":[]}', Registration(7, 9)),
    ("controller 0.7", decode_controller, b"3", ControllerZnode(brokerid=3)),
    ("controller v1", decode_controller, b'{"version":1,"brokerid":1,"timestamp":"17"}',
     ControllerZnode(version=1, brokerid=1, timestamp="17")),
    ("epoch", decode_controller_epoch, b"0", 0),
    ("config without data", config, None, {}),
    ("config", config, b'{"version":1,"config":{"a":"1"}}', {"a": "1"}),
    ("config change v1", change, b'{"version":1,"entity_type":"topics","entity_name":"t"}',
     ConfigNotification("topics", "t")),
    ("config change v2", change, b'{"version":2,"entity_path":"users/u/clients/c"}',
     ConfigNotification("users", "u/clients/c")),
    ("no producer ids yet", decode_producer_ids, None, None),
    ("producer ids", decode_producer_ids, b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
     ProducerIdBlock(1, 0, 999)),
    ("preferred election", partitions, b'{"version":1,"partitions":[{"topic":"t","partition":3}]}', (("t", 3),)),
    ("lost log directory", log_dir_event, b'{"version":1,"broker":4,"event":1}', 4),
]  # fmt: skip


@pytest.mark.parametrize("decode, raw, expected", [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_znodes_of_every_kafka_release_are_read(
    decode: Callable[[bytes | None], Any], raw: bytes | None, expected: Any
) -> None:
    assert decode(raw) == expected


def test_fields_of_tools_in_a_reassignment_are_ignored() -> None:
    raw = b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[4,5],"log_dirs":["any","any"]}]}'
    targets = decode_targets(raw)
    expected = Targets.of([(("t", 1), [4, 5])])
    assert targets.names == expected.names
    for column in ("topic", "partition", "cancel"):
        assert np.array_equal(getattr(targets, column), getattr(expected, column))
    assert targets.replicas[0].tolist() == [4, 5]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"partitions":{"0":[1]},"version":3,"zone":{"a":[1.50,"\\u00e9"]}}',
        b'{ "zone" : {"a":[1.50,"\\u00e9"]}, "version":3, "partitions":{ "0":[1] } }',
    ],
)
def test_unknown_fields_of_a_topic_are_written_back_unchanged(raw: bytes) -> None:
    decoded = topic(raw)
    (encoded,) = encode_topics(table_of([decoded]), [decoded.extra])
    assert encoded == (
        b'{"partitions":{"0":[1]},"adding_replicas":{},"removing_replicas":{},"version":3,'
        b'"zone":{"a":[1.50,"\\u00e9"]}}'
    )


def changed(old: bytes, new: bytes) -> bytes:
    """STATE with ``old`` replaced, which must be present."""
    assert old in STATE
    return STATE.replace(old, new)


REFUSED: list[tuple[str, Callable[[bytes | None], Any], bytes | None, str]] = [
    ("no data", state, None, f"{STATE_PATH}: found no data, expected a JSON object"),
    ("nothing", state, b"", "malformed JSON"),
    ("too long", state, b" " * (ZNODE_BYTES_MAX + 1), "found 4194305 bytes, expected at most 4194304"),
    ("a field missing", state, changed(b'"leader":1,', b""), "missing field \"leader\""),
    ("a text for a number", state, changed(b'"leader":1', b'"leader":"1"'), "field leader: found '1', expected int"),
    ("beyond int32", state, changed(b'"leader":1', b'"leader":2147483648'), "field leader: found 2147483648"),
    ("below no leader", state, changed(b'"leader":1', b'"leader":-2'), "found -2, expected int >= -1"),
    ("ISR twice", state, changed(b"[1,2]", b"[1,1]"), "field isr: found 2 brokers, some of them twice"),
    ("a key twice", state, changed(b'"leader":1', b'"leader":1,"leader":2'), "key 'leader' twice in one object"),
    ("broken UTF-8", state, changed(b'"leader":1', b'"leader":1,"x":"\xff"'), "found broken UTF-8 (byte 0xff)"),
    ("deep", state, changed(b'"leader":1', b'"leader":1,"x":' + b"[" * 17 + b"]" * 17), "nested more than 16 levels"),
    ("partition twice", topic, b'{"partitions":{"0":[1],"0":[2]}}', "key '0' twice"),
    ("partition 01", topic, b'{"partitions":{"01":[1]}}', "field partitions key: found str, expected int"),
    ("partition missing", topic, b'{"partitions":{"1":[1]}}', "found no partition 0, expected all up to 1"),
    ("no replicas", topic, b'{"partitions":{"0":[]}}', "field partitions.0: found 0 replicas"),
    ("adding strangers", topic, b'{"partitions":{"0":[1]},"adding_replicas":{"0":[2]}}', "field adding_replicas.0"),
    ("removing nowhere", topic, b'{"partitions":{"0":[1]},"removing_replicas":{"1":[1]}}', "field removing_replicas.1"),
    ("a bad topic id", topic, b'{"topic_id":"short"}', "field topic_id: found topic id 'short', expected 22"),
    ("the zero id", topic, b'{"topic_id":"AAAAAAAAAAAAAAAAAAAAAA"}', "found the id of no topic"),
    ("broker version 0", broker, b'{"version":0}', "/brokers/ids/7 field version: found 0, expected int >= 1"),
    ("broker endpoint", broker, b'{"version":2,"endpoints":["nowhere"]}', "expected LISTENER://host:port"),
    ("broker port", broker, b'{"version":2,"endpoints":["A://h:70000"]}', "expected LISTENER://host:port"),
    ("broker protocol", broker, b'{"version":2,"endpoints":["A://h:1"]}',
     "found 'A' for 'A', expected one of PLAINTEXT"),
    ("controller without id", decode_controller, b"{}", "/controller: missing field"),
    ("controller beyond int32", decode_controller, b"2147483648", "expected a number from 0 to 2147483647"),
    ("epoch of nothing", decode_controller_epoch, None, "/controller_epoch: found ''"),
    ("epoch with a sign", decode_controller_epoch, b"-1", "found '-1'"),
    ("epoch at length", decode_controller_epoch, b"1" * 5000, "expected a number"),
    ("epoch in no ASCII", decode_controller_epoch, "٣".encode(), "expected a number"),
    ("cluster id missing", decode_cluster_id, b'{"version":"1"}', "/cluster/id: missing field"),
    ("producer ids as numbers", decode_producer_ids, b'{"version":1,"broker":1,"block_start":0,"block_end":9}',
     "field block_start: found 0, expected str"),
    ("producer ids backwards", decode_producer_ids,
     b'{"version":1,"broker":1,"block_start":"9","block_end":"8"}', "field block_end: found 8, expected 9 to"),
    ("producer ids beyond int64", decode_producer_ids,
     b'{"version":1,"broker":1,"block_start":"0","block_end":"9223372036854775808"}', "field block_end"),
    ("config as numbers", config, b'{"version":1,"config":{"a":1}}', "/config/topics/t field config"),
    ("config change without entity", change, b'{"version":2}', "found no field entity_path"),
    ("config change of a stranger", change, b'{"version":2,"entity_path":"moons/io"}', "found 'moons/io'"),
    ("partition of no topic", partitions, b'{"version":1,"partitions":[{"topic":"a/b","partition":0}]}',
     "/admin/preferred_replica_election field partitions[0].topic: found topic name 'a/b'"),
    ("target of topic ..", decode_targets,
     b'{"version":1,"partitions":[{"topic":"..","partition":0,"replicas":[1]}]}',
     "/admin/reassign_partitions field partitions[0].topic"),
    ("lost directory without broker", log_dir_event, b'{"version":1,"event":1}', 'missing field "broker"'),
]  # fmt: skip


@pytest.mark.parametrize("decode, raw, says", [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(decode: Callable[[bytes | None], Any], raw: bytes | None, says: str) -> None:
    with pytest.raises(ZnodeError) as caught:
        decode(raw)
    assert says in str(caught.value).replace("`", "")


@pytest.mark.parametrize("name", ["", ".", "a/b", "a\nb", "ä", "x" * 250])
def test_invalid_topic_name_is_refused(name: str) -> None:
    with pytest.raises(ZnodeError, match="topic name"):
        decode_topic(name, b"{}")


@pytest.mark.parametrize("name", ["-1", "01", "x", "", "2147483648"])
def test_broker_znode_with_a_non_numeric_name_is_refused(name: str) -> None:
    with pytest.raises(ZnodeError, match=f"/brokers/ids/{name}: found '{name}'"):
        decode_broker(name, b'{"version":1}', 9)


def test_columns_of_several_topics() -> None:
    first, second = topic(b"{" + PARTS + b',"adding_replicas":{"1":[3]}}'), topic(b'{"partitions":{"0":[9]}}')
    table = table_of([first, second])
    assert table.partition_counts.tolist() == [2, 1]
    assert [table.replicas[row].tolist() for row in range(3)] == [[1, 2], [2, 3], [9]]
    assert [table.adding[row].tolist() for row in range(3)] == [[], [3], []]
    raws = list(encode_topics(table))
    assert [topic(raw) for raw in raws] == [first, second]


def test_repeated_replica_counts_at_its_first_position() -> None:
    decoded = topic(b'{"partitions":{"0":[4,9,4],"1":[5,9],"2":[7,7]}}')
    assert (decoded.replicas, decoded.duplicates) == ([[4, 9], [5, 9], [7]], (0, 2))


def test_key_order_follows_java_hash_codes() -> None:
    # The hash codes of "Aa" and "BB" are equal in Java. Properties keep insertion order for equal codes.
    assert scala_order([str(number) for number in range(11, -1, -1)])[:3] == ["11", "0", "1"]
    assert properties_order(["BB", "Aa"]) == ["BB", "Aa"]
    assert properties_order(["\U0001f600", "a"]) == ["a", "\U0001f600"]


@pytest.mark.parametrize(
    "name, number",
    [
        ("config_change_0000000012", 12),
        ("log_dir_event_-2147483648", -2_147_483_648),
        ("config_change_12", None),
        ("config_change_00000000x2", None),
    ],
)
def test_numbers_of_sequential_nodes(name: str, number: int | None) -> None:
    assert sequence_of(name) == number


def test_decoded_record_keeps_no_reference_to_its_bytes() -> None:
    extra = topic(b'{"x":"' + b"y" * 100 + b'"}').extra
    assert {name: bytes(value) for name, value in extra.items()} == {"x": b'"' + b"y" * 100 + b'"'}
    assert isinstance(extra["x"], msgspec.Raw)
