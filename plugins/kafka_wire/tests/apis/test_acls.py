"""DescribeAcls, CreateAcls and DeleteAcls from and to storage, through a real socket."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER, AclAuthorizer, authorizer_of
from kframe_kafka_wire.records.acls import Acl, ResourcePattern, exact_patterns, read_acls
from kframe_kafka_wire.records.acls import decode_acls as decoded
from kframe_kafka_wire.records.principals import Principal
from kframe_kafka_wire.records.store import settings_of_user
from kframe_kafka_wire.records.tokens import Tokens

from kframe.plugin.server import AclFilter, AclOperation, AclResourceType, PatternType
from kframe.testing.clusters import healthy
from verification.kafka_wire.client import Client
from verification.kafka_wire.served import FakeRecords, Served, acl_record

CONFIG = {"authorizer.class.name": ACL_AUTHORIZER, "super.users": "User:ANONYMOUS"}
ANYTHING = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def entry(
    principal: str, operation: str = "Read", permission: str = "Allow", host: str = "*"
) -> tuple[str, str, str, str]:
    return principal, permission, operation, host


STORED = {
    "/kafka-acl/Topic/t": acl_record(entry("User:a"), entry("User:b", "All", "Deny", "10.0.0.1")),
    "/kafka-acl/Topic/*": acl_record(entry("User:a", "Describe")),
    "/kafka-acl-extended/prefixed/Topic/team-": acl_record(entry("User:c", "Write")),
    "/kafka-acl/User/User:a": acl_record(entry("User:c", "CreateTokens")),
}


@pytest.fixture
def records() -> FakeRecords:
    return FakeRecords(STORED)


@pytest.fixture
def client(records: FakeRecords) -> Iterator[Client]:
    with Served({"t": [healthy(1)]}, config=CONFIG, records=records) as served, served.client() as client:
        yield client


def described(client: Client, version: int = 3, **acl_filter: Any) -> set[tuple[int, int, str, str, int, int]]:
    response = client.ask(29, version, **{**ANYTHING, **acl_filter})
    assert response["error_code"] == 0
    return {
        (
            resource["resource_type"],
            resource.get("pattern_type", 3),
            resource["resource_name"],
            acl["principal"],
            acl["operation"],
            acl["permission_type"],
        )
        for resource in response["resources"]
        for acl in resource["acls"]
    }


T_A, T_B = (2, 3, "t", "User:a", 3, 3), (2, 3, "t", "User:b", 2, 2)
STAR, TEAM, USER = (2, 3, "*", "User:a", 8, 3), (2, 4, "team-", "User:c", 4, 3), (7, 3, "User:a", "User:c", 13, 3)
#: (filter, matching entries)
FILTERS: list[tuple[dict[str, Any], set[tuple[int, int, str, str, int, int]]]] = [
    ({}, {T_A, T_B, STAR, TEAM, USER}),
    ({"resource_type_filter": 2}, {T_A, T_B, STAR, TEAM}),
    ({"resource_type_filter": 2, "resource_name_filter": "t"}, {T_A, T_B}),
    ({"resource_type_filter": 2, "resource_name_filter": "t", "pattern_type_filter": 2}, {T_A, T_B, STAR}),
    ({"resource_type_filter": 2, "resource_name_filter": "team-1", "pattern_type_filter": 2}, {STAR, TEAM}),
    ({"resource_type_filter": 2, "resource_name_filter": "team-1"}, set()),
    ({"pattern_type_filter": 4}, {TEAM}),
    ({"principal_filter": "User:c"}, {TEAM, USER}),
    ({"host_filter": "10.0.0.1"}, {T_B}),
    ({"operation": 3}, {T_A}),
    ({"permission_type": 2}, {T_B}),
]


@pytest.mark.parametrize("acl_filter, selected", FILTERS)
def test_filters_match_like_those_of_kafka(
    acl_filter: dict[str, Any], selected: set[tuple[int, int, str, str, int, int]], client: Client
) -> None:
    assert described(client, **acl_filter) == selected


def test_version_0_knows_literal_patterns_alone(client: Client) -> None:
    assert described(client, 0) == {T_A, T_B, STAR, USER}


def creation(name: str = "t", kind: int = 2, pattern_type: int = 3, principal: str = "User:x") -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "resource_pattern_type": pattern_type,
        "principal": principal,
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }


def test_entries_are_added_and_brokers_are_notified(client: Client, records: FakeRecords) -> None:
    creations = [creation(), creation(principal="User:y"), creation("p-", pattern_type=4), creation("kafka-cluster", 4)]
    assert [result["error_code"] for result in client.ask(30, 3, creations=creations)["results"]] == [0, 0, 0, 0]
    acls = decoded(records.records["/kafka-acl/Topic/t"].encode())
    assert {acl.principal for acl in acls} == {"User:a", "User:b", "User:x", "User:y"}
    assert json.loads(records.records["/kafka-acl/Cluster/kafka-cluster"]) == json.loads(acl_record(entry("User:x")))
    assert records.appended == [
        ("/kafka-acl-changes/acl_changes_", "TOPIC:t"),
        (
            "/kafka-acl-extended-changes/acl_changes_",
            '{"version":1,"resourceType":"TOPIC","name":"p-","patternType":"PREFIXED"}',
        ),
        ("/kafka-acl-changes/acl_changes_", "CLUSTER:kafka-cluster"),
    ]
    client.ask(30, 3, creations=[creation()])
    assert len(records.appended) == 3  # Nothing has changed.


@pytest.mark.parametrize(
    "entry",
    [
        creation(""),
        creation("other", 4),
        creation("a/b"),
        creation(kind=9),
        creation(pattern_type=2),
        creation(principal="invalid"),
        {**creation(), "operation": 1},
        {**creation(), "permission_type": 1},
    ],
)
def test_invalid_entry_is_refused_separately(entry: dict[str, Any], client: Client, records: FakeRecords) -> None:
    results = client.ask(30, 3, creations=[entry, creation("good")])["results"]
    assert [result["error_code"] for result in results] == [42, 0]
    assert len(records.records) == len(STORED) + 1


def test_deleted_entry_is_reported_for_first_matching_filter(client: Client, records: FakeRecords) -> None:
    by_name = {**ANYTHING, "resource_type_filter": 2, "resource_name_filter": "t", "pattern_type_filter": 3}
    filters = [{**by_name, "principal_filter": "User:a"}, by_name, {**by_name, "resource_name_filter": "none"}]
    response = client.ask(31, 3, filters=filters)["filter_results"]
    assert [[acl["principal"] for acl in result["matching_acls"]] for result in response] == [
        ["User:a"],
        ["User:b"],
        [],
    ]
    assert "/kafka-acl/Topic/t" not in records.records
    assert records.appended == [("/kafka-acl-changes/acl_changes_", "TOPIC:t")]
    assert described(client) == {STAR, TEAM, USER}


def test_a_concurrent_write_is_retained(client: Client, records: FakeRecords) -> None:
    """Another client writes first. The controller's write is refused and planned again from the present record."""
    read = records.read_versioned_record
    raced: list[str] = []

    def race(path: str) -> tuple[bytes, int] | None:
        data = read(path)
        if data is not None and not raced:
            raced.append(path)
            assert records.write_record(path, acl_record(entry("User:other")).encode(), data[1])
        return data

    records.read_versioned_record = race  # type: ignore[method-assign]
    assert client.ask(30, 3, creations=[creation()])["results"][0]["error_code"] == 0
    acls = decoded(records.records["/kafka-acl/Topic/t"].encode())
    assert {acl.principal for acl in acls} == {"User:other", "User:x"}


