"""The rules of AclAuthorizer as a table, and requests without permission."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER, AclAuthorizer, authorizer_of
from kframe_kafka_wire.records.principals import Principal, distinguished_name, name_mapper

from kframe.plugin import StoreError
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType
from kframe.testing.clusters import healthy
from verification.kafka_wire.served import FakeRecords, Served, acl_record

CONFIG = {"authorizer.class.name": ACL_AUTHORIZER, "super.users": "User:root;User:CN=admin,O=x"}


ACLS = {
    "/kafka-acl/Topic/t": acl_record(("User:alice", "Allow", "Read", "*"), ("User:bob", "Allow", "All", "10.0.0.1")),
    "/kafka-acl/Topic/denied": acl_record(("User:*", "Allow", "All", "*"), ("User:alice", "Deny", "Write", "*")),
    "/kafka-acl/Topic/*": acl_record(("User:everywhere", "Allow", "Describe", "*")),
    "/kafka-acl/Topic/configs": acl_record(("User:alice", "Allow", "AlterConfigs", "*")),
    "/kafka-acl/Topic/broken": '{"acls": [{"principal": "User:alice"}]}',
    "/kafka-acl/Cluster/kafka-cluster": acl_record(("User:broker", "Allow", "ClusterAction", "*")),
    "/kafka-acl-extended/prefixed/Topic/team-": acl_record(("User:alice", "Allow", "Create", "*")),
}
TOPIC, READ, WRITE, DESCRIBE = AclResourceType.TOPIC, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE

#: (user, host, operation, kind, name, allowed)
TABLE = [
    ("alice", "h", READ, TOPIC, "t", True),
    ("alice", "h", DESCRIBE, TOPIC, "t", True),  # READ implies DESCRIBE.
    ("alice", "h", WRITE, TOPIC, "t", False),
    ("alice", "h", AclOperation.DESCRIBE_CONFIGS, TOPIC, "t", False),
    ("alice", "h", AclOperation.DESCRIBE_CONFIGS, TOPIC, "configs", True),
    ("bob", "10.0.0.1", AclOperation.DELETE, TOPIC, "t", True),
    ("bob", "10.0.0.2", AclOperation.DELETE, TOPIC, "t", False),
    ("carol", "h", WRITE, TOPIC, "denied", True),
    ("alice", "h", WRITE, TOPIC, "denied", False),  # A denial wins.
    ("alice", "h", DESCRIBE, TOPIC, "denied", True),  # A denial implies nothing.
    ("everywhere", "h", DESCRIBE, TOPIC, "any", True),
    ("everywhere", "h", READ, TOPIC, "any", False),
    ("alice", "h", AclOperation.CREATE, TOPIC, "team-1", True),
    ("alice", "h", AclOperation.CREATE, TOPIC, "team", False),
    ("alice", "h", READ, TOPIC, "broken", False),
    ("carol", "h", READ, TOPIC, "broken", False),
    ("broker", "h", AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER, True),
    ("broker", "h", AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER, False),
    ("alice", "h", READ, AclResourceType.GROUP, "t", False),  # Another resource type.
    ("root", "h", AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER, True),
    ("CN=admin,O=x", "h", READ, TOPIC, "broken", True),
    ("ANONYMOUS", "h", READ, TOPIC, "t", False),
]


@pytest.fixture
def authorizer() -> AclAuthorizer:
    authorizer = authorizer_of(CONFIG, FakeRecords(ACLS))
    assert isinstance(authorizer, AclAuthorizer)
    assert not authorizer.allows(Principal("alice"), "h", READ, TOPIC, "t")  # Nothing was loaded yet.
    assert authorizer.allows(Principal("root"), "h", READ, TOPIC, "t")
    authorizer.refresh()
    return authorizer


@pytest.mark.parametrize("user, host, operation, kind, name, allowed", TABLE)
def test_acl_rules(
    user: str,
    host: str,
    operation: AclOperation,
    kind: AclResourceType,
    name: str,
    allowed: bool,
    authorizer: AclAuthorizer,
) -> None:
    assert authorizer.allows(Principal(user), host, operation, kind, name) is allowed


def test_entries_are_reloaded_after_a_change() -> None:
    records = FakeRecords({})
    authorizer = authorizer_of(CONFIG, records)
    assert isinstance(authorizer, AclAuthorizer)
    assert not authorizer.is_ready()
    authorizer.refresh_if_changed()
    assert authorizer.is_ready()
    records.records |= ACLS
    authorizer.refresh_if_changed()
    assert not authorizer.allows(Principal("alice"), "h", READ, TOPIC, "t")  # No ACL allows it.
    records.records["/kafka-acl-changes/acl_changes_0000000000"] = "TOPIC:t"
    authorizer.refresh_if_changed()
    assert authorizer.allows(Principal("alice"), "h", READ, TOPIC, "t")
    del records.records["/kafka-acl/Topic/t"]
    records.records["/kafka-acl-extended-changes/acl_changes_0000000000"] = "{}"
    authorizer.refresh_if_changed()
    assert not authorizer.allows(Principal("alice"), "h", READ, TOPIC, "t")


def test_allow_everyone_setting_applies_without_entries() -> None:
    config = {**CONFIG, "allow.everyone.if.no.acl.found": "true"}
    lenient = authorizer_of(config, FakeRecords({"/kafka-acl/Topic/t": ACLS["/kafka-acl/Topic/t"]}))
    assert isinstance(lenient, AclAuthorizer)
    lenient.refresh()
    assert lenient.allows(Principal("x"), "h", WRITE, TOPIC, "other")
    assert not lenient.allows(Principal("x"), "h", WRITE, TOPIC, "t")


def test_unsupported_authorizer_denies() -> None:
    unknown = authorizer_of({**CONFIG, "authorizer.class.name": "com.example.Mine"}, FakeRecords(ACLS))
    assert not unknown.allows_any(Principal("alice"), "h", WRITE, TOPIC)
    assert unknown.allows_any(Principal("root"), "h", WRITE, TOPIC)
    assert not unknown.allows(Principal("alice"), "h", READ, TOPIC, "t")
    assert unknown.allows(Principal("root"), "h", READ, TOPIC, "t")


def test_without_authorizer_everything_is_allowed() -> None:
    assert authorizer_of({}, FakeRecords(ACLS)).allows(Principal("x"), "h", WRITE, TOPIC, "t")


#: Responses without permissions: (API key, version, fields, path of the error code, code).
DENIED: list[tuple[int, int, Mapping[str, object], tuple[str | int, ...], int]] = [
    (7, 3, {"broker_id": 1}, ("error_code",), 31),
    (56, 3, {"broker_id": 1}, ("error_code",), 31),
    (67, 0, {"broker_id": 1}, ("error_code",), 31),
    (45, 0, {"topics": ()}, ("error_code",), 31),
    (46, 0, {"topics": None}, ("error_code",), 31),
    (4, 7, {}, ("error_code",), 31),
    (5, 4, {}, ("error_code",), 31),
    (6, 8, {}, ("error_code",), 31),
    (
        27,
        1,
        {"markers": [{"topics": [{"name": "t", "partition_indexes": [0]}]}]},
        ("markers", 0, "topics", 0, "partitions", 0, "error_code"),
        31,
    ),
    (29, 3, {"resource_type_filter": 2}, ("error_code",), 31),
    (30, 3, {"creations": [{"resource_type": 2, "resource_name": "t"}]}, ("results", 0, "error_code"), 31),
    (31, 3, {"filters": [{"resource_type_filter": 2}]}, ("filter_results", 0, "error_code"), 31),
    (
        34,
        2,
        {"dirs": [{"path": "p", "topics": [{"name": "t", "partitions": [0]}]}]},
        ("results", 0, "partitions", 0, "error_code"),
        31,
    ),
    (35, 4, {"topics": None}, ("error_code",), 31),
    (38, 3, {"owner_principal_name": "bob"}, ("error_code",), 64),
    (41, 3, {"owners": None}, ("error_code",), 64),
    (48, 1, {"components": ()}, ("error_code",), 31),
    (49, 1, {"entries": [{"entity": [{"entity_type": "user", "entity_name": "u"}]}]}, ("entries", 0, "error_code"), 31),
    (50, 0, {"users": None}, ("error_code",), 31),
    (51, 0, {"deletions": [{"name": "u", "mechanism": 1}]}, ("results", 0, "error_code"), 31),
    (57, 1, {"feature_updates": ()}, ("error_code",), 31),
    (22, 4, {"transactional_id": None}, ("error_code",), 31),
    (43, 2, {"topic_partitions": [{"topic": "t", "partitions": [0]}]}, ("error_code",), 31),
    (19, 7, {"topics": [{"name": "n", "num_partitions": 1, "replication_factor": 1}]}, ("topics", 0, "error_code"), 29),
    (20, 5, {"topic_names": ["t"]}, ("responses", 0, "error_code"), 29),
    (37, 3, {"topics": [{"name": "t", "count": 3}]}, ("results", 0, "error_code"), 29),
    (32, 4, {"resources": [{"resource_type": 2, "resource_name": "t"}]}, ("results", 0, "error_code"), 29),
    (32, 4, {"resources": [{"resource_type": 4, "resource_name": ""}]}, ("results", 0, "error_code"), 31),
    (33, 2, {"resources": [{"resource_type": 2, "resource_name": "t"}]}, ("responses", 0, "error_code"), 29),
    (44, 1, {"resources": [{"resource_type": 4, "resource_name": ""}]}, ("responses", 0, "error_code"), 31),
    (3, 12, {"topics": [{"name": "t"}]}, ("topics", 0, "error_code"), 29),
    (3, 12, {"topics": None}, ("topics",), []),  # type: ignore[list-item]
    (10, 4, {"coordinator_keys": ["g"]}, ("coordinators", 0, "error_code"), 30),
    (10, 4, {"coordinator_keys": ["x"], "key_type": 1}, ("coordinators", 0, "error_code"), 53),
]


def test_unauthorized_requests_have_authorization_errors() -> None:
    with Served({"t": [healthy(1)]}, config=CONFIG, records=FakeRecords({})) as served, served.client() as client:
        for api_key, version, fields, path, code in DENIED:
            response: object = client.ask(api_key, version, **fields)
            for step in path:
                response = response[step]  # type: ignore[index]
            assert response == code, (api_key, version)


class UnreadableRecords(FakeRecords):
    """Records of a store that is not connected yet."""

    def read_record_names(self, path: str) -> tuple[str, ...]:
        raise StoreError("not connected")


def test_requests_are_refused_before_acls_are_loaded() -> None:
    served = Served({"t": [healthy(1)]}, config=CONFIG, records=UnreadableRecords({}))
    with served, served.client() as client:
        assert client.ask(18, 0)["error_code"] == 0
        with pytest.raises(ConnectionError):
            client.ask(3, 12, topics=None)


#: (rules, subject, principal)
NAMES = [
    ("DEFAULT", "CN=a,O=b", "CN=a,O=b"),
    ("", "CN=a,O=b", "CN=a,O=b"),
    ("RULE:^CN=(.*?),O=(.*)$/$1@$2/", "CN=a,O=b", "a@b"),
    ("RULE:^CN=(.*?),O=b$/$1/U, DEFAULT", "CN=a,O=b", "A"),
    ("RULE:^CN=(.*?),O=x$/$1/U, DEFAULT", "CN=a,O=b", "CN=a,O=b"),
    ("RULE:^CN=(.*)$/$1/L", "CN=ABC", "abc"),
]


@pytest.mark.parametrize("rules, subject, name", NAMES)
def test_certificates_become_principals(rules: str, subject: str, name: str) -> None:
    assert name_mapper(rules)(subject) == name


def test_subjects_have_format_of_java() -> None:
    subject = ((("countryName", "DE"),), (("organizationName", "a, b"),), (("commonName", "x"),))
    assert distinguished_name({"subject": subject}) == "CN=x,O=a\\, b,C=DE"
