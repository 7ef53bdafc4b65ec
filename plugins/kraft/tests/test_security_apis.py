"""ACLs, SCRAM users and logins of a KRaft controller, as clients ask for them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS
from kframe_kafka_wire.listeners.security import Credentials
from kframe_kafka_wire.protocol.codec import decode_response, encode_request
from kframe_kafka_wire.protocol.errors import PermanentFailure
from kframe_kafka_wire.records.credentials import make_credential
from kframe_kafka_wire.records.principals import Principal
from kframe_kraft.server.logins import token_credentials, token_settings

from kframe.errors import ConfigError, ErrorCode
from kframe.plugin.server import AclOperation, AclResourceType, PatternType, Permission
from kframe.testing.waiting import wait_until
from verification.kraft.secured_controller import (
    EVERY_ACL,
    AclLine,
    SecuredController,
    password_of,
    secured,
    secured_config,
)
from verification.kraft.served_controller import CONFIG, connected, formatted, served

NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
READ, WRITE = AclOperation.READ, AclOperation.WRITE
PREFIXED, LITERAL, MATCH = PatternType.PREFIXED, PatternType.LITERAL, PatternType.MATCH
TOPIC, GROUP, CLUSTER = AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER
SHA_256, SHA_512 = 1, 2


@pytest.fixture
def users(tmp_path: Path) -> Iterator[SecuredController]:
    with secured(tmp_path, secured_config("ann")) as started:
        yield started


# -- ACLs

T, TE, ANY_TOPIC, G = (
    AclLine(READ, "t"),
    AclLine(WRITE, "te", pattern_type=PREFIXED, host="10.0.0.1"),
    AclLine(READ, "*", principal="User:bob", permission=Permission.DENY),
    AclLine(READ, "g", GROUP),
)


def described(users: SecuredController, **fields: Any) -> set[AclLine]:
    """The ACLs that a filter selects."""
    response = users.client().ask(29, {**EVERY_ACL, **fields})
    assert (response["error_code"], response["error_message"]) == (NONE, None)
    patterns = [(each["resource_type"], each["resource_name"], each["pattern_type"]) for each in response["resources"]]
    assert len(set(patterns)) == len(patterns)
    return {
        line(acl, *pattern)
        for pattern, resource in zip(patterns, response["resources"], strict=True)
        for acl in resource["acls"]
    }


def line(acl: dict[str, Any], kind: int, name: str, pattern_type: int) -> AclLine:
    return AclLine(
        AclOperation(acl["operation"]),
        name,
        AclResourceType(kind),
        PatternType(pattern_type),
        acl["principal"],
        acl["host"],
        Permission(acl["permission_type"]),
    )


@pytest.mark.parametrize(
    ("fields", "selected"),
    [
        ({}, {T, TE, ANY_TOPIC, G}),
        ({"resource_type_filter": GROUP}, {G}),
        ({"resource_name_filter": "t"}, {T}),
        ({"resource_name_filter": "test", "pattern_type_filter": MATCH}, {TE, ANY_TOPIC}),
        ({"resource_name_filter": "t", "pattern_type_filter": LITERAL}, {T}),
        ({"principal_filter": "User:bob"}, {ANY_TOPIC}),
        ({"host_filter": "10.0.0.1"}, {TE}),
        ({"operation": WRITE}, {TE}),
        ({"permission_type": Permission.DENY}, {ANY_TOPIC}),
        ({"resource_name_filter": "none"}, set()),
    ],
)
def test_acls_are_described_and_deleted_by_filter(
    users: SecuredController, fields: dict[str, Any], selected: set[AclLine]
) -> None:
    every = {T, TE, ANY_TOPIC, G}
    users.add_acls(*every)
    users.add_acls(T)  # The same one again.
    assert described(users, **fields) == selected
    (result,) = users.client().ask(31, {"filters": [{**EVERY_ACL, **fields}]})["filter_results"]
    assert result["error_code"] == NONE
    deleted = [
        line(acl, acl["resource_type"], acl["resource_name"], acl["pattern_type"]) for acl in result["matching_acls"]
    ]
    assert (set(deleted), len(deleted)) == (selected, len(selected))
    assert described(users) == every - selected


@pytest.mark.parametrize(
    "fields",
    [{"operation": 99}, {"permission_type": 0}, {"resource_type_filter": 0}, {"pattern_type_filter": 9}],
)
def test_unknown_codes_of_filters_are_refused(users: SecuredController, fields: dict[str, int]) -> None:
    users.add_acls(T)
    assert users.client().ask(29, {**EVERY_ACL, **fields})["error_code"] == INVALID
    (result,) = users.client().ask(31, {"filters": [{**EVERY_ACL, **fields}]})["filter_results"]
    assert (result["error_code"], result["matching_acls"]) == (INVALID, [])
    assert described(users) == {T}


def test_each_acl_of_a_request_is_created_or_refused(users: SecuredController) -> None:
    creations = [
        T.creation(),
        {**T.creation(), "resource_name": ""},
        AclLine(READ, "other", CLUSTER).creation(),
        {**T.creation(), "principal": "ann"},
        {**T.creation(), "operation": AclOperation.ANY},
        {**T.creation(), "resource_pattern_type": MATCH},
        {**T.creation(), "host": "10.0.0.0/8"},
        G.creation(),
    ]
    results = users.client().ask(30, {"creations": creations})["results"]
    refused = 5 * [INVALID]
    assert [each["error_code"] for each in results] == [NONE, *refused, ErrorCode.UNSUPPORTED_VERSION, NONE]
    assert "4.4-IV1" in results[6]["error_message"]
    assert described(users) == {T, G}


# -- SCRAM users

SALT: Final = b"some salt"


def upsertion(user: str, password: str, mechanism: int = SHA_256, iterations: int = 4096) -> dict[str, Any]:
    name = {SHA_256: "sha256", SHA_512: "sha512"}.get(mechanism, "sha256")
    salted = hashlib.pbkdf2_hmac(name, password.encode(), SALT, iterations)
    return {
        "name": user,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": SALT,
        "salted_password": salted,
    }


def alter(users: SecuredController, *upsertions: dict[str, Any], deletions: tuple[tuple[str, int], ...] = ()) -> Any:
    """The error of each user."""
    deleted = [{"name": name, "mechanism": mechanism} for name, mechanism in deletions]
    results = users.client().ask(51, {"deletions": deleted, "upsertions": upsertions})["results"]
    return {each["user"]: each["error_code"] for each in results}


@pytest.mark.parametrize(("mechanism", "code"), [("SCRAM-SHA-256", SHA_256), ("SCRAM-SHA-512", SHA_512)])
def test_users_of_the_metadata_log_in(users: SecuredController, mechanism: str, code: int) -> None:
    (other,) = {"SCRAM-SHA-256", "SCRAM-SHA-512"} - {mechanism}
    assert alter(users, upsertion("eve", "pass", code), upsertion("admin", "pass", code)) == {
        "eve": NONE,
        "admin": NONE,
    }
    eve = users.login(Credentials(mechanism, "eve", "pass"))
    assert eve.ask(46, {"timeout": 1, "topics": None})["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    admin = users.login(Credentials(mechanism, "admin", "pass"))
    assert admin.ask(46, {"timeout": 1, "topics": None})["error_code"] == NONE
    for wrong in (
        Credentials(mechanism, "eve", "other"),
        Credentials(mechanism, "nobody", "pass"),
        Credentials(other, "eve", "pass"),
    ):
        with pytest.raises(PermanentFailure):
            users.login(wrong)
    assert alter(users, upsertion("eve", "new", code)) == {"eve": NONE}
    with pytest.raises(PermanentFailure):
        users.login(Credentials(mechanism, "eve", "pass"))
    users.login(Credentials(mechanism, "eve", "new"))
    assert alter(users, deletions=(("eve", code),)) == {"eve": NONE}
    with pytest.raises(PermanentFailure):
        users.login(Credentials(mechanism, "eve", "new"))


def test_refused_credentials(users: SecuredController) -> None:
    errors = alter(
        users,
        upsertion("a", "p"),
        upsertion("few", "p", iterations=4095),
        upsertion("many", "p", iterations=16385),
        upsertion("mechanism", "p", mechanism=9),
        upsertion("", "p"),
        upsertion("twice", "p"),
        upsertion("twice", "p"),
        deletions=(("missing", SHA_256),),
    )
    assert errors == {
        "a": NONE,
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "mechanism": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
        "missing": ErrorCode.RESOURCE_NOT_FOUND,
    }
    assert users.controller.node is not None
    assert users.controller.node.metadata.scram.keys() == {("a", SHA_256)}


def test_users_of_a_log_log_in_after_a_restart(tmp_path: Path) -> None:
    config = secured_config()
    with secured(tmp_path, config) as users:
        alter(users, upsertion("eve", "pass"))
    with served(tmp_path, config=config) as controller, closing(SecuredController(controller)) as users:
        users.login(Credentials("SCRAM-SHA-256", "eve", "pass"))


# -- PLAIN


def test_clients_log_in_before_other_requests(users: SecuredController) -> None:
    users.client("ann")
    for wrong in (Credentials("PLAIN", "ann", password_of("admin")), Credentials("PLAIN", "eve", "")):
        with pytest.raises(PermanentFailure):
            users.login(wrong)
    with closing(connected(users.controller)) as client, pytest.raises(CONNECTION_ERRORS):
        client.ask(46, {"timeout": 1, "topics": None})


def test_other_mechanisms_are_refused(tmp_path: Path) -> None:
    with secured(tmp_path, {**secured_config("ann"), "sasl.enabled.mechanisms": "PLAIN"}) as users:
        users.client("ann")
        with pytest.raises(PermanentFailure, match="does not offer SCRAM-SHA-256"):
            users.login(Credentials("SCRAM-SHA-256", "ann", "pass"))


# -- delegation tokens

MASTER: Final = "master"
TOKENS: Final = {**secured_config("ann", "bob"), "delegation.token.secret.key": MASTER}


#: The body of a request for a token of the client itself.
TOKEN: Final[dict[str, Any]] = {
    "owner_principal_type": None,
    "owner_principal_name": None,
    "renewers": [],
    "max_lifetime": -1,
}


def create_token(users: SecuredController, user: str, **fields: Any) -> dict[str, Any]:
    return users.client(user).ask(38, {**TOKEN, **fields})


def test_tokens_are_created_renewed_and_expired(tmp_path: Path) -> None:
    with secured(tmp_path, TOKENS) as users:
        token = create_token(users, "ann", renewers=[{"principal_type": "User", "principal_name": "bob"}])
        assert token["error_code"] == NONE
        names = [token[f"{prefix}principal_name"] for prefix in ("", "token_requester_")]
        assert names == ["ann", "ann"]
        assert token["hmac"] == hmac.digest(MASTER.encode(), token["token_id"].encode(), "sha512")
        assert token["expiry_timestamp"] - token["issue_timestamp"] == 24 * 3_600_000
        assert token["max_timestamp"] - token["issue_timestamp"] == 7 * 24 * 3_600_000
        secret = token["hmac"]
        renewed = users.client("bob").ask(39, {"hmac": secret, "renew_period": 1})
        assert renewed["error_code"] == NONE
        assert renewed["expiry_timestamp"] < token["expiry_timestamp"]
        mismatch = users.client("admin").ask(40, {"hmac": secret, "expiry_time_period": -1})
        assert mismatch["error_code"] == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert users.client("ann").ask(40, {"hmac": secret, "expiry_time_period": -1})["error_code"] == NONE
        missing = users.client("ann").ask(39, {"hmac": secret, "renew_period": 1})
        expected = {"error_code": ErrorCode.DELEGATION_TOKEN_NOT_FOUND, "expiry_timestamp": -1}
        assert {name: missing[name] for name in expected} == expected


def test_tokens_for_others_need_a_permission(tmp_path: Path) -> None:
    bobs = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    with secured(tmp_path, TOKENS) as users:
        refused = create_token(users, "ann", **bobs)
        assert refused["error_code"] == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (refused["principal_name"], refused["token_requester_principal_name"]) == ("bob", "ann")
        assert (refused["issue_timestamp"], refused["hmac"]) == (-1, b"")
        users.add_acls(AclLine(AclOperation.CREATE_TOKENS, "User:bob", AclResourceType.USER))
        token = create_token(users, "ann", **bobs)
        assert (token["error_code"], token["principal_name"]) == (NONE, "bob")
        own = create_token(users, "bob", owner_principal_type="User", owner_principal_name="bob")
        assert own["error_code"] == NONE
        types = [{"principal_type": "Group", "principal_name": "g"}]
        assert create_token(users, "ann", renewers=types)["error_code"] == ErrorCode.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize(
    ("principal", "error"), [(b"\x04ann\x00", NONE), (b"\x04ann\x01", ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)]
)
def test_forwarded_clients_that_logged_in_by_token_get_no_token(
    tmp_path: Path, principal: bytes, error: ErrorCode
) -> None:
    frame = encode_request(38, 3, 1, "c", TOKEN)[4:]
    sender = b"\x00\x00" + b"\x05User" + principal + b"\x00"
    envelope = {"request_data": frame, "request_principal": sender, "client_host_address": bytes(4)}
    with secured(tmp_path, TOKENS) as users:
        _, token = decode_response(38, 3, users.client().ask(58, envelope)["response_data"])
    assert (token["error_code"], token["principal_name"]) == (error, "ann")


def test_tokens_are_disabled_without_a_key_or_a_login(tmp_path: Path, users: SecuredController) -> None:
    assert create_token(users, "ann")["error_code"] == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    with (
        served(formatted(tmp_path / "plain"), config={**CONFIG, "delegation.token.secret.key": MASTER}) as controller,
        closing(connected(controller)) as client,
    ):
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert client.ask(38, TOKEN)["error_code"] == not_allowed
        assert client.ask(39, {"hmac": b"", "renew_period": 1})["error_code"] == not_allowed
        assert client.ask(40, {"hmac": b"", "expiry_time_period": 1})["error_code"] == not_allowed


def test_expired_tokens_are_removed_by_the_controller(tmp_path: Path) -> None:
    times = {"delegation.token.max.lifetime.ms": "1", "delegation.token.expiry.check.interval.ms": "5"}
    with secured(tmp_path, {**TOKENS, **times}) as users:
        token = create_token(users, "ann")
        assert token["max_timestamp"] - token["issue_timestamp"] == 1
        assert users.controller.node is not None
        tokens = users.controller.node.metadata.tokens
        wait_until(lambda: not tokens)


def test_clients_log_in_by_token(tmp_path: Path) -> None:
    with secured(tmp_path, TOKENS) as users:
        token = create_token(users, "ann")
        assert users.controller.node is not None
        find = token_credentials(users.controller.node.metadata, token_settings(TOKENS))
        owner, credential = find("SCRAM-SHA-256", token["token_id"])
        assert (owner, owner.by_token) == (Principal("ann"), True)
        assert credential is not None
        password = base64.b64encode(token["hmac"]).decode()
        assert credential == make_credential("SCRAM-SHA-256", password, credential.salt)
        assert find("SCRAM-SHA-256", "another") == (Principal(""), None)
        users.client("ann").ask(40, {"hmac": token["hmac"], "expiry_time_period": -1})
        assert find("SCRAM-SHA-256", token["token_id"]) == (Principal(""), None)


@pytest.mark.parametrize("key", ["max.lifetime.ms", "expiry.time.ms", "expiry.check.interval.ms"])
def test_bad_keys_of_tokens_are_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"delegation.token.{key}"):
        token_settings({f"delegation.token.{key}": "0"})
