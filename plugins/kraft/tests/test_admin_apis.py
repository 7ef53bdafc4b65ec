"""Requests of administrators to a KRaft controller, directly and through Envelope as brokers forward them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kframe_kafka_wire.connections.node import NodeConnection
from kframe_kafka_wire.protocol.codec import decode_response, encode_request
from kframe_kafka_wire.records.principals import Principal
from kframe_kraft.apis.envelopes import principal_of
from kframe_kraft.errors import RecordError
from kframe_kraft.server.serving import ServedController

from kframe.errors import ErrorCode
from kframe.plugin.kraft import ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import KraftSettings
from verification.kraft.served_controller import FakeBroker, address, connected, formatted, served

NONE, UNKNOWN_TOPIC = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
#: DefaultPrincipalData 0 of User:alice.
ALICE = b"\x00\x00" + b"\x05User" + b"\x06alice" + b"\x00\x00"
#: The newest version of each API in these tests.
VERSIONS = {19: 7, 20: 6, 33: 2, 37: 3, 43: 2, 44: 1, 45: 0, 46: 0, 55: 2, 57: 1, 64: 0}

Ask = Callable[[int, dict[str, Any]], dict[str, Any]]


def enveloped(client: NodeConnection, api_key: int, body: dict[str, Any], version: int | None = None) -> dict[str, Any]:
    """The response to a request that a broker forwards for alice."""
    version = VERSIONS[api_key] if version is None else version
    request = encode_request(api_key, version, 77, "a-client", body)[4:]
    response = client.ask(
        58, {"request_data": request, "request_principal": ALICE, "client_host_address": bytes((127, 0, 0, 1))}
    )
    assert response["error_code"] == NONE
    correlation_id, fields = decode_response(api_key, version, response["response_data"])
    assert correlation_id == 77
    return fields


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[ServedController]:
    with served(formatted(tmp_path), KraftSettings(node_id=9, static_configs={"log.roll.hours": "2"})) as started:
        for broker_id in range(3):
            fake = FakeBroker(connected(started), broker_id)
            with closing(fake.client):
                fake.register()
                fake.heartbeat(fake.epoch)
        yield started


@pytest.fixture(params=["direct", "envelope"])
def ask(request: pytest.FixtureRequest, controller: ServedController) -> Iterator[Ask]:
    with closing(connected(controller)) as client:
        yield partial(enveloped, client) if request.param == "envelope" else client.ask


def topic(name: str, partitions: int = 2, factor: int = 3, **fields: Any) -> dict[str, Any]:
    defaults = {"num_partitions": partitions, "replication_factor": factor, "assignments": [], "configs": []}
    return {"name": name, **defaults, **fields}


def create(ask: Ask, *topics: dict[str, Any], **fields: Any) -> list[tuple[str, int]]:
    body = {"topics": list(topics), "timeout": 1000, "validate_only": False, **fields}
    return [(each["name"], each["error_code"]) for each in ask(19, body)["topics"]]


def reassignment(name: str, replicas: list[int] | None) -> dict[str, Any]:
    return {"name": name, "partitions": [{"partition_index": 0, "replicas": replicas}]}


def test_topics_are_created_grown_and_deleted(ask: Ask) -> None:
    assert create(ask, topic("a"), topic("b", 1, assignments=[])) == [("a", NONE), ("b", NONE)]
    assert create(ask, topic("a")) == [("a", ErrorCode.TOPIC_ALREADY_EXISTS)]
    assert create(ask, topic("a", factor=9), topic("x", factor=9)) == [
        ("a", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("x", ErrorCode.INVALID_REPLICATION_FACTOR),
    ]
    assert create(ask, topic("")) == [("", ErrorCode.INVALID_TOPIC_EXCEPTION)]
    assert create(ask, topic("__cluster_metadata")) == [("__cluster_metadata", ErrorCode.INVALID_REQUEST)]
    grown = [{"name": name, "count": count, "assignments": None} for name, count in (("a", 5), ("a2", 5), ("b", 1))]
    results = ask(37, {"topics": grown, "timeout": 1000, "validate_only": False})["results"]
    assert {each["name"]: each["error_code"] for each in results} == {
        "a": NONE,
        "a2": UNKNOWN_TOPIC,
        "b": ErrorCode.INVALID_PARTITIONS,
    }
    named = [{"name": name, "topic_id": bytes(16)} for name in ("a", "zz")]
    results = ask(20, {"topics": named, "timeout": 1000})["responses"]
    assert {each["name"]: each["error_code"] for each in results} == {"a": NONE, "zz": UNKNOWN_TOPIC}


def test_topics_are_deleted_by_id(ask: Ask) -> None:
    body = {"topics": [topic("a")], "timeout": 1000, "validate_only": False}
    (created,) = ask(19, body)["topics"]
    ids = [created["topic_id"], UUID(int=7).bytes]
    results = ask(20, {"topics": [{"name": None, "topic_id": each} for each in ids], "timeout": 1000})["responses"]
    assert {each["topic_id"]: each["error_code"] for each in results} == {
        ids[0]: NONE,
        ids[1]: ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_validation_writes_nothing(ask: Ask, controller: ServedController) -> None:
    assert create(ask, topic("a"), validate_only=True) == [("a", NONE)]
    assert controller.node is not None
    assert list(controller.node.metadata.topics.index_by_name) == []


@pytest.mark.parametrize("validate_only", [False, True])
def test_created_topics_are_described(ask: Ask, validate_only: bool) -> None:
    assignments = [{"partition_index": number, "broker_ids": [number, 2]} for number in range(2)]
    named = topic("a", configs=[{"name": "cleanup.policy", "value": "compact"}])
    assigned = topic("b", -1, -1, assignments=assignments)
    body = {"topics": [named, assigned, topic("c", factor=9)], "timeout": 1000, "validate_only": validate_only}
    first, second, refused = ask(19, body)["topics"]
    assert [(each["num_partitions"], each["replication_factor"]) for each in (first, second)] == [(2, 3), (2, 2)]
    assert (refused["num_partitions"], refused["replication_factor"], refused["configs"]) == (-1, -1, [])
    configs = {each["name"]: each for each in first["configs"]}
    assert len(configs) == len(second["configs"]) == 37
    for name, value, source in (
        ("cleanup.policy", "compact", 1),
        ("segment.ms", "7200000", 4),
        ("min.insync.replicas", "1", 5),
    ):
        expected = {"name": name, "value": value, "read_only": False, "config_source": source, "is_sensitive": False}
        assert configs[name] == expected
    assert first["topic_config_error_code"] == NONE


def test_validated_partitions_are_not_created(ask: Ask, controller: ServedController) -> None:
    create(ask, topic("a", 2))
    grown = [{"name": "a", "count": 5, "assignments": None}]
    (result,) = ask(37, {"topics": grown, "timeout": 1000, "validate_only": True})["results"]
    assert result["error_code"] == NONE
    assert controller.node is not None
    assert len(controller.node.metadata.partitions) == 2


def test_partitions_of_a_request_are_limited(ask: Ask) -> None:
    assert create(ask, topic("a", 10_001, 1)) == [("a", ErrorCode.POLICY_VIOLATION)]


def test_configurations_are_changed(ask: Ask, controller: ServedController) -> None:
    create(ask, topic("a", configs=[{"name": "min.insync.replicas", "value": "2"}]))

    def alter(api_key: int, name: str, *entries: dict[str, Any]) -> int:
        resource = {"resource_type": 2, "resource_name": name, "configs": list(entries)}
        (response,) = ask(api_key, {"resources": [resource], "validate_only": False})["responses"]
        assert (response["resource_type"], response["resource_name"]) == (2, name)
        return int(response["error_code"])

    def stored() -> dict[str, str]:
        assert controller.node is not None
        return dict(controller.node.metadata.configs.get((2, "a"), {}))

    entry = {"name": "retention.ms", "value": "7", "config_operation": 0}
    assert alter(44, "a", entry) == NONE
    assert stored() == {"min.insync.replicas": "2", "retention.ms": "7"}
    assert alter(44, "a", {**entry, "value": None, "config_operation": 1}) == NONE
    assert alter(44, "a", {**entry, "config_operation": 9}) == ErrorCode.INVALID_REQUEST
    assert alter(44, "zz", entry) == UNKNOWN_TOPIC
    assert alter(33, "a", {"name": "segment.ms", "value": "5"}) == NONE
    assert stored() == {"segment.ms": "5"}


def test_cluster_is_described(controller: ServedController) -> None:
    body = {"include_cluster_authorized_operations": True, "endpoint_type": 2, "include_fenced_brokers": False}
    with closing(connected(controller)) as client:
        response = client.ask(60, body)
        unasked = client.ask(60, {**body, "include_cluster_authorized_operations": False})
        errors = [client.ask(60, {**body, "endpoint_type": kind})["error_code"] for kind in (1, 3)]
    (node,) = response["brokers"]
    assert (response["error_code"], response["cluster_id"], response["controller_id"]) == (NONE, "cluster", 9)
    assert (node["broker_id"], (node["host"], node["port"])) == (9, address(controller))
    assert response["cluster_authorized_operations"] == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
    assert unasked["cluster_authorized_operations"] == -(2**31)
    assert errors == [ErrorCode.MISMATCHED_ENDPOINT_TYPE, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE]


def test_other_controllers_are_described(controller: ServedController) -> None:
    listener = {"name": "CONTROLLER", "host": "c2", "port": 9094, "security_protocol": 0}
    registration = {"controller_id": 10, "incarnation_id": bytes(16), "zk_migration_ready": False, "features": []}
    body = {"include_cluster_authorized_operations": False, "endpoint_type": 2, "include_fenced_brokers": False}
    with closing(connected(controller)) as client:
        assert client.ask(70, {**registration, "listeners": [listener]})["error_code"] == NONE
        nodes = {each["broker_id"]: (each["host"], each["port"]) for each in client.ask(60, body)["brokers"]}
    assert nodes == {9: address(controller), 10: ("c2", 9094)}


@pytest.mark.parametrize(
    ("feature", "level", "direction", "error"),
    [
        ("metadata.version", 26, 1, NONE),
        ("metadata.version", 25, 1, NONE),
        ("metadata.version", 24, 2, NONE),
        ("metadata.version", 22, 2, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 24, 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 30, 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("metadata.version", 26, 9, ErrorCode.INVALID_UPDATE_VERSION),
        ("nosuch.version", 1, 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("kraft.version", 1, 1, ErrorCode.INVALID_UPDATE_VERSION),
        ("kraft.version", 0, 1, NONE),
    ],
)
def test_features_are_updated(
    ask: Ask, controller: ServedController, feature: str, level: int, direction: int, error: ErrorCode
) -> None:
    update = {"feature": feature, "max_version_level": level, "upgrade_type": direction}
    body = {"timeout": 1000, "feature_updates": [update], "validate_only": True}
    assert controller.node is not None
    for validate_only, stored in ((True, 25), (False, level if error == NONE and feature[0] == "m" else 25)):
        assert ask(57, {**body, "validate_only": validate_only})["error_code"] == error
        assert controller.node.metadata.metadata_version == stored


def test_leaders_are_elected(ask: Ask) -> None:
    create(ask, topic("a", 1))
    for election_type, requested, error in ((0, [0], 84), (1, [0], 84), (0, [5], 3)):
        body = {"election_type": election_type, "timeout": 1000}
        named = [{"topic": "a", "partitions": requested}]
        (result,) = ask(43, {**body, "topic_partitions": named})["replica_election_results"]
        assert [each["error_code"] for each in result["partition_result"]] == [error]
        assert ask(43, {**body, "topic_partitions": None})["replica_election_results"] == []
    assert ask(43, {"election_type": 5, "timeout": 1, "topic_partitions": None})["error_code"] == 42


def test_reassignments_are_started_listed_and_cancelled(ask: Ask) -> None:
    create(ask, topic("a", -1, -1, assignments=[{"partition_index": 0, "broker_ids": [0, 1]}]))

    def alter(name: str, replicas: list[int] | None) -> int:
        body = {"timeout": 1000, "topics": [reassignment(name, replicas)]}
        (response,) = ask(45, body)["responses"]
        return int(response["partitions"][0]["error_code"])

    def listed(topics: list[dict[str, Any]] | None) -> list[tuple[str, list[int], list[int], list[int]]]:
        return [
            (each["name"], partition["replicas"], partition["adding_replicas"], partition["removing_replicas"])
            for each in ask(46, {"timeout": 1000, "topics": topics})["topics"]
            for partition in each["partitions"]
        ]

    assert alter("a", [0, 2]) == NONE
    assert alter("zz", [0, 2]) == UNKNOWN_TOPIC
    assert alter("a", [0, 77]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    ongoing = [("a", [0, 2, 1], [2], [1])]
    assert listed(None) == listed([{"name": "a", "partition_indexes": [0]}]) == ongoing
    assert listed([{"name": "a", "partition_indexes": [3]}]) == []
    assert alter("a", None) == NONE
    assert alter("a", None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert listed(None) == []


# -- quotas


@pytest.mark.parametrize(
    ("api_key", "first", "strict"), [(19, 2, 6), (37, 0, 3), (20, 1, 5)], ids=["create", "grow", "delete"]
)
def test_mutation_quota_of_a_forwarded_client(
    controller: ServedController, api_key: int, first: int, strict: int
) -> None:
    """Older versions are delayed, newer ones refused. The quota of a client leaves others alone."""
    with closing(connected(controller)) as broker:
        create(broker.ask, topic("old"))
        write(controller, quota(("user", "alice"), 0.001))
        bodies = {
            19: {"topics": [topic("a")], "timeout": 1000, "validate_only": True},
            37: {"topics": [{"name": "old", "count": 9, "assignments": None}], "timeout": 1, "validate_only": True},
            20: {"topics": [{"name": "old", "topic_id": bytes(16)}], "topic_names": ["old"], "timeout": 1000},
        }
        results = {19: "topics", 37: "results", 20: "responses"}
        assert enveloped(broker, 19, {**bodies[19], "topics": [topic("b", 5)]})["throttle_time"] == 0
        response = enveloped(broker, api_key, bodies[api_key], strict)
        assert response["throttle_time"] > 4_000_000
        assert [each["error_code"] for each in response[results[api_key]]] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        response = enveloped(broker, api_key, bodies[api_key], first)
        assert [each["error_code"] for each in response[results[api_key]]] == [NONE]
        assert response.get("throttle_time", 4_000_001) > 4_000_000
        assert create(broker.ask, topic("c")) == [("c", NONE)]


def test_mutation_quota_of_a_direct_client(controller: ServedController) -> None:
    """The client is anonymous. It is not read any more until the throttle time is over."""
    write(controller, quota(("user", None), 0.001))
    with closing(connected(controller)) as client:
        assert create(client.ask, topic("a", 5)) == [("a", NONE)]
        body = {"topics": [topic("b")], "timeout": 1000, "validate_only": False}
        response = client.ask(19, body)
    (result,) = response["topics"]
    assert result["error_code"] == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert result["error_message"] == "The throttling quota has been exceeded."
    assert response["throttle_time"] > 4_000_000
    assert controller.node is not None
    assert list(controller.node.metadata.topics.index_by_name) == ["a"]


def quota(entity: tuple[str, str | None], rate: float) -> records.ClientQuotaRecord:
    parts = (records.EntityData(entity_type=entity[0], entity_name=entity[1]),)
    return records.ClientQuotaRecord(entity=parts, key="controller_mutation_rate", value=rate, remove=False)


def write(controller: ServedController, record: records.ClientQuotaRecord) -> None:
    assert controller.node is not None
    assert controller.node.loop is not None
    controller.node.loop.submit(lambda _: ControllerResult([RecordAndVersion(record, 0)], None)).result(20)


# -- envelopes

CREATE = encode_request(19, 7, 1, "c", {"topics": [topic("a")], "timeout": 1, "validate_only": True})[4:]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, NONE),
        ({"request_principal": b""}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\x00\x01" + ALICE[2:]}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": ALICE[:6]}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"abc"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_data": b""}, ErrorCode.INVALID_REQUEST),
        ({"request_data": CREATE[:20]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x01\x00\x11" + CREATE[4:]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x3a\x00\x00" + CREATE[4:]}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x00\x13\x00\x01" + CREATE[4:]}, ErrorCode.UNSUPPORTED_VERSION),
        ({"request_data": b"\x00\x13\x00\x63" + CREATE[4:]}, ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=[
        "good",
        "no principal",
        "principal version",
        "cut principal",
        "address",
        "empty",
        "cut",
        "Fetch",
        "Envelope",
        "old",
        "new",
    ],
)
def test_malformed_envelopes_are_refused(controller: ServedController, fields: dict[str, Any], error: int) -> None:
    body = {"request_data": CREATE, "request_principal": ALICE, "client_host_address": bytes(4), **fields}
    with closing(connected(controller)) as client:
        response = client.ask(58, body)
    assert (response["error_code"], response["response_data"] is None) == (error, error != NONE)


def test_principal_of_an_envelope() -> None:
    assert principal_of(ALICE) == Principal("alice")
    assert principal_of(ALICE[:-2] + b"\x01\x00").by_token
    for data in (ALICE[:5], b"\x00\x00\x00\x00\x00\x00"):
        with pytest.raises(RecordError, match="request principal"):
            principal_of(data)


def test_deposed_controller_refuses_outside_of_the_envelope(controller: ServedController) -> None:
    assert controller.node is not None
    assert controller.node.loop is not None
    controller.node.loop.stop()
    body = {"request_data": CREATE, "request_principal": ALICE, "client_host_address": bytes(4)}
    with closing(connected(controller)) as client:
        assert client.ask(58, body)["error_code"] == ErrorCode.NOT_CONTROLLER
        assert create(client.ask, topic("a")) == [("a", ErrorCode.NOT_CONTROLLER)]