def test_without_an_authorizer_acls_are_disabled(records: FakeRecords) -> None:
    with Served({"t": [healthy(1)]}, records=records) as served, served.client() as client:
        assert client.ask(29, 3, **ANYTHING)["error_code"] == 54
        assert [result["error_code"] for result in client.ask(30, 3, creations=[creation()] * 2)["results"]] == [54, 54]
        assert [result["error_code"] for result in client.ask(31, 3, filters=[ANYTHING])["filter_results"]] == [54]


@pytest.mark.parametrize("data", [b"[]", b'{"acls": [{}]}', acl_record(entry("invalid")).encode(), b"\xff"])
def test_malformed_acl_record_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"ACLs|principal"):
        decoded(data)


def test_random_acl_records_are_decoded_or_refused() -> None:
    """A malformed record denies access or is ignored. No request fails."""
    chance, tokens = random.Random(5), Tokens("s", 10, 5)
    token = {
        "version": 3,
        "owner": "User%3Aa",
        "tokenRequester": "User%3Aa",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 2,
        "expiryTimestamp": 2,
        "tokenId": "x",
    }
    texts = [STORED["/kafka-acl/Topic/t"], json.dumps(token)]
    pieces = [b"", b"null", b"{}", b"1e999", b'"', b"\xff", b"7"]
    for _ in range(5_000):
        data = bytearray(chance.choice(texts).encode())
        for _ in range(chance.randrange(1, 4)):
            start = chance.randrange(len(data))
            data[start : start + chance.randrange(6)] = chance.choice(pieces)
        raw = bytes(data)
        paths = ("/kafka-acl/Topic/t", "/delegation_token/tokens/x", "/config/users/u")
        records = RawRecords(dict.fromkeys(paths, raw))
        table = read_acls(records)
        assert table.literal[AclResourceType.TOPIC, "t"] is not None
        list(tokens.read_all(records))
        settings_of_user(records, "u")


