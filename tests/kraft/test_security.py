"""ACLs, SCRAM credentials, quotas and producer ids: what the controller writes and refuses (Kafka 4.4)."""

from __future__ import annotations

import hashlib
import hmac
import math
from typing import Any, Final
from uuid import UUID

import pytest

from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.brokers.producer_ids import allocate_producer_ids
from kframe.core.kraft.brokers.registration import unregister_controller
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.security import tokens
from kframe.core.kraft.security.acls import AclEntry, create_acls, delete_acls
from kframe.core.kraft.security.quotas import QuotaChange, alter_client_quotas
from kframe.core.kraft.security.scram import ScramDeletion, ScramUpsertion, alter_credentials
from kframe.errors import ErrorCode
from kframe.model.acls import AclFilter
from kframe.model.kraft.metadata import ClusterMetadata

TOPIC, CLUSTER, ANY, MATCH, LITERAL, PREFIXED = 2, 4, 1, 2, 3, 4
READ, ALLOW = 3, 3


@pytest.fixture
def context() -> KraftContext:
    metadata = ClusterMetadata()
    metadata.features["metadata.version"] = 25
    return KraftContext(metadata, Heartbeats(1), KraftSettings(node_id=1), JavaRandom(0))


def commit(context: KraftContext, result: ControllerResult[Any]) -> Any:
    for item in result.records:
        context.replay(item.record, 0)
    return result.response


def entry(name: str, pattern: int = LITERAL, principal: str = "User:ann", kind: int = TOPIC) -> AclEntry:
    return AclEntry(kind, name, pattern, principal, "*", READ, ALLOW)


def add(context: KraftContext, *acls: AclEntry) -> list[ErrorCode]:
    ids = iter(UUID(int=100 + len(context.metadata.acls) + index) for index in range(len(acls)))
    return [result.error for result in commit(context, create_acls(context, acls, lambda: next(ids)))]


REFUSED_ACLS: Final = [
    entry("t", pattern=ANY),
    entry("t", pattern=MATCH),
    entry("t", pattern=0),
    entry(""),
    entry("t", principal="ann"),
    entry("t", kind=0),
    entry("t", kind=ANY),
    entry("other", kind=CLUSTER),
    AclEntry(TOPIC, "t", LITERAL, "User:ann", "*", ANY, ALLOW),
    AclEntry(TOPIC, "t", LITERAL, "User:ann", "*", READ, ANY),
    AclEntry(TOPIC, "t", LITERAL, "User:ann", "*", 16, ALLOW),
    AclEntry(TOPIC, "t", LITERAL, "User:ann", "*", READ, 4),
    AclEntry(8, "t", LITERAL, "User:ann", "*", READ, ALLOW),
    AclEntry(TOPIC, "t", LITERAL, "User:ann", "", READ, ALLOW),
]


@pytest.mark.parametrize("acl", REFUSED_ACLS)
def test_invalid_acl_is_refused(context: KraftContext, acl: AclEntry) -> None:
    assert add(context, acl, entry("t")) == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    assert len(context.metadata.acls) == 1


@pytest.mark.parametrize(
    ("host", "level", "error"),
    [
        ("10.0.0.0/8", 31, ErrorCode.UNSUPPORTED_VERSION),
        ("10.0.0.0/8", 32, ErrorCode.NONE),
        ("2001:db8::/32", 33, ErrorCode.NONE),
        ("10.0.0.0/99", 31, ErrorCode.UNSUPPORTED_VERSION),
        ("10.0.0.0/99", 32, ErrorCode.INVALID_REQUEST),
        ("10.0.0.0", 7, ErrorCode.NONE),
        ("any text", 7, ErrorCode.NONE),
    ],
)
def test_ranges_of_addresses_need_their_level(context: KraftContext, host: str, level: int, error: ErrorCode) -> None:
    context.metadata.features["metadata.version"] = level
    assert add(context, AclEntry(TOPIC, "t", LITERAL, "User:ann", host, READ, ALLOW)) == [error]
    assert [acl.host for acl in context.metadata.acls.values()] == ([host] if error is ErrorCode.NONE else [])


def test_equal_acl_is_written_once(context: KraftContext) -> None:
    assert add(context, entry("t"), entry("t")) == [ErrorCode.NONE] * 2
    add(context, entry("t"))
    assert len(context.metadata.acls) == 1


