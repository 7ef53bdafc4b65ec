"""What CreateTopics tells of new topics from version 5 on (KIP-525)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kframe_kafka_wire.authorizer import ACL_AUTHORIZER
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.served import FakeRecords, Served
from kframe_kafka_wire.testing.settings_broker import SettingsBroker

from kframe.testing.clusters import healthy

CONFIG = {"log.retention.hours": "9", "num.partitions": "3", "default.replication.factor": "2"}
#: Settings in the server.properties of the broker.
STATIC = {"log.retention.hours": "2", "log.index.size.max.bytes": "1000000"}
OWN = [{"name": "cleanup.policy", "value": "compact"}]


@pytest.fixture
def broker() -> Iterator[SettingsBroker]:
    broker = SettingsBroker(STATIC)
    yield broker
    broker.close()


def created(client: Client, version: int, name: str, **more: Any) -> Any:
    topic = {"name": name, "num_partitions": 4, "replication_factor": 1, "configs": OWN, **more}
    validate_only = more.pop("validate_only", False)
    (told,) = client.ask(19, version, topics=[topic], timeout=9000, validate_only=validate_only)["topics"]
    assert told["error_code"] == 0
    return told


def described(client: Client, name: str) -> dict[str, tuple[str, int]]:
    """What DescribeConfigs says of each setting: its value and where that comes from."""
    resource = {"resource_type": 2, "resource_name": name, "configuration_keys": None}
    (told,) = client.ask(32, 4, resources=[resource])["results"]
    return {one["name"]: (one["value"], one["config_source"]) for one in told["configs"]}


@pytest.mark.parametrize("version", [5, 6, 7])
def test_it_tells_all_settings_as_describe_configs_does(version: int, broker: SettingsBroker) -> None:
    with Served(brokers=[broker.registration()], config=CONFIG) as world, world.client() as client:
        told = created(client, version, "new")
        assert (told["num_partitions"], told["replication_factor"], told["topic_config_error_code"]) == (4, 1, 0)
        found = {one["name"]: (one["value"], one["config_source"]) for one in told["configs"]}
        assert found == described(client, "new")
        assert found["cleanup.policy"] == ("compact", 1)
        assert found["retention.ms"] == ("7200000", 5)  # as Kafka has it: hours are not the first of the keys
        assert not any(one["read_only"] or one["is_sensitive"] for one in told["configs"])


def test_settings_are_those_of_brokers_and_not_our_own(broker: SettingsBroker) -> None:
    """What stands in the server.properties of this controller says nothing of the cluster."""
    config = {**CONFIG, "log.index.size.max.bytes": "4444", "log.segment.bytes": "5555"}
    with Served({"t": [healthy(1)]}, [broker.registration()], config) as world, world.client() as client:
        for _ in range(3):
            shown = described(client, "t")
            assert shown["segment.index.bytes"] == ("1000000", 4)
            assert shown["retention.ms"] == ("7200000", 5)  # as Kafka says of what hours set
            assert shown["segment.bytes"] == ("1073741824", 5)
    assert len(broker.asked) == 1, "once for each registration"


def test_stand_by_shows_the_settings_of_a_broker_too(broker: SettingsBroker) -> None:
    registration = {
        "version": 5, "host": None, "port": -1, "timestamp": "1", "endpoints": [f"PLAINTEXT://127.0.0.1:{broker.port}"],
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
    }  # fmt: skip
    records = FakeRecords(
        {"/brokers/ids/1": json.dumps(registration), "/brokers/ids/2": "?", "/brokers/topics/t": "{}"}
    )
    with Served(config=CONFIG, records=records, standby=True) as world, world.client() as client:
        assert described(client, "t")["segment.index.bytes"] == ("1000000", 4)


def test_synonyms_name_the_setting_of_the_broker(broker: SettingsBroker) -> None:
    with Served({"t": [healthy(1)]}, [broker.registration()], CONFIG) as world, world.client() as client:
        resource = {"resource_type": 2, "resource_name": "t", "configuration_keys": ["segment.index.bytes"]}
        (answer,) = client.ask(32, 4, resources=[resource], include_synonyms=True)["results"]
        ((entry),) = answer["configs"]
        assert [(one["name"], one["value"], one["source"]) for one in entry["synonyms"]] == [
            ("log.index.size.max.bytes", "1000000", 4), ("log.index.size.max.bytes", "10485760", 5),
        ]  # fmt: skip


def test_settings_without_a_broker_that_answers_are_defaults(broker: SettingsBroker) -> None:
    broker.code = 29
    with Served({"t": [healthy(1)]}, [broker.registration()], CONFIG) as world, world.client() as client:
        assert described(client, "t")["retention.ms"] == ("604800000", 5)


def test_what_is_only_checked_is_told_as_it_would_be() -> None:
    with Served(config=CONFIG) as world, world.client() as client:
        told = created(client, 7, "new", num_partitions=-1, replication_factor=-1, validate_only=True)
        assert (told["num_partitions"], told["replication_factor"]) == (3, 2)
        assert {one["name"]: one["value"] for one in told["configs"]}["cleanup.policy"] == "compact"
        assert told["topic_id"] == bytes(16)
        assert client.ask(3, 12, topics=None)["topics"] == []


def test_who_may_not_see_settings_is_told_nothing_of_the_topic() -> None:
    rule = {"principal": "User:ANONYMOUS", "permissionType": "Allow", "operation": "Create", "host": "*"}
    config = {**CONFIG, "authorizer.class.name": ACL_AUTHORIZER}
    records = FakeRecords({"/kafka-acl/Topic/new": json.dumps({"version": 1, "acls": [rule]})})
    with Served(config=config, records=records) as world, world.client() as client:
        told = created(client, 7, "new")
        assert (told["num_partitions"], told["replication_factor"], told["topic_config_error_code"]) == (-1, -1, 29)
        assert (told["configs"] or (), told["topic_id"]) == ((), bytes(16))