class RawRecords(FakeRecords):
    """Records with arbitrary bytes."""

    def __init__(self, records: Mapping[str, bytes]) -> None:
        super().__init__(dict.fromkeys(records, ""))
        self.raw = records

    def read_record(self, path: str) -> bytes | None:
        return self.raw.get(path)


#: (entries by pattern, whether User:a may write to any topic)
SOME_TOPIC: list[tuple[dict[str, str], bool]] = [
    ({}, False),
    ({"/kafka-acl/Topic/t": acl_record(entry("User:a", "Write"))}, True),
    ({"/kafka-acl/Topic/t": acl_record(entry("User:a", "Read"))}, False),
    ({"/kafka-acl/Group/t": acl_record(entry("User:a", "Write"))}, False),
    ({"/kafka-acl/Topic/t": acl_record(entry("User:*", "All"))}, True),
    ({"/kafka-acl/Topic/t": acl_record(entry("User:a", "Write"), entry("User:*", "Write", "Deny"))}, False),
    (
        {
            "/kafka-acl-extended/prefixed/Topic/te": acl_record(entry("User:a", "Write", "Deny")),
            "/kafka-acl/Topic/team": acl_record(entry("User:a", "Write")),
        },
        False,
    ),
    (
        {
            "/kafka-acl-extended/prefixed/Topic/te": acl_record(entry("User:a", "Write", "Deny")),
            "/kafka-acl-extended/prefixed/Topic/t": acl_record(entry("User:a", "Write")),
        },
        True,
    ),
    (
        {
            "/kafka-acl/Topic/*": acl_record(entry("User:a", "Write", "Deny")),
            "/kafka-acl/Topic/t": acl_record(entry("User:a", "Write")),
        },
        False,
    ),
]


@pytest.mark.parametrize("stored, allowed", SOME_TOPIC)
def test_allows_any_for_topic_write(stored: dict[str, str], allowed: bool) -> None:
    authorizer = authorizer_of(CONFIG, FakeRecords(stored))
    assert isinstance(authorizer, AclAuthorizer)
    authorizer.refresh()
    assert authorizer.allows_any(Principal("a"), "h", AclOperation.WRITE, AclResourceType.TOPIC) is allowed
    assert authorizer.allows_any(Principal("ANONYMOUS"), "h", AclOperation.WRITE, AclResourceType.TOPIC)


def test_exact_patterns_of_a_filter() -> None:
    acl_filter = AclFilter(AclResourceType.TOPIC, "t")
    literal, prefixed = (
        ResourcePattern(AclResourceType.TOPIC, each, "t") for each in (PatternType.LITERAL, PatternType.PREFIXED)
    )
    assert exact_patterns(acl_filter) == [literal, prefixed]
    assert Acl("User:a", allow=True, operation=AclOperation.READ, host="*").is_selected_by(acl_filter)