FILTERS: Final = [
    (AclFilter(), {"t", "te", "*", "u"}),
    (AclFilter(resource_name="test", pattern_type=MATCH), {"t", "te", "*"}),
    (AclFilter(principal="User:bob"), {"u"}),
    (AclFilter(operation=4), set()),
]


@pytest.mark.parametrize(("acl_filter", "names"), FILTERS)
def test_filter_deletes_matching_acls(context: KraftContext, acl_filter: AclFilter, names: set[str]) -> None:
    add(context, entry("t", PREFIXED), entry("te", PREFIXED), entry("*"), entry("u", principal="User:bob"))
    (result,) = commit(context, delete_acls(context, [acl_filter]))
    assert {acl.resource_name for acl in result.deleted} == names
    assert {record.resource_name for record in context.metadata.acls.values()} == {"t", "te", "*", "u"} - names


def test_two_filters_delete_an_acl_once(context: KraftContext) -> None:
    add(context, entry("t"))
    result = delete_acls(context, [AclFilter(), AclFilter(resource_name="t"), AclFilter(pattern_type=0)])
    assert [len(acl_result.deleted) for acl_result in result.response] == [1, 1, 0]
    assert [acl_result.error for acl_result in result.response][2] is ErrorCode.INVALID_REQUEST
    assert len(result.records) == 1


def upsertion(user: str = "ann", mechanism: int = 1, iterations: int = 4096) -> ScramUpsertion:
    return ScramUpsertion(user, mechanism, iterations, b"salt", b"password")


CREDENTIALS: Final = [
    ([], [upsertion()], {"ann": ErrorCode.NONE}),
    ([], [upsertion(mechanism=2)], {"ann": ErrorCode.NONE}),
    ([], [upsertion(mechanism=3)], {"ann": ErrorCode.UNSUPPORTED_SASL_MECHANISM}),
    ([], [upsertion(iterations=4095)], {"ann": ErrorCode.UNACCEPTABLE_CREDENTIAL}),
    ([], [upsertion(iterations=16385)], {"ann": ErrorCode.UNACCEPTABLE_CREDENTIAL}),
    ([], [upsertion(user="")], {"": ErrorCode.UNACCEPTABLE_CREDENTIAL}),
    ([ScramDeletion("ann", 1)], [], {"ann": ErrorCode.RESOURCE_NOT_FOUND}),
    ([ScramDeletion("ann", 1)], [upsertion()], {"ann": ErrorCode.DUPLICATE_RESOURCE}),
    ([], [upsertion(), upsertion()], {"ann": ErrorCode.DUPLICATE_RESOURCE}),
    ([], [upsertion(), upsertion(mechanism=3)], {"ann": ErrorCode.UNSUPPORTED_SASL_MECHANISM}),
]


@pytest.mark.parametrize(("deletions", "upsertions", "errors"), CREDENTIALS)
def test_credentials(
    context: KraftContext,
    deletions: list[ScramDeletion],
    upsertions: list[ScramUpsertion],
    errors: dict[str, ErrorCode],
) -> None:
    results = commit(context, alter_credentials(context, deletions, upsertions))
    assert {result.user: result.error for result in results} == errors
    assert len(context.metadata.scram) == (len(upsertions) if set(errors.values()) == {ErrorCode.NONE} else 0)


def test_stored_key_verifies_the_salted_password(context: KraftContext) -> None:
    commit(context, alter_credentials(context, [], [upsertion(mechanism=2)]))
    credential = context.metadata.scram["ann", 2]
    client_key = hmac.new(b"password", b"Client Key", "sha512").digest()
    assert credential.stored_key == hashlib.sha512(client_key).digest()
    assert credential.server_key == hmac.new(b"password", b"Server Key", "sha512").digest()
    commit(context, alter_credentials(context, [ScramDeletion("ann", 2)], []))
    assert not context.metadata.scram


