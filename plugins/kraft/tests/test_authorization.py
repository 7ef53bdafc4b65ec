"""Which operation each request to a KRaft controller needs, and whose: ACLs, request and answer (Kafka 4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import pytest
from kframe_kafka_wire.protocol.codec import decode_response, encode_request
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID
from kframe_kraft.apis.cluster_operations import CLUSTER_OPERATIONS, OTHER_APIS

from kframe.errors import ErrorCode
from kframe.plugin.server import AclOperation
from verification.kraft.acl_tables import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    NO_CLUSTER,
    NO_TOPIC,
    NONE,
    READ,
    UserTable,
    codes,
    on_cluster,
    topic,
)
from verification.kraft.secured_controller import EVERY_ACL, AclLine, SecuredController, secured, secured_config
from verification.kraft.served_controller import CONFIG, connected, formatted, served

TABLE: Final = UserTable()
granted = TABLE.granted


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredController]:
    with TABLE.started(tmp_path_factory.mktemp("controller"), ("grown",)) as started:
        yield started


# -- operations on the cluster

LOG_PARTITION: Final = {
    "partition": 0,
    "current_leader_epoch": 1,
    "fetch_offset": 0,
    "last_fetched_epoch": 0,
    "log_start_offset": -1,
    "partition_max_bytes": 10**6,
}
VOTE_PARTITION: Final = {
    "partition_index": 0,
    "candidate_epoch": 0,
    "candidate_id": 1,
    "last_offset_epoch": 0,
    "last_offset": 0,
    "leader_epoch": 0,
    "leader_id": 1,
    "preferred_successors": [],
}
EPOCHS: Final = {"cluster_id": None, "topics": [{"topic_name": TOPIC, "partitions": [VOTE_PARTITION]}]}
#: A small request for each API that needs an operation on the cluster.
BODIES: Final[dict[int, dict[str, Any]]] = {
    1: {
        "replica_state": {"replica_id": -1, "replica_epoch": -1},
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 1,
        "max_bytes": 10**6,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": TOPIC, "topic_id": TOPIC_ID, "partitions": [LOG_PARTITION]}],
        "forgotten_topics_data": [],
        "rack_id": "",
    },
    29: EVERY_ACL,
    30: {"creations": [AclLine(READ, "t").creation()]},
    31: {"filters": [{**EVERY_ACL, "principal_filter": "User:nobody"}]},
    43: {"election_type": 0, "timeout": 1, "topic_partitions": [{"topic": "t", "partitions": [0]}]},
    45: {"timeout": 1, "topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": None}]}]},
    46: {"timeout": 1, "topics": None},
    49: {"entries": [{"entity": [{"entity_type": "user", "entity_name": "u"}], "ops": []}], "validate_only": True},
    51: {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []},
    52: EPOCHS,
    53: EPOCHS,
    54: EPOCHS,
    55: {"topics": [{"topic_name": TOPIC, "partitions": [{"partition_index": 0}]}]},
    56: {"broker_id": 7, "broker_epoch": 1, "topics": []},
    57: {"timeout": 1, "feature_updates": [], "validate_only": True},
    58: {"request_data": b"", "request_principal": b"", "client_host_address": b""},
    59: {
        "replica_id": -1,
        "max_bytes": 1,
        "topics": [
            {
                "name": TOPIC,
                "partitions": [
                    {
                        "partition": 0,
                        "current_leader_epoch": 1,
                        "snapshot_id": {"end_offset": 9, "epoch": 1},
                        "position": 0,
                    }
                ],
            }
        ],
    },
    60: {"include_cluster_authorized_operations": True, "endpoint_type": 2, "include_fenced_brokers": False},
    62: {
        "broker_id": 7,
        "cluster_id": "another",
        "incarnation_id": bytes(16),
        "listeners": [],
        "features": [],
        "rack": None,
        "log_dirs": [],
        "previous_broker_epoch": -1,
    },
    63: {
        "broker_id": 7,
        "broker_epoch": 1,
        "current_metadata_offset": 0,
        "want_fence": False,
        "want_shut_down": False,
    },
    64: {"broker_id": 77},
    67: {"broker_id": 7, "broker_epoch": 1},
    70: {
        "controller_id": 9,
        "incarnation_id": bytes(16),
        "zk_migration_ready": False,
        "listeners": [],
        "features": [],
    },
    73: {"broker_id": 7, "broker_epoch": 1, "directories": []},
    94: {"controller_id": 77},
}


def test_every_api_is_listed(users: SecuredController) -> None:
    """A new API is either in the table of operations, or asks for each resource, or is for anyone."""
    software = {"client_software_name": "test", "client_software_version": "1"}
    offered = {each["api_key"] for each in users.client().ask(18, software)["api_keys"]}
    assert offered <= CLUSTER_OPERATIONS.keys() | OTHER_APIS
    assert not CLUSTER_OPERATIONS.keys() & OTHER_APIS
    assert offered & CLUSTER_OPERATIONS.keys() == BODIES.keys() & offered


def operation_rows(needed: AclOperation) -> list[tuple[str, bool]]:
    """Users, and whether each may do the operation on the cluster."""
    implied = {READ, DELETE} if needed is DESCRIBE else set()
    others = {CREATE, CLUSTER_ACTION, ALTER_CONFIGS, DESCRIBE_CONFIGS, READ, DELETE} - {needed} - implied
    return [
        (granted(), False),
        (granted(*map(on_cluster, sorted(others))), False),
        (granted(on_cluster(needed)), True),
        (granted(on_cluster(ALL)), True),
        (granted(on_cluster(ALL), on_cluster(needed, permission=DENY)), False),
        (granted(on_cluster(needed, host="10.1.1.1")), False),
        (granted(on_cluster(needed, host="127.0.0.1")), True),
    ]


OPERATION_ROWS: Final = {needed: operation_rows(needed) for needed in (ALTER, ALTER_CONFIGS, CLUSTER_ACTION, DESCRIBE)}


@pytest.mark.parametrize("api_key", BODIES)
def test_operation_on_the_cluster(users: SecuredController, api_key: int) -> None:
    """The super user ``admin`` is not denied, although an ACL says so."""
    for user, is_allowed in (*OPERATION_ROWS[CLUSTER_OPERATIONS[api_key]], ("admin", True)):
        answered = codes(users.client(user).ask(api_key, BODIES[api_key]))
        assert (NO_CLUSTER in answered, answered == {NO_CLUSTER}) == (not is_allowed, not is_allowed), user


# -- envelopes


def principal(name: str) -> bytes:
    """DefaultPrincipalData 0 of a user."""
    return b"\x00\x00" + b"\x05User" + bytes([len(name) + 1]) + name.encode() + b"\x00\x00"


BROKER: Final = granted(on_cluster(CLUSTER_ACTION))
NO_BROKER: Final = granted(on_cluster(ALTER), on_cluster(DESCRIBE), on_cluster(CREATE))
CLIENT: Final = granted(AclLine(CREATE, "x", host="10.1.2.3"), AclLine(CREATE, "x", host="2001:db8:0:0:0:0:0:1"))
LOCAL: Final = granted(AclLine(CREATE, "x", host="127.0.0.1"))


@pytest.mark.parametrize(
    ("client", "host", "error"),
    [
        (CLIENT, "10.1.2.3", NONE),
        (CLIENT, "10.1.2.4", NO_TOPIC),
        (CLIENT, "127.0.0.1", NO_TOPIC),
        (CLIENT, "2001:db8::1", NONE),
        (CLIENT, "2001:db8::2", NO_TOPIC),
        (LOCAL, "10.1.2.3", NO_TOPIC),
        (BROKER, "127.0.0.1", NO_TOPIC),
        ("admin", "10.1.2.4", NONE),
    ],
)
def test_content_of_an_envelope_is_the_clients(
    users: SecuredController, client: str, host: str, error: ErrorCode
) -> None:
    """The broker needs CLUSTER_ACTION; the client inside is authorized by its own name and address."""
    inner = encode_request(19, 7, 5, "c", {"topics": [topic("x")], "timeout": 1, "validate_only": True})[4:]
    body = {
        "request_data": inner,
        "request_principal": principal(client),
        "client_host_address": ip_address(host).packed,
    }
    response = users.client(BROKER).ask(58, body)
    assert response["error_code"] == NONE
    _, fields = decode_response(19, 7, response["response_data"])
    assert codes(fields["topics"]) == {error}
    refused = users.client(NO_BROKER).ask(58, body)
    assert (refused["error_code"], refused["response_data"]) == (NO_CLUSTER, None)


# -- without ACLs, and without an authorizer


@pytest.mark.parametrize(
    ("everyone", "acls", "is_allowed"),
    [
        ("false", (), False),
        ("true", (), True),
        ("true", (AclLine(READ, "x", principal="User:bob"),), False),
        ("true", (AclLine(CREATE, "x"),), True),
        ("true", (AclLine(CREATE, "y", permission=DENY),), True),
    ],
)
def test_resources_without_acls(tmp_path: Path, everyone: str, acls: tuple[AclLine, ...], is_allowed: bool) -> None:
    with secured(tmp_path, {**secured_config("ann"), "allow.everyone.if.no.acl.found": everyone}) as users:
        users.add_acls(*acls, on_cluster(ALTER, principal="User:bob"))
        body = {"topics": [topic("x")], "timeout": 1000, "validate_only": True}
        (result,) = users.client("ann").ask(19, body)["topics"]
    # Without brokers the topic cannot be placed.
    assert result["error_code"] == (ErrorCode.INVALID_REPLICATION_FACTOR if is_allowed else NO_TOPIC)


def test_without_an_authorizer_everything_is_allowed_and_there_are_no_acls(tmp_path: Path) -> None:
    with served(formatted(tmp_path), config=CONFIG) as controller, closing(connected(controller)) as client:
        for api_key, body in BODIES.items():
            expected = {ErrorCode.SECURITY_DISABLED} if api_key in (29, 30, 31) else set()
            answered = codes(client.ask(api_key, body))
            assert NO_CLUSTER not in answered
            assert not expected or answered == expected


@pytest.mark.parametrize(
    ("user", "operations"),
    [
        (granted(on_cluster(ALTER), on_cluster(CREATE)), {ALTER, DESCRIBE, CREATE}),
        (granted(on_cluster(ALL)), {5, 7, 8, 9, 10, 11, 12}),
        (granted(on_cluster(ALL), on_cluster(CREATE, permission=DENY)), {7, 8, 9, 10, 11, 12}),
        (granted(on_cluster(ALTER), on_cluster(DESCRIBE, permission=DENY)), set()),
    ],
)
def test_operations_on_the_cluster_are_described(users: SecuredController, user: str, operations: set[int]) -> None:
    response = users.client(user).ask(60, BODIES[60])
    assert response["cluster_authorized_operations"] == sum(1 << operation for operation in operations)


def test_acls_of_a_log_apply_after_a_restart(tmp_path: Path) -> None:
    config = secured_config("ann")
    with secured(tmp_path, config) as users:
        users.add_acls(AclLine(CREATE, "x"))
    with served(tmp_path, config=config) as controller, closing(SecuredController(controller)) as users:
        body = {"topics": [topic("x"), topic("y")], "timeout": 1000, "validate_only": True}
        results = users.client("ann").ask(19, body)["topics"]
    errors = {each["name"]: each["error_code"] for each in results}
    assert errors == {"x": ErrorCode.INVALID_REPLICATION_FACTOR, "y": NO_TOPIC}
