"""Requests about the cluster: versions of APIs, features, controllers, client quotas and fixed replication factors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kframe_kraft.server.serving import ServedController

from kframe.errors import ErrorCode
from kframe.testing.waiting import wait_until
from verification.kafka_wire.client import Client
from verification.kraft.served_controller import FakeBroker, address, connected, formatted, served

NONE = ErrorCode.NONE
SOFTWARE = {"client_software_name": "a-test", "client_software_version": "1.0"}


class Cluster:
    """A controller, and a client of it."""

    def __init__(self, directory: Path, stack: ExitStack, level: int = 25, brokers: int = 0) -> None:
        self.controller: ServedController = stack.enter_context(served(formatted(directory, level=level)))
        for broker_id in range(brokers):
            fake = FakeBroker(connected(self.controller), broker_id)
            stack.callback(fake.client.close)
            assert fake.register() == NONE
            fake.heartbeat(fake.epoch)
        host, port = address(self.controller)
        self.client = stack.enter_context(Client(f"{host}:{port}"))

    @property
    def metadata(self) -> Any:
        assert self.controller.node is not None
        return self.controller.node.metadata


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


# -- ApiVersions


@pytest.mark.parametrize(
    ("version", "fields", "error"),
    [
        (0, {}, NONE),
        (3, SOFTWARE, NONE),
        (3, {**SOFTWARE, "client_software_name": "-"}, ErrorCode.INVALID_REQUEST),
        (4, {**SOFTWARE, "client_software_version": ""}, ErrorCode.INVALID_REQUEST),
        (5, SOFTWARE, NONE),
        (5, {**SOFTWARE, "cluster_id": "cluster", "node_id": 9}, NONE),
        (5, {**SOFTWARE, "cluster_id": "another", "node_id": 1}, NONE),
        (5, {**SOFTWARE, "cluster_id": "cluster"}, ErrorCode.INVALID_REQUEST),
        (5, {**SOFTWARE, "node_id": 9}, ErrorCode.INVALID_REQUEST),
    ],
    ids=["0", "3", "software", "no version", "5", "this node", "another node", "no node", "no cluster"],
)
def test_api_versions(tmp_path: Path, stack: ExitStack, version: int, fields: dict[str, Any], error: ErrorCode) -> None:
    """A controller does not check which node a client means, as in Kafka 4.4."""
    response = Cluster(tmp_path, stack).client.ask(18, version, **fields)
    versions = {each["api_key"]: (each["min_version"], each["max_version"]) for each in response["api_keys"]}
    assert (response["error_code"], bool(versions)) == (error, error == NONE)
    if error == NONE:
        offered = {18: (0, 5), 32: (1, 4), 45: (0, 1), 49: (0, 1), 57: (0, 2), 94: (0, 0)}
        assert {key: versions[key] for key in offered} == offered


@pytest.mark.parametrize(("version", "names_level_0"), [(3, False), (4, True), (5, True)])
def test_features_from_level_0_are_omitted_for_old_clients(
    tmp_path: Path, stack: ExitStack, version: int, names_level_0: bool
) -> None:
    cluster = Cluster(tmp_path, stack)
    wait_until(lambda: "metadata.version" in cluster.metadata.features)
    response = cluster.client.ask(18, version, **SOFTWARE)
    supported = {each["name"]: each["min_version"] for each in response["supported_features"]}
    assert supported["metadata.version"] == 7
    assert ("kraft.version" in supported) == names_level_0
    assert [each["name"] for each in response["finalized_features"]] == ["metadata.version"]


# -- features and controllers


def update(cluster: Cluster, version: int, level: int, **fields: Any) -> dict[str, Any]:
    updates = [{"feature": "metadata.version", "max_version_level": level, "upgrade_type": 1}]
    return cluster.client.ask(57, version, feature_updates=updates, **fields)


def test_results_of_features(tmp_path: Path, stack: ExitStack) -> None:
    """Version 2 has no results of features. An error refuses all of them in each version."""
    cluster = Cluster(tmp_path, stack)
    (result,) = update(cluster, 1, 26)["results"]
    assert result == {"feature": "metadata.version", "error_code": NONE, "error_message": None}
    assert update(cluster, 2, 27) == {"throttle_time": 0, "error_code": NONE, "error_message": None}
    for version in (1, 2):
        response = update(cluster, version, 99)
        assert (response["error_code"], response.get("results", [])) == (ErrorCode.INVALID_UPDATE_VERSION, [])
        assert response["error_message"].startswith("The update failed for all features since the following feature")
    assert cluster.metadata.metadata_version == 27


def test_controller_registers_once_when_the_level_rises(tmp_path: Path, stack: ExitStack) -> None:
    cluster = Cluster(tmp_path, stack, level=14)
    registered = []
    for level, validate_only in ((15, True), (15, False), (16, False)):
        assert update(cluster, 2, level, validate_only=validate_only)["error_code"] == NONE
        assert update(cluster, 2, level, validate_only=True)["error_code"] == NONE  # Waits for what is decided before.
        registered.append(cluster.metadata.controllers.get(9))
    assert registered[0] is None
    assert registered[1] is not None
    assert registered[2] is registered[1]
    assert registered[1].end_points[0].name == "CONTROLLER"


@pytest.mark.parametrize("level", [32, 33])
def test_controllers_are_unregistered(tmp_path: Path, stack: ExitStack, level: int) -> None:
    cluster = Cluster(tmp_path, stack, level=level)
    registration = {"controller_id": 10, "incarnation_id": bytes(16), "zk_migration_ready": False, "features": []}
    assert cluster.client.ask(70, 0, **registration, listeners=[])["error_code"] == NONE
    responses = [cluster.client.ask(94, 0, controller_id=controller_id) for controller_id in (9, 10, 10)]
    errors = [response["error_code"] for response in responses]
    if level < 33:
        assert errors == [ErrorCode.UNSUPPORTED_VERSION] * 3
    else:
        assert errors == [ErrorCode.INVALID_REQUEST, NONE, ErrorCode.CONTROLLER_ID_NOT_REGISTERED]
        assert responses[2]["error_message"] == "Controller ID 10 is not currently registered."
    assert list(cluster.metadata.controllers) == ([9, 10] if level < 33 else [9])


# -- reassignments


def test_replication_factor_can_be_kept(tmp_path: Path, stack: ExitStack) -> None:
    cluster = Cluster(tmp_path, stack, brokers=3)
    assignments = [{"partition_index": 0, "broker_ids": [0, 1]}]
    topic = {"name": "a", "num_partitions": -1, "replication_factor": -1, "assignments": assignments, "configs": []}
    cluster.client.ask(19, 7, topics=[topic])

    def reassign(version: int, replicas: list[int], **fields: Any) -> tuple[bool | None, int]:
        partitions = [{"partition_index": 0, "replicas": replicas}]
        response = cluster.client.ask(45, version, topics=[{"name": "a", "partitions": partitions}], **fields)
        (result,) = response["responses"][0]["partitions"]
        return response.get("allow_replication_factor_change"), result["error_code"]

    refused = ErrorCode.INVALID_REPLICATION_FACTOR
    assert reassign(1, [0, 1, 2], allow_replication_factor_change=False) == (False, refused)
    assert reassign(1, [0, 2], allow_replication_factor_change=False) == (False, NONE)
    assert reassign(1, [0, 1, 2]) == (True, NONE)
    assert reassign(0, [0]) == (None, NONE)


# -- configurations


def describe(cluster: Cluster, version: int, *resources: tuple[int, str], **fields: Any) -> list[dict[str, Any]]:
    requested = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": fields.get("keys")}
        for kind, name in resources
    ]
    response = cluster.client.ask(32, version, resources=requested, include_synonyms=fields.get("synonyms", False))
    results: list[dict[str, Any]] = response["results"]
    assert [(each["resource_type"], each["resource_name"]) for each in results] == list(resources)
    return results


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_configurations_are_described(tmp_path: Path, stack: ExitStack, version: int) -> None:
    cluster = Cluster(tmp_path, stack)
    entry = {"name": "log.cleaner.threads", "value": "3", "config_operation": 0}
    resource = {"resource_type": 4, "resource_name": "9", "configs": [entry]}
    (altered,) = cluster.client.ask(44, 1, resources=[resource])["responses"]
    assert altered["error_code"] == NONE
    node, unknown, other = describe(cluster, version, (4, "9"), (2, "x"), (4, "8"), synonyms=True)
    assert [each["error_code"] for each in (node, unknown, other)] == [
        NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert len(node["configs"]) > 300
    (threads,) = (config for config in node["configs"] if config["name"] == "log.cleaner.threads")
    synonyms = [
        {"name": "log.cleaner.threads", "value": "3", "source": 2},
        {"name": "log.cleaner.threads", "value": "1", "source": 5},
    ]
    expected = {"name": "log.cleaner.threads", "value": "3", "read_only": False, "config_source": 2}
    typed = {"config_type": 3, "documentation": None} if version >= 3 else {}
    assert threads == {**expected, "is_sensitive": False, "synonyms": synonyms, **typed}


def test_some_settings_are_described_without_synonyms(tmp_path: Path, stack: ExitStack) -> None:
    cluster = Cluster(tmp_path, stack)
    (node,) = describe(cluster, 4, (4, "9"), keys=["num.partitions", "x"])
    assert [(config["name"], config["synonyms"]) for config in node["configs"]] == [("num.partitions", [])]


def test_unknown_resources_are_refused_with_the_others(tmp_path: Path, stack: ExitStack) -> None:
    results = describe(Cluster(tmp_path, stack), 4, (4, "9"), (3, "x"))
    assert [(each["error_code"], each["configs"]) for each in results] == [(ErrorCode.INVALID_REQUEST, [])] * 2
    assert results[0]["error_message"] == "Unexpected resource type 3 for resource x"


def test_values_are_checked(tmp_path: Path, stack: ExitStack) -> None:
    entry = {"name": "interval.ms", "value": "5", "config_operation": 0}
    resource = {"resource_type": 16, "resource_name": "m", "configs": [entry]}
    for api_key in (33, 44):
        (result,) = Cluster(tmp_path / f"{api_key}", stack).client.ask(api_key, 1, resources=[resource])["responses"]
        assert result["error_code"] == ErrorCode.INVALID_REQUEST
        assert "interval must be between 100 and 3600000" in result["error_message"]


# -- client quotas


def quota(entity: Sequence[tuple[str, str | None]], **values: float | None) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [
            {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
            for key, value in values.items()
        ],
    }


@pytest.mark.parametrize("version", [0, 1])
def test_client_quotas_are_changed(tmp_path: Path, stack: ExitStack, version: int) -> None:
    cluster = Cluster(tmp_path, stack)
    user, default = [("user", "alice"), ("client-id", None)], [("user", None)]
    entries = [quota(user, producer_byte_rate=5.0), quota(default, controller_mutation_rate=0.5), quota([("x", "y")])]
    for validate_only in (True, False):
        assert cluster.metadata.quotas == {}
        response = cluster.client.ask(49, version, entries=entries, validate_only=validate_only)
        assert [(each["error_code"], each["error_message"]) for each in response["entries"]] == [
            (NONE, None),
            (NONE, None),
            (ErrorCode.INVALID_REQUEST, "Unhandled client quota entity type: x"),
        ]
    named = [{"entity_type": "client-id", "entity_name": None}, {"entity_type": "user", "entity_name": "alice"}]
    assert response["entries"][0]["entity"] == named
    assert cluster.metadata.quotas == {
        (("client-id", None), ("user", "alice")): {"producer_byte_rate": 5.0},
        (("user", None),): {"controller_mutation_rate": 0.5},
    }
    cluster.client.ask(49, version, entries=[quota(user, producer_byte_rate=None)], validate_only=False)
    assert list(cluster.metadata.quotas) == [(("user", None),)]


def test_repeated_entities_and_keys_are_refused(tmp_path: Path, stack: ExitStack) -> None:
    cluster = Cluster(tmp_path, stack)
    repeated = quota([("user", "a")], producer_byte_rate=5.0)
    twice = {**repeated, "entity": [{"entity_type": "user", "entity_name": "b"}], "ops": repeated["ops"] * 2}
    response = cluster.client.ask(49, 1, entries=[repeated, repeated, twice], validate_only=False)
    assert [each["error_code"] for each in response["entries"]] == [ErrorCode.INVALID_REQUEST] * 2
    assert cluster.metadata.quotas == {}