USER: Final = (("user", "ann"),)
QUOTAS: Final = [
    (QuotaChange(USER, {"producer_byte_rate": 1000.0}), ErrorCode.NONE),
    (QuotaChange((("user", None), ("client-id", "c")), {"request_percentage": 50.5}), ErrorCode.NONE),
    (QuotaChange((("ip", "10.0.0.1"),), {"connection_creation_rate": 5}), ErrorCode.NONE),
    (QuotaChange((("ip", None),), {"connection_creation_rate": 5}), ErrorCode.NONE),
    (QuotaChange((), {"producer_byte_rate": 1.0}), ErrorCode.INVALID_REQUEST),
    (QuotaChange((("user", ""),), {"producer_byte_rate": 1.0}), ErrorCode.INVALID_REQUEST),
    (QuotaChange((("group", "g"),), {"producer_byte_rate": 1.0}), ErrorCode.INVALID_REQUEST),
    (QuotaChange((("ip", "10.0.0.1"), ("user", "ann")), {"connection_creation_rate": 5}), ErrorCode.INVALID_REQUEST),
    (QuotaChange((("ip", "not an ip"),), {"connection_creation_rate": 5}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"connection_creation_rate": 5}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"consumer_byte_rate": 0.5}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"consumer_byte_rate": 4.9999999}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"consumer_byte_rate": 5.0000001}), ErrorCode.NONE),
    (QuotaChange(USER, {"consumer_byte_rate": 2.0**64}), ErrorCode.INVALID_REQUEST),
    (QuotaChange((("ip", None),), {"connection_creation_rate": 2**31}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"controller_mutation_rate": 0.0}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"controller_mutation_rate": -1.0}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"controller_mutation_rate": math.nan}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"controller_mutation_rate": math.inf}), ErrorCode.INVALID_REQUEST),
    (QuotaChange(USER, {"nonsense": 5}), ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("change", "error"), QUOTAS)
def test_quotas(context: KraftContext, change: QuotaChange, error: ErrorCode) -> None:
    (result,) = commit(context, alter_client_quotas(context, [change]))
    assert result.error is error
    assert bool(context.metadata.quotas) == (error is ErrorCode.NONE)


def test_unknown_quota_is_removed_in_vain(context: KraftContext) -> None:
    (result,) = commit(context, alter_client_quotas(context, [QuotaChange(USER, {"nonsense": None})]))
    assert result.error is ErrorCode.NONE


def test_unchanged_quota_writes_no_record(context: KraftContext) -> None:
    change = QuotaChange(USER, {"producer_byte_rate": 1000.0})
    assert not alter_client_quotas(context, [change], validate_only=True).records
    commit(context, alter_client_quotas(context, [change]))
    assert not alter_client_quotas(context, [change]).records
    assert not alter_client_quotas(context, [QuotaChange(USER, {"consumer_byte_rate": None})]).records
    commit(context, alter_client_quotas(context, [QuotaChange(USER, {"producer_byte_rate": None})]))
    assert not context.metadata.quotas


def test_producer_ids_need_the_current_broker_epoch(context: KraftContext) -> None:
    with pytest.raises(RequestRefused, match="STALE_BROKER_EPOCH"):
        allocate_producer_ids(context, 1, 5)


UNREGISTRATIONS: Final = [
    (32, 3, ErrorCode.UNSUPPORTED_VERSION),
    (33, 1, ErrorCode.INVALID_REQUEST),
    (33, 3, ErrorCode.CONTROLLER_ID_NOT_REGISTERED),
]


@pytest.mark.parametrize(("level", "controller", "error"), UNREGISTRATIONS)
def test_invalid_controller_unregistration_is_refused(
    context: KraftContext, level: int, controller: int, error: ErrorCode
) -> None:
    context.metadata.features["metadata.version"] = level
    with pytest.raises(RequestRefused) as refusal:
        unregister_controller(context, controller)
    assert refusal.value.error is error


# -- delegation tokens

SECRET: Final = b"master"
SETTINGS: Final = tokens.TokenSettings(SECRET, max_lifetime_ms=1000, expiry_ms=100)
ANN, BOB = "User:ann", "User:bob"


def hmac_of(token_id: str) -> bytes:
    return hmac.digest(SECRET, token_id.encode(), "sha512")


def create(context: KraftContext, token_id: str = "t", now_ms: int = 0, **fields: Any) -> Any:
    requested = tokens.RequestedToken(ANN, ANN, **fields)
    return commit(context, tokens.create_token(context, SETTINGS, requested, token_id, now_ms))


@pytest.mark.parametrize(
    ("max_lifetime_ms", "expires", "latest"),
    [(-1, 150, 1050), (0, 150, 1050), (5000, 150, 1050), (500, 150, 550), (30, 80, 80), (2**63 - 1, 150, 1050)],
)
def test_lifetime_of_a_token(context: KraftContext, max_lifetime_ms: int, expires: int, latest: int) -> None:
    token = create(context, now_ms=50, max_lifetime_ms=max_lifetime_ms, renewers=[("User", "bob")])
    assert context.metadata.tokens == {"t": token}
    assert (token.owner, token.requester, token.renewers) == (ANN, ANN, (BOB,))
    assert (token.issue_timestamp, token.expiration_timestamp, token.max_timestamp) == (50, expires, latest)


