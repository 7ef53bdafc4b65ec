"""DescribeClientQuotas and AlterClientQuotas from and to storage, through a real socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kframe.testing.clusters import healthy
from verification.kafka_wire.client import Client
from verification.kafka_wire.served import FakeRecords, Served, config_record

STORED = {
    "/config/users/alice": config_record(**{"producer_byte_rate": "10", "SCRAM-SHA-256": "secret"}),
    "/config/users/alice/clients/app": config_record(consumer_byte_rate="20"),
    "/config/users/a%2Fb": config_record(request_percentage="12.5"),
    "/config/users/<default>": config_record(producer_byte_rate="30"),
    "/config/users/only-a-password": config_record(**{"SCRAM-SHA-256": "secret"}),
    "/config/clients/app": config_record(controller_mutation_rate="1.5"),
    "/config/clients/<default>": config_record(consumer_byte_rate="40"),
    "/config/ips/127.0.0.9": config_record(connection_creation_rate="50"),
}


@pytest.fixture
def records() -> FakeRecords:
    return FakeRecords(STORED)


@pytest.fixture
def client(records: FakeRecords) -> Iterator[Client]:
    with Served({"t": [healthy(1)]}, records=records) as served, served.client() as client:
        yield client


Quotas = dict[tuple[tuple[str, str | None], ...], dict[str, float]]


def described(client: Client, *components: tuple[str, int, str | None], strict: bool = False) -> Quotas:
    listed = [{"entity_type": kind, "match_type": how, "match": name} for kind, how, name in components]
    response = client.ask(48, 1, components=listed, strict=strict)
    assert response["error_code"] == 0
    return {
        tuple((part["entity_type"], part["entity_name"]) for part in entry["entity"]): {
            each["key"]: each["value"] for each in entry["values"]
        }
        for entry in response["entries"]
    }


ALICE, BOTH = (("user", "alice"),), (("user", "alice"), ("client-id", "app"))
SLASH, USERS = (("user", "a/b"),), (("user", None),)
APP, CLIENTS, IP = (("client-id", "app"),), (("client-id", None),), (("ip", "127.0.0.9"),)
#: (components, strict, matching entities)
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool, list[tuple[tuple[str, str | None], ...]]]] = [
    ([], False, [ALICE, BOTH, SLASH, USERS, APP, CLIENTS, IP]),
    ([], True, []),
    ([("user", 0, "alice")], False, [ALICE, BOTH]),
    ([("user", 0, "alice")], True, [ALICE]),
    ([("user", 0, "a/b")], True, [SLASH]),
    ([("user", 1, None)], True, [USERS]),
    ([("user", 2, None)], True, [ALICE, SLASH, USERS]),
    ([("user", 2, None)], False, [ALICE, BOTH, SLASH, USERS]),
    ([("user", 0, "alice"), ("client-id", 0, "app")], True, [BOTH]),
    ([("client-id", 0, "app")], False, [BOTH, APP]),
    ([("client-id", 2, None)], True, [APP, CLIENTS]),
    ([("ip", 2, None)], False, [IP]),
    ([("ip", 0, "127.0.0.9")], True, [IP]),
    ([("ip", 1, None)], True, []),
    ([("user", 0, "unknown")], False, []),
]


@pytest.mark.parametrize("components, strict, selected", FILTERS)
def test_filters_match_like_those_of_kafka(
    components: list[tuple[str, int, str | None]],
    strict: bool,
    selected: list[tuple[tuple[str, str | None], ...]],
    client: Client,
) -> None:
    assert set(described(client, *components, strict=strict)) == set(selected)


def test_quota_values_are_numbers_without_passwords(client: Client) -> None:
    result = described(client)
    assert result[ALICE] == {"producer_byte_rate": 10.0}
    assert result[SLASH] == {"request_percentage": 12.5}


#: (components, code)
REFUSED: list[tuple[list[dict[str, Any]], int]] = [
    ([{"entity_type": "user", "match_type": 2}, {"entity_type": "user", "match_type": 2}], 42),
    ([{"entity_type": "user", "match_type": 2}, {"entity_type": "ip", "match_type": 2}], 42),
    ([{"entity_type": "", "match_type": 2}], 42),
    ([{"entity_type": "group", "match_type": 2}], 35),
    ([{"entity_type": "user", "match_type": 7}], 42),
]


@pytest.mark.parametrize("components, code", REFUSED)
def test_filters_that_contradict_themselves_are_refused(
    components: list[dict[str, Any]], code: int, client: Client
) -> None:
    response = client.ask(48, 1, components=components)
    assert (response["error_code"], response["entries"]) == (code, None)


def altered(
    client: Client, *entities: tuple[dict[str, str | None], dict[str, float | None]], **fields: Any
) -> list[int]:
    entries = [
        {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
            "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in changes.items()],
        }
        for entity, changes in entities
    ]
    return [entry["error_code"] for entry in client.ask(49, 1, entries=entries, **fields)["entries"]]


def test_quotas_are_set_and_brokers_are_notified(client: Client, records: FakeRecords) -> None:
    codes = altered(
        client,
        ({"user": "alice"}, {"producer_byte_rate": None, "consumer_byte_rate": 77.0}),
        ({"user": "new one", "client-id": None}, {"request_percentage": 0.5}),
        ({"ip": None}, {"connection_creation_rate": 3.0}),
    )
    assert codes == [0, 0, 0]
    assert json.loads(records.records["/config/users/alice"])["config"] == {
        "SCRAM-SHA-256": "secret",
        "consumer_byte_rate": "77",
    }
    path = "/config/users/new%20one/clients/<default>"
    assert json.loads(records.records[path]) == {"version": 1, "config": {"request_percentage": "0.5"}}
    assert json.loads(records.records["/config/ips/<default>"])["config"] == {"connection_creation_rate": "3"}
    paths = ["users/alice", "users/new%20one/clients/<default>", "ips/<default>"]
    assert [json.loads(text) for _, text in records.appended] == [{"version": 2, "entity_path": path} for path in paths]
    assert {prefix for prefix, _ in records.appended} == {"/config/changes/config_change_"}


def test_a_record_without_settings_is_deleted(client: Client, records: FakeRecords) -> None:
    assert altered(client, ({"client-id": "app"}, {"controller_mutation_rate": None})) == [0]
    assert "/config/clients/app" not in records.records
    # alice has a client, so her record stays without settings. It is deleted together with the client.
    del records.records["/config/users/alice"]
    records.records["/config/users/alice"] = config_record(producer_byte_rate="10")
    assert altered(client, ({"user": "alice"}, {"producer_byte_rate": None})) == [0]
    assert json.loads(records.records["/config/users/alice"])["config"] == {}
    records.records["/config/users/alice/clients"] = ""
    assert altered(client, ({"user": "alice", "client-id": "app"}, {"consumer_byte_rate": None})) == [0]
    assert not [path for path in records.records if path.startswith("/config/users/alice")]


#: Refused (entity, changes).
WRONG: list[tuple[dict[str, str | None], dict[str, float | None]]] = [
    ({}, {}),
    ({"user": ""}, {"producer_byte_rate": 1.0}),
    ({"group": "g"}, {"producer_byte_rate": 1.0}),
    ({"user": "u", "ip": "127.0.0.1"}, {"producer_byte_rate": 1.0}),
    ({"user": "u"}, {"unknown": 1.0}),
    ({"user": "u"}, {"connection_creation_rate": 1.0}),
    ({"user": "u"}, {"producer_byte_rate": 1.5}),
    ({"user": "u"}, {"producer_byte_rate": 1e300}),
    ({"ip": "127.0.0.1"}, {"connection_creation_rate": -1.0}),
    ({"ip": "no such host.invalid"}, {"connection_creation_rate": 1.0}),
]


@pytest.mark.parametrize("entity, changes", WRONG)
def test_invalid_quota_does_not_affect_other_quotas(
    entity: dict[str, str | None], changes: dict[str, float | None], client: Client, records: FakeRecords
) -> None:
    assert altered(client, (entity, changes), ({"user": "good"}, {"producer_byte_rate": 1.0})) == [42, 0]
    assert [json.loads(text)["entity_path"] for _, text in records.appended] == ["users/good"]


def test_validate_only_writes_nothing(client: Client, records: FakeRecords) -> None:
    assert altered(client, ({"user": "u"}, {"producer_byte_rate": 1.0}), validate_only=True) == [0]
    assert records.records == STORED
