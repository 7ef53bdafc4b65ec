"""Error messages for invalid settings, compared with Apache Kafka's own controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kframe.testing.clusters import healthy
from kframe.testing.waiting import until
from verification.kafka_wire.client import Client
from verification.kafka_wire.served import Served
from verification.zookeeper.handover import ClusterFixture

CREATE_TOPICS, INCREMENTAL_ALTER_CONFIGS = (19, 5), (44, 1)
TOPIC, BROKER = 2, 4
SET, APPEND, SUBTRACT = 0, 2, 3
INVALID_CONFIG, INVALID_REQUEST, TOPIC_ALREADY_EXISTS = 40, 42, 36
TIERED = "Tiered Storage functionality is disabled in the broker"

#: Topic settings that Kafka refuses.
TOPIC_TABLE: tuple[Mapping[str, str], ...] = (
    {"no.such.setting": "1"}, {"retention.ms": "soon"}, {"retention.ms": "-2"}, {"retention.ms": ""},
    {"retention.ms": "9223372036854775808"}, {"retention.bytes": "1.5"}, {"segment.bytes": "13"},
    {"segment.bytes": "2147483648"}, {"segment.ms": "0"}, {"segment.jitter.ms": "-1"}, {"segment.index.bytes": "3"},
    {"flush.messages": "0"}, {"flush.ms": "-1"}, {"max.message.bytes": "-1"}, {"index.interval.bytes": "x"},
    {"delete.retention.ms": "-5"}, {"min.compaction.lag.ms": "-1"}, {"max.compaction.lag.ms": "0"},
    {"min.compaction.lag.ms": "20", "max.compaction.lag.ms": "10"}, {"file.delete.delay.ms": "-1"},
    {"min.cleanable.dirty.ratio": "1.5"}, {"min.cleanable.dirty.ratio": "-2"}, {"min.cleanable.dirty.ratio": "half"},
    {"min.cleanable.dirty.ratio": "12345678.5"}, {"cleanup.policy": "shred"}, {"cleanup.policy": "compact, shred"},
    {"unclean.leader.election.enable": "maybe"}, {"min.insync.replicas": "0"}, {"compression.type": "rar"},
    {"compression.gzip.level": "0"}, {"compression.gzip.level": "10"}, {"compression.lz4.level": "0"},
    {"compression.lz4.level": "18"}, {"compression.zstd.level": "23"}, {"preallocate": "1"},
    {"message.format.version": "9x"}, {"message.timestamp.type": "Never"}, {"message.timestamp.after.max.ms": "-1"},
    {"message.timestamp.before.max.ms": "-1"}, {"leader.replication.throttled.replicas": "0:1,x"},
    {"follower.replication.throttled.replicas": "all"}, {"message.downconversion.enable": ""},
    {"remote.storage.enable": "true"}, {"remote.storage.enable": "yes"}, {"local.retention.ms": "-3"},
    {"local.retention.bytes": "-3"}, {"remote.log.copy.disable": "true"}, {"remote.log.delete.on.disable": "true"},
    {"retention.ms": "x", "segment.bytes": "1"},
)  # fmt: skip
#: Broker defaults that Kafka refuses.
BROKER_TABLE: tuple[Mapping[str, str], ...] = (
    {"log.retention.ms": "soon"},
    {"log.cleaner.threads": "-1"},
    {"log.cleaner.min.cleanable.ratio": "2"},
    {"message.max.bytes": "-1"},
    {"num.io.threads": "0"},
    {"zookeeper.connect": "nowhere:1"},
    {"broker.id": "7"},
    {"compression.type": "rar"},
    {"log.cleanup.policy": "shred"},
    {"min.insync.replicas": "0"},
    {"listeners": "PLAINTEXT://:1"},
    {"ssl.keystore.location": "/k"},
    {"unclean.leader.election.enable": "perhaps"},
    {"max.connections": "-1"},
    {"log.segment.bytes": "13"},
    {"listener.name.internal.ssl.keystore.location": "/k"},
    {"log.message.timestamp.type": "Never"},
    {"log.cleaner.io.buffer.load.factor": "much"},
)
#: List operations on settings that are not lists.
LIST_TABLE = (
    (TOPIC, "t", APPEND, "retention.ms"),
    (TOPIC, "t", SUBTRACT, "flush.ms"),
    (BROKER, "", APPEND, "num.io.threads"),
)


def created(client: Client, config: Mapping[str, str | None]) -> tuple[int, str | None]:
    """Error code and message of a topic creation. It is only validated."""
    configs = [{"name": name, "value": value} for name, value in config.items()]
    topic = {"name": "new", "num_partitions": 1, "replication_factor": 1, "configs": configs}
    (response,) = client.ask(*CREATE_TOPICS, topics=[topic], timeout=9000, validate_only=True)["topics"]
    return response["error_code"], response["error_message"]


def altered(
    client: Client, kind: int, name: str, config: Mapping[str, str | None], operation: int = SET
) -> tuple[int, str | None]:
    """Error code and message of a config change that is only validated."""
    configs = [{"name": key, "value": value, "config_operation": operation} for key, value in config.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    (response,) = client.ask(*INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=True)["responses"]
    return response["error_code"], response["error_message"]


def refusals(client: Client) -> dict[Any, tuple[int, str | None]]:
    """The controller's errors for all entries of the tables."""
    results: dict[Any, tuple[int, str | None]] = {}
    for config in TOPIC_TABLE:
        results["create", *config.items()] = created(client, config)
        results["alter", *config.items()] = altered(client, TOPIC, "t", config)
    for config in BROKER_TABLE:
        results["brokers", *config.items()] = altered(client, BROKER, "", config)
    for kind, name, operation, key in LIST_TABLE:
        results[kind, operation, key] = altered(client, kind, name, {key: "1"}, operation)
    results["null", "create"] = created(client, {"retention.ms": None, "flush.ms": "1"})
    results["null", "alter"] = altered(client, TOPIC, "t", {"retention.ms": None})
    return results


