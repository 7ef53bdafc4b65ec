"""What CreateTopics tells of new topics from version 5 on (KIP-525)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kframe_kafka_wire.authorizer import ACL_AUTHORIZER
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.served import FakeRecords, Served

CONFIG = {"log.retention.hours": "2", "num.partitions": "3", "default.replication.factor": "2"}
OWN = [{"name": "cleanup.policy", "value": "compact"}]


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
def test_it_tells_all_settings_as_describe_configs_does(version: int) -> None:
    with Served(config=CONFIG) as world, world.client() as client:
        told = created(client, version, "new")
        assert (told["num_partitions"], told["replication_factor"], told["topic_config_error_code"]) == (4, 1, 0)
        found = {one["name"]: (one["value"], one["config_source"]) for one in told["configs"]}
        assert found == described(client, "new")
        assert found["cleanup.policy"] == ("compact", 1)
        assert found["retention.ms"] == ("7200000", 4)
        assert not any(one["read_only"] or one["is_sensitive"] for one in told["configs"])


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
