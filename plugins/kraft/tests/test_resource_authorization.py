"""Who may create, delete, alter and describe topics and configurations at a KRaft controller (Kafka 4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest
from kframe_kafka_wire.protocol.metadata_log import TOPIC

from kframe.errors import ErrorCode
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
    GROUP_KIND,
    NO_CLUSTER,
    NO_GROUP,
    NO_TOPIC,
    NONE,
    PREFIXED,
    READ,
    UserTable,
    codes,
    on_cluster,
    topic,
)
from verification.kraft.secured_controller import AclLine, SecuredController

TABLE: Final = UserTable()
granted = TABLE.granted


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredController]:
    with TABLE.started(tmp_path_factory.mktemp("controller"), TOPICS) as started:
        yield started


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


WITHOUT_ACLS: Final = granted()


def test_unauthorized_topic_is_not_created(users: SecuredController) -> None:
    assert users.controller.node is not None
    body = {"topics": [topic("w")], "timeout": 1000, "validate_only": False}
    assert codes(users.client(WITHOUT_ACLS).ask(19, body)) == {NO_TOPIC}
    assert "w" not in users.controller.node.metadata.topics.index_by_name


def test_repeated_and_internal_topics_are_refused_before_authorization(users: SecuredController) -> None:
    body = {"topics": [topic("x"), topic("x"), topic(TOPIC), topic("y")], "timeout": 1000, "validate_only": False}
    results = users.client(WITHOUT_ACLS).ask(19, body)["topics"]
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
    responses = users.client(WITHOUT_ACLS).ask(44, {"resources": resources, "validate_only": False})["responses"]
    assert {each["resource_type"]: each["error_code"] for each in responses} == {
        2: ErrorCode.INVALID_REQUEST,
        99: ErrorCode.UNSUPPORTED_VERSION,
        32: NO_GROUP,
    }