def topic_exists(client: Client) -> bool:
    """Create the topic whose settings are altered. A broker that has just started may refuse it at first."""
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "configs": []}
    (response,) = client.ask(*CREATE_TOPICS, topics=[topic], timeout=60_000, validate_only=False)["topics"]
    return response["error_code"] in (0, TOPIC_ALREADY_EXISTS)


@pytest.fixture
def kframe_client() -> Iterator[Client]:
    with Served({"t": [healthy(1)]}, (1,)) as served, served.client() as client:
        yield client


def test_refusals_name_the_setting(kframe_client: Client) -> None:
    """Users of Kafka's tools must see which setting to change."""
    for key, (code, message) in refusals(kframe_client).items():
        assert code in (INVALID_CONFIG, INVALID_REQUEST), (key, code, message)
        assert message, key
        names = [entry[0] for entry in key[1:] if isinstance(entry, tuple)]
        assert not names or any(name in message for name in names) or TIERED in message, (key, message)


@pytest.mark.parametrize("system", ["true", "false"])
def test_tiered_storage_is_refused_unless_the_cluster_has_it(system: str) -> None:
    settings = {"remote.log.storage.system.enable": system}
    with Served({"t": [healthy(1)]}, (1,), controller_config=settings) as served, served.client() as client:
        refused = f"{TIERED}. Topic cannot be configured with remote log storage."
        expected = (0, None) if system == "true" else (INVALID_CONFIG, refused)
        assert created(client, {"remote.storage.enable": "true"}) == expected
        code, message = altered(client, TOPIC, "t", {"remote.storage.enable": "true"})
        assert (code, message is None) == (expected[0], system == "true")


NOT_VALID = "Invalid value {} for configuration local.{}: Value must not be {}"
#: Settings together with remote.storage.enable=true, and the expected message.
WITH_TIERED: tuple[tuple[Mapping[str, str], str | None], ...] = (
    ({"cleanup.policy": "compact"}, "Remote log storage is unsupported for the compacted topics"),
    (
        {"retention.ms": "10", "local.retention.ms": "11"},
        NOT_VALID.format(11, "retention.ms", "more than retention.ms property value: 10"),
    ),
    (
        {"local.retention.ms": "-1"},
        NOT_VALID.format(-1, "retention.ms", "-1 as retention.ms value is set as 604800000."),
    ),
    (
        {"retention.bytes": "10", "local.retention.bytes": "11"},
        NOT_VALID.format(11, "retention.bytes", "more than retention.bytes property value: 10"),
    ),
    ({"local.retention.bytes": "5"}, None),
)


@pytest.mark.parametrize(("config", "message"), WITH_TIERED)
def test_tiered_storage_limits_other_settings(config: Mapping[str, str], message: str | None) -> None:
    settings = {"remote.log.storage.system.enable": "true"}
    with Served({}, (1,), controller_config=settings) as served, served.client() as client:
        code = 0 if message is None else INVALID_CONFIG
        assert created(client, {"remote.storage.enable": "true", **config}) == (code, message)


def test_refusals_equal_those_of_kafka(kframe_client: Client, kafka: ClusterFixture) -> None:
    """Error codes and messages are compared with those of Apache Kafka 3.9.1's own controller."""
    with Client(kafka.cluster.brokers[kafka.controller()[0]].address) as client:
        assert until(lambda: topic_exists(client))
        kafkas = refusals(client)
    ours = refusals(kframe_client)
    assert {key: (ours[key], kafkas[key]) for key in kafkas if ours[key] != kafkas[key]} == {}
