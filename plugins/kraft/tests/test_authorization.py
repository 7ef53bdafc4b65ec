"""Who may do what: principal, ACLs, request and answer of a KRaft controller with an authorizer (Kafka 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from kframe_kafka_wire.protocol.codec import decode_response, encode_request
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID
from kframe_kafka_wire.records.principals import Principal
from kframe_kraft.apis.cluster_operations import CLUSTER_OPERATIONS, OTHER_APIS
from kframe_kraft.server.authorizer import AuthorizerSettings, StandardAuthorizer, authorizer_settings, host_address

from kframe.errors import ConfigError, ErrorCode
from kframe.plugin.kraft import ClusterMetadata, replay
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType, PatternType, Permission
from verification.kraft.secured_controller import EVERY_ACL, AclLine, SecuredController, secured, secured_config
from verification.kraft.served_controller import CONFIG, FakeBroker, connected, formatted, served

NONE = ErrorCode.NONE
NO_CLUSTER, NO_TOPIC, NO_GROUP = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)
TOPIC_KIND, CLUSTER_KIND, GROUP_KIND = AclResourceType.TOPIC, AclResourceType.CLUSTER, AclResourceType.GROUP
PREFIXED, DENY = PatternType.PREFIXED, Permission.DENY
(
    ALL,
    READ,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
) = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


#: All ACLs of the tables, and the users that they are for.
ACLS: Final[list[AclLine]] = [AclLine(ALL, CLUSTER, CLUSTER_KIND, principal="User:admin", permission=DENY)]
USERS: Final[list[str]] = []


def granted(*acls: AclLine) -> str:
    """The name of a user with these ACLs, and no others."""
    user = f"user{len(USERS)}"
    USERS.append(user)
    ACLS.extend(replace(acl, principal=f"User:{user}") for acl in acls)
    return user


def on_cluster(operation: AclOperation, **fields: Any) -> AclLine:
    return AclLine(operation, CLUSTER, CLUSTER_KIND, **fields)


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredController]:
    with secured(tmp_path_factory.mktemp("controller"), secured_config(*USERS)) as started:
        for broker_id in (0, 1):
            fake = FakeBroker(started.controller, broker_id, started.client())
            fake.register()
            fake.heartbeat(fake.epoch)
        body = {"topics": [topic(name) for name in TOPICS], "timeout": 1000, "validate_only": False}
        assert codes(started.client().ask(19, body)) == {NONE}
        started.add_acls(*ACLS)
        yield started


def topic(name: str) -> dict[str, Any]:
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}


def codes(response: object) -> set[int]:
    """All error codes in a response."""
    if isinstance(response, Mapping):
        own = {value for key, value in response.items() if key in ("error_code", "partition_error_code")}
        return own.union(*(codes(value) for value in response.values()))
    if isinstance(response, Sequence) and not isinstance(response, str | bytes):
        return set().union(*(codes(each) for each in response))
    return set()


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


# -- topics

OK, HIDDEN, FORBIDDEN = (NONE, NONE), (NONE, NO_TOPIC), (NO_TOPIC, NONE)
#: Users, and for topics x and y the error of a creation, and that of their configurations.
CREATIONS: Final = [
    (granted(), FORBIDDEN, FORBIDDEN),
    (granted(AclLine(CREATE, "x")), HIDDEN, FORBIDDEN),
    (granted(AclLine(CREATE, "x"), AclLine(DESCRIBE_CONFIGS, "x")), OK, FORBIDDEN),
    (granted(AclLine(CREATE, "x"), AclLine(ALTER_CONFIGS, "*")), OK, FORBIDDEN),
    (granted(AclLine(CREATE, "y", pattern_type=PREFIXED)), FORBIDDEN, HIDDEN),
    (granted(AclLine(CREATE, "*"), AclLine(CREATE, "y", permission=DENY)), HIDDEN, FORBIDDEN),
    (granted(on_cluster(CREATE)), HIDDEN, HIDDEN),
    (granted(on_cluster(CREATE), AclLine(ALL, "x", permission=DENY)), HIDDEN, HIDDEN),
    (granted(AclLine(ALL, "*"), on_cluster(CREATE, permission=DENY)), OK, OK),
    (granted(on_cluster(ALTER), AclLine(ALTER, "*")), FORBIDDEN, FORBIDDEN),
    ("admin", OK, OK),
]


@pytest.mark.parametrize(("user", "of_x", "of_y"), CREATIONS)
def test_create_topics(
    users: SecuredController, user: str, of_x: tuple[ErrorCode, ErrorCode], of_y: tuple[ErrorCode, ErrorCode]
) -> None:
    body = {"topics": [topic("x"), topic("y")], "timeout": 1000, "validate_only": True}
    results = users.client(user).ask(19, body)["topics"]
    errors = {each["name"]: (each["error_code"], each["topic_config_error_code"]) for each in results}
    assert errors == {"x": of_x, "y": of_y}
    assert len(results) == 2


NOBODY: Final = granted()


def test_unauthorized_topic_is_not_created(users: SecuredController) -> None:
    assert users.controller.node is not None
    body = {"topics": [topic("w")], "timeout": 1000, "validate_only": False}
    assert codes(users.client(NOBODY).ask(19, body)) == {NO_TOPIC}
    assert "w" not in users.controller.node.metadata.topics.index_by_name


def test_repeated_and_internal_topics_are_refused_before_authorization(users: SecuredController) -> None:
    body = {"topics": [topic("x"), topic("x"), topic(TOPIC), topic("y")], "timeout": 1000, "validate_only": False}
    results = users.client(NOBODY).ask(19, body)["topics"]
    invalid = ErrorCode.INVALID_REQUEST
    errors = {each["name"]: each["error_code"] for each in results}
    assert errors == {"x": invalid, TOPIC: invalid, "y": NO_TOPIC}


UNKNOWN_TOPIC, UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID
UNKNOWN: Final = None, UNKNOWN_ID
#: Topics that exist: two for each row of DELETIONS and kind of request.
TOPICS: Final = ["grown"]


def deletion(*acls: AclLine, by_name: tuple[ErrorCode, ...], by_id: tuple[tuple[str | None, ErrorCode], ...]) -> Any:
    """A row: a user, its topics by kind of request, and the results for topics a and b, and z that does not exist."""
    row = len(TOPICS)
    names = [f"{name}-{row}" for name in ("a", "b", "a-id", "b-id")]
    TOPICS.extend(names)
    own = [replace(acl, name=f"{acl.name}-{row}") if acl.name in ("a", "b") else acl for acl in acls]
    by_ids = [replace(acl, name=f"{acl.name}-id-{row}") for acl in acls if acl.name in ("a", "b")]
    return granted(*own, *by_ids), names[:2], names[2:], by_name, by_id


DELETIONS: Final = [
    deletion(
        by_name=(NO_TOPIC, NO_TOPIC, NO_TOPIC),
        by_id=((None, NO_TOPIC), (None, NO_TOPIC), UNKNOWN),
    ),
    deletion(
        AclLine(DESCRIBE, "*"),
        by_name=(NO_TOPIC, NO_TOPIC, UNKNOWN_TOPIC),
        by_id=(("a", NO_TOPIC), ("b", NO_TOPIC), UNKNOWN),
    ),
    deletion(
        AclLine(DELETE, "a"),
        by_name=(NONE, NO_TOPIC, NO_TOPIC),
        by_id=(("a", NONE), (None, NO_TOPIC), UNKNOWN),
    ),
    deletion(
        AclLine(DELETE, "a"),
        AclLine(READ, "b"),
        by_name=(NONE, NO_TOPIC, NO_TOPIC),
        by_id=(("a", NONE), ("b", NO_TOPIC), UNKNOWN),
    ),
    deletion(
        AclLine(ALL, "a"),
        AclLine(DESCRIBE, "a", permission=DENY),
        by_name=(NO_TOPIC, NO_TOPIC, NO_TOPIC),
        by_id=(("a", NONE), (None, NO_TOPIC), UNKNOWN),
    ),
    deletion(
        on_cluster(DELETE),
        by_name=(NONE, NONE, UNKNOWN_TOPIC),
        by_id=(("a", NONE), ("b", NONE), UNKNOWN),
    ),
]


@pytest.mark.parametrize(("user", "names", "id_names", "by_name", "by_id"), DELETIONS)
def test_delete_topics(
    users: SecuredController,
    user: str,
    names: list[str],
    id_names: list[str],
    by_name: tuple[ErrorCode, ...],
    by_id: tuple[tuple[str | None, ErrorCode], ...],
) -> None:
    assert users.controller.node is not None
    topics = users.controller.node.metadata.topics
    named = [{"name": name, "topic_id": bytes(16)} for name in (*names, "z")]
    results = users.client(user).ask(20, {"topics": named, "timeout": 1000})["responses"]
    assert {each["name"]: each["error_code"] for each in results} == dict(zip((*names, "z"), by_name, strict=True))
    ids = [topics.ids[topics.index_by_name[name]].bytes for name in id_names] + [UUID(int=77).bytes]
    asked = [{"name": None, "topic_id": each} for each in ids]
    results = users.client(user).ask(20, {"topics": asked, "timeout": 1000})["responses"]
    answered = {each["topic_id"]: (each["name"], each["error_code"]) for each in results}
    full_names = dict(zip(("a", "b", None), (*id_names, None), strict=True))
    expected = [(full_names[name], error) for name, error in by_id]
    assert answered == dict(zip(ids, expected, strict=True))
    deleted = {name for name, error in zip(names, by_name[:2], strict=True) if error is NONE}
    deleted |= {name for name, error in expected if name is not None and error is NONE}
    assert {*names, *id_names} - topics.index_by_name.keys() == deleted


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (granted(), {"grown": NO_TOPIC, "z": NO_TOPIC}),
        (granted(AclLine(CREATE, "*"), AclLine(DESCRIBE, "*")), {"grown": NO_TOPIC, "z": NO_TOPIC}),
        (granted(on_cluster(ALTER), on_cluster(CREATE)), {"grown": NO_TOPIC, "z": NO_TOPIC}),
        (granted(AclLine(ALTER, "*")), {"grown": NONE, "z": UNKNOWN_TOPIC}),
    ],
)
def test_create_partitions(users: SecuredController, user: str, expected: dict[str, int]) -> None:
    grown = [{"name": name, "count": 2, "assignments": None} for name in expected]
    results = users.client(user).ask(37, {"topics": grown, "timeout": 1000, "validate_only": False})["results"]
    assert {each["name"]: each["error_code"] for each in results} == expected


# -- configurations

OF_TOPIC, OF_BROKERS, OF_METRICS, OF_GROUP = (2, "grown"), (4, ""), (16, "m"), (32, "g")
CONFIG_ROWS: Final = [
    (granted(), {OF_TOPIC: NO_TOPIC, OF_BROKERS: NO_CLUSTER, OF_METRICS: NO_CLUSTER, OF_GROUP: NO_GROUP}),
    (
        granted(AclLine(ALTER_CONFIGS, "grown"), AclLine(ALTER, "*")),
        {OF_TOPIC: NONE, OF_BROKERS: NO_CLUSTER, OF_METRICS: NO_CLUSTER, OF_GROUP: NO_GROUP},
    ),
    (
        granted(on_cluster(ALTER_CONFIGS)),
        {OF_TOPIC: NO_TOPIC, OF_BROKERS: NONE, OF_METRICS: NONE, OF_GROUP: NO_GROUP},
    ),
    (
        granted(AclLine(ALTER_CONFIGS, "g", GROUP_KIND)),
        {OF_TOPIC: NO_TOPIC, OF_BROKERS: NO_CLUSTER, OF_METRICS: NO_CLUSTER, OF_GROUP: NONE},
    ),
    (granted(AclLine(DESCRIBE_CONFIGS, "*"), AclLine(ALTER, "*")), {OF_TOPIC: NO_TOPIC}),
]
VALUES: Final = {
    2: ("retention.ms", "7"),
    4: ("log.retention.ms", "8"),
    16: ("interval.ms", "1000"),
    32: ("consumer.session.timeout.ms", "50000"),
}


@pytest.mark.parametrize("api_key", [33, 44])
@pytest.mark.parametrize(("user", "expected"), CONFIG_ROWS)
def test_alter_configs(users: SecuredController, api_key: int, user: str, expected: dict[tuple[int, str], int]) -> None:
    resources = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": VALUES[kind][0], "value": VALUES[kind][1], "config_operation": 0}],
        }
        for kind, name in expected
    ]
    responses = users.client(user).ask(api_key, {"resources": resources, "validate_only": True})["responses"]
    assert {(each["resource_type"], each["resource_name"]): each["error_code"] for each in responses} == expected


LOGGER_ROWS: Final = [
    (granted(on_cluster(ALTER_CONFIGS), on_cluster(ALTER)), True),
    (granted(on_cluster(CLUSTER_ACTION)), False),
]


@pytest.mark.parametrize(("user", "is_refused"), LOGGER_ROWS)
def test_alter_levels_of_loggers(users: SecuredController, user: str, is_refused: bool) -> None:
    entry = {"name": "a", "value": "INFO", "config_operation": 0}
    resource = {"resource_type": 8, "resource_name": "9", "configs": [entry]}
    answered = codes(users.client(user).ask(44, {"resources": [resource], "validate_only": True}))
    assert (answered == {NO_CLUSTER}) == is_refused


DESCRIPTION_ROWS: Final = [
    (granted(), {OF_TOPIC: NO_TOPIC, OF_BROKERS: NO_CLUSTER, OF_METRICS: NO_CLUSTER, OF_GROUP: NO_GROUP}),
    (
        granted(AclLine(DESCRIBE, "*"), on_cluster(ALTER), on_cluster(DESCRIBE)),
        {OF_TOPIC: NO_TOPIC, OF_BROKERS: NO_CLUSTER},
    ),
    (granted(AclLine(DESCRIBE_CONFIGS, "grown")), {OF_TOPIC: NONE, OF_BROKERS: NO_CLUSTER, OF_GROUP: NO_GROUP}),
    (granted(AclLine(ALTER_CONFIGS, "grown")), {OF_TOPIC: NONE, OF_BROKERS: NO_CLUSTER, OF_GROUP: NO_GROUP}),
    (granted(on_cluster(DESCRIBE_CONFIGS)), {OF_TOPIC: NO_TOPIC, OF_BROKERS: NONE, OF_GROUP: NO_GROUP}),
    (granted(AclLine(DESCRIBE_CONFIGS, "g", GROUP_KIND)), {OF_TOPIC: NO_TOPIC, OF_GROUP: NONE}),
]


@pytest.mark.parametrize(("user", "expected"), DESCRIPTION_ROWS)
def test_describe_configs(users: SecuredController, user: str, expected: dict[tuple[int, str], int]) -> None:
    resources = [{"resource_type": kind, "resource_name": name, "configuration_keys": None} for kind, name in expected]
    body = {"resources": resources, "include_synonyms": False, "include_documentation": False}
    results = users.client(user).ask(32, body)["results"]
    assert {(each["resource_type"], each["resource_name"]): each["error_code"] for each in results} == expected
    assert all(each["configs"] == [] for each in results if each["error_code"] != NONE)


def test_repeated_and_unknown_resources(users: SecuredController) -> None:
    entry = {"name": "retention.ms", "value": "7", "config_operation": 0}
    resources = [{"resource_type": kind, "resource_name": "grown", "configs": [entry]} for kind in (2, 2, 99, 32)]
    responses = users.client(NOBODY).ask(44, {"resources": resources, "validate_only": False})["responses"]
    assert {each["resource_type"]: each["error_code"] for each in responses} == {
        2: ErrorCode.INVALID_REQUEST,
        99: ErrorCode.UNSUPPORTED_VERSION,
        32: NO_GROUP,
    }


# -- the rule: whether ann, at 127.0.0.1, may create topic x

ALLOWED, REFUSED = True, False
RULES: Final = [
    (REFUSED, ()),
    (ALLOWED, (AclLine(CREATE, "x"),)),
    (ALLOWED, (AclLine(ALL, "x"),)),
    (ALLOWED, (AclLine(CREATE, "x", principal="User:*"),)),
    (REFUSED, (AclLine(CREATE, "x", principal="User:an"),)),
    (REFUSED, (AclLine(CREATE, "x", principal="Group:ann"),)),
    (REFUSED, (AclLine(CREATE, "x", GROUP_KIND),)),
    (REFUSED, (AclLine(CREATE, "xx"),)),
    (REFUSED, (AclLine(CREATE, "xx", pattern_type=PREFIXED),)),
    (ALLOWED, (AclLine(CREATE, "x", pattern_type=PREFIXED),)),
    (REFUSED, (AclLine(CREATE, "*", pattern_type=PREFIXED),)),
    (ALLOWED, (AclLine(CREATE, "*"),)),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(CREATE, "x", permission=DENY))),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(ALL, "*", permission=DENY, principal="User:*"))),
    (REFUSED, (AclLine(ALL, "*"), AclLine(CREATE, "x", pattern_type=PREFIXED, permission=DENY))),
    (ALLOWED, (AclLine(CREATE, "x"), AclLine(DELETE, "x", permission=DENY))),
    (ALLOWED, (AclLine(CREATE, "x"), AclLine(ALL, "x", permission=DENY, principal="User:bob"))),
    (ALLOWED, (AclLine(CREATE, "x"), AclLine(ALL, "x", permission=DENY, host="10.1.1.1"))),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(ALL, "x", permission=DENY, host="127.0.0.1"))),
    (ALLOWED, (AclLine(CREATE, "x", host="127.0.0.0/8"),)),
    (REFUSED, (AclLine(CREATE, "x", host="10.0.0.0/8"),)),
    (REFUSED, (AclLine(CREATE, "x", host="127.0.0.0/33"),)),
    (REFUSED, (AclLine(CREATE, "x"), AclLine(CREATE, "*", host="0.0.0.0/0", permission=DENY))),
]


@pytest.mark.parametrize(("is_allowed", "acls"), RULES)
def test_acls_of_a_topic(is_allowed: bool, acls: tuple[AclLine, ...]) -> None:
    metadata = ClusterMetadata()
    authorizer = StandardAuthorizer(metadata, AuthorizerSettings(frozenset({"User:root"}), allow_everyone=False))
    for number, acl in enumerate(acls):
        replay(metadata, acl.record(UUID(int=number + 1)), 0)

    def allows(name: str) -> bool:
        return authorizer.allows(Principal(name), "127.0.0.1", CREATE, TOPIC_KIND, "x")

    assert allows("ann") == is_allowed
    assert allows("root")


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


# -- keys


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, None),
        ({"super.users": "User:a"}, None),
        ({"authorizer.class.name": ""}, None),
        (
            {"super.users": " User:a ;; User:CN=b,O=c;"},
            AuthorizerSettings(frozenset({"User:a", "User:CN=b,O=c"}), False),
        ),
        ({"allow.everyone.if.no.acl.found": "TRUE"}, AuthorizerSettings(frozenset(), True)),
    ],
)
def test_keys_of_the_authorizer(config: dict[str, str], expected: AuthorizerSettings | None) -> None:
    named = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    assert authorizer_settings({**named, **config} if expected is not None else config) == expected


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer", "StandardAuthorizer"),
        ("super.users", "admin", "TYPE:NAME"),
        ("super.users", "User:a;:b", "TYPE:NAME"),
        ("allow.everyone.if.no.acl.found", "yes", "true or false"),
    ],
)
def test_wrong_keys_of_the_authorizer(key: str, value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as error:
        authorizer_settings({**secured_config(), key: value})
    assert key in str(error.value)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ab:0", "2001:db8:0:0:0:0:ab:0"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("", ""),
    ],
)
def test_addresses_are_written_as_in_java(host: str, address: str) -> None:
    assert host_address(host) == address