@pytest.mark.parametrize(
    ("settings", "level", "fields", "error"),
    [
        (tokens.TokenSettings(), 25, {}, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        (SETTINGS, 13, {}, ErrorCode.UNSUPPORTED_VERSION),
        (SETTINGS, 25, {"renewers": [("Group", "g")]}, ErrorCode.INVALID_PRINCIPAL_TYPE),
    ],
)
def test_refused_tokens(
    context: KraftContext, settings: tokens.TokenSettings, level: int, fields: dict[str, Any], error: ErrorCode
) -> None:
    context.metadata.features["metadata.version"] = level
    with pytest.raises(RequestRefused) as refusal:
        tokens.create_token(context, settings, tokens.RequestedToken(ANN, ANN, **fields), "t", 0)
    assert refusal.value.error is error


#: The token of ann, which bob may renew, is issued at 0, and expires at 100, at 1000 at the latest.
CHANGES: Final = [
    (tokens.renew_token, ANN, -1, 50, 150),
    (tokens.renew_token, BOB, -1, 50, 150),
    (tokens.renew_token, ANN, 20, 50, 70),
    (tokens.renew_token, ANN, 5000, 50, 150),
    (tokens.renew_token, ANN, 0, 100, 200),
    (tokens.renew_token, ANN, 10, 101, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    (tokens.renew_token, "User:eve", 10, 50, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    (tokens.renew_token, "User:eve", 10, 101, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    (tokens.expire_token, ANN, 0, 50, 50),
    (tokens.expire_token, BOB, 300, 50, 350),
    (tokens.expire_token, ANN, 5000, 50, 1000),
    (tokens.expire_token, ANN, 10, 101, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    (tokens.expire_token, "User:eve", 10, 50, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    (tokens.expire_token, "User:eve", 10, 101, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
]


@pytest.mark.parametrize(("change", "principal", "period_ms", "now_ms", "expected"), CHANGES)
def test_changes_of_a_token(
    context: KraftContext, change: Any, principal: str, period_ms: int, now_ms: int, expected: int | ErrorCode
) -> None:
    create(context, renewers=[("User", "bob")])
    create(context, "other")
    arguments = (context, SETTINGS, hmac_of("t"), principal, period_ms, now_ms)
    if isinstance(expected, ErrorCode):
        with pytest.raises(RequestRefused) as refusal:
            change(*arguments)
        assert refusal.value.error is expected
        expected = 100
    else:
        assert commit(context, change(*arguments)) == expected
    expiry = {token_id: token.expiration_timestamp for token_id, token in context.metadata.tokens.items()}
    assert expiry == {"t": expected, "other": 100}


@pytest.mark.parametrize("now_ms", [50, 101], ids=["valid", "expired"])
def test_negative_period_removes_a_token(context: KraftContext, now_ms: int) -> None:
    create(context)
    create(context, "other")
    assert commit(context, tokens.expire_token(context, SETTINGS, hmac_of("t"), ANN, -1, now_ms)) == now_ms
    assert context.metadata.tokens.keys() == {"other"}


@pytest.mark.parametrize("change", [tokens.renew_token, tokens.expire_token])
def test_unknown_token(context: KraftContext, change: Any) -> None:
    create(context)
    for settings, error in (
        (SETTINGS, ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (tokens.TokenSettings(b"another"), ErrorCode.DELEGATION_TOKEN_NOT_FOUND),
        (tokens.TokenSettings(), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
    ):
        with pytest.raises(RequestRefused) as refusal:
            change(context, settings, hmac_of("x" if settings is SETTINGS else "t"), ANN, 1, 0)
        assert refusal.value.error is error


def test_expired_tokens_are_removed(context: KraftContext) -> None:
    for number in range(tokens.EXPIRED_MAX + 2):
        create(context, f"t{number}")
    create(context, "later", now_ms=1)
    assert not commit(context, tokens.remove_expired(context, 100))
    assert len(context.metadata.tokens) == tokens.EXPIRED_MAX + 3
    assert commit(context, tokens.remove_expired(context, 101))
    assert len(context.metadata.tokens) == 3
    assert not commit(context, tokens.remove_expired(context, 101))
    assert context.metadata.tokens.keys() == {"later"}
