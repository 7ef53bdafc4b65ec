"""The description of new topics in the response to CreateTopics since version 5 (KIP-525)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER
from kframe_kafka_wire.sandbox.fake_broker import DESCRIBE_CONFIGS, FakeBroker

from kframe.testing.clusters import healthy
from verification.kafka_wire.client import Client
from verification.kafka_wire.fake_cluster import settings_response
from verification.kafka_wire.served import FakeRecords, Served, acl_record

CONFIG = {"log.retention.hours": "9", "num.partitions": "3", "default.replication.factor": "2"}
#: Settings in the server.properties of the broker.
STATIC = {"log.retention.hours": "2", "log.index.size.max.bytes": "1000000"}
OWN = [{"name": "cleanup.policy", "value": "compact"}]


@pytest.fixture
def broker(fakes: Callable[..., FakeBroker]) -> FakeBroker:
    broker = fakes()
    broker.responses[DESCRIBE_CONFIGS] = settings_response(STATIC)
    return broker


def created(client: Client, version: int, name: str, **fields: Any) -> Any:
    topic = {"name": name, "num_partitions": 4, "replication_factor": 1, "configs": OWN, **fields}
    validate_only = fields.pop("validate_only", False)
    (result,) = client.ask(19, version, topics=[topic], timeout=9000, validate_only=validate_only)["topics"]
    assert result["error_code"] == 0
    return result


def described(client: Client, name: str) -> dict[str, tuple[str, int]]:
    """Value and source of each setting in DescribeConfigs."""
    return {key: (config["value"], config["config_source"]) for key, config in client.describe_topic(name).items()}


@pytest.mark.parametrize("version", [5, 6, 7])
def test_create_topics_returns_configs_as_describe_configs_does(version: int, broker: FakeBroker) -> None:
    with Served(brokers=[broker.registration()], config=CONFIG) as served, served.client() as client:
        result = created(client, version, "new")
        assert (result["num_partitions"], result["replication_factor"], result["topic_config_error_code"]) == (4, 1, 0)
        described_configs = {config["name"]: (config["value"], config["config_source"]) for config in result["configs"]}
        assert described_configs == described(client, "new")
        assert described_configs["cleanup.policy"] == ("compact", 1)
        assert described_configs["retention.ms"] == ("7200000", 5)  # As in Kafka: the key in hours is not the first.
        assert not any(config["read_only"] or config["is_sensitive"] for config in result["configs"])


def test_topic_configs_inherit_from_brokers_not_from_the_controller(broker: FakeBroker) -> None:
    """The controller's own server.properties has no influence on topics."""
    config = {**CONFIG, "log.index.size.max.bytes": "4444", "log.segment.bytes": "5555"}
    with Served({"t": [healthy(1)]}, [broker.registration()], config) as served, served.client() as client:
        for _ in range(3):
            shown = described(client, "t")
            assert shown["segment.index.bytes"] == ("1000000", 4)
            assert shown["retention.ms"] == ("7200000", 5)  # The same as Kafka shows for the key in hours.
            assert shown["segment.bytes"] == ("1073741824", 5)
    assert len(broker.others) == 1, "once for each registration"


def test_a_standby_describes_broker_settings(broker: FakeBroker) -> None:
    registration = {
        "version": 5,
        "host": None,
        "port": -1,
        "timestamp": "1",
        "endpoints": [f"PLAINTEXT://127.0.0.1:{broker.port}"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    }
    records = FakeRecords(
        {"/brokers/ids/1": json.dumps(registration), "/brokers/ids/2": "?", "/brokers/topics/t": "{}"}
    )
    with Served(config=CONFIG, records=records, standby=True) as served, served.client() as client:
        assert described(client, "t")["segment.index.bytes"] == ("1000000", 4)


def test_synonyms_name_the_setting_of_the_broker(broker: FakeBroker) -> None:
    with Served({"t": [healthy(1)]}, [broker.registration()], CONFIG) as served, served.client() as client:
        synonyms = client.describe_topic("t")["segment.index.bytes"]["synonyms"]
        assert [(synonym["name"], synonym["value"], synonym["source"]) for synonym in synonyms] == [
            ("log.index.size.max.bytes", "1000000", 4),
            ("log.index.size.max.bytes", "10485760", 5),
        ]


def test_settings_are_defaults_if_no_broker_responds(broker: FakeBroker) -> None:
    broker.responses[DESCRIBE_CONFIGS] = settings_response({}, 29)
    with Served({"t": [healthy(1)]}, [broker.registration()], CONFIG) as served, served.client() as client:
        assert described(client, "t")["retention.ms"] == ("604800000", 5)


def test_validate_only_returns_the_configs() -> None:
    with Served(config=CONFIG) as served, served.client() as client:
        result = created(client, 7, "new", num_partitions=-1, replication_factor=-1, validate_only=True)
        assert (result["num_partitions"], result["replication_factor"]) == (3, 2)
        assert {config["name"]: config["value"] for config in result["configs"]}["cleanup.policy"] == "compact"
        assert result["topic_id"] == bytes(16)
        assert client.ask(3, 12, topics=None)["topics"] == []


def test_create_topics_hides_configs_without_permission() -> None:
    config = {**CONFIG, "authorizer.class.name": ACL_AUTHORIZER}
    records = FakeRecords({"/kafka-acl/Topic/new": acl_record(("User:ANONYMOUS", "Allow", "Create", "*"))})
    with Served(config=config, records=records) as served, served.client() as client:
        result = created(client, 7, "new")
        shape = result["num_partitions"], result["replication_factor"], result["topic_config_error_code"]
        assert shape == (-1, -1, 29)
        assert (result["configs"] or (), result["topic_id"]) == ((), bytes(16))
