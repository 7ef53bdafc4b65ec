"""Delegation tokens are created, renewed, described, expired and used for logins, from and to ZooKeeper."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER
from kframe_kafka_wire.access.sasl import SaslError, ScramExchange
from kframe_kafka_wire.records.credentials import make_credential
from kframe_kafka_wire.records.principals import Principal
from kframe_kafka_wire.records.tokens import Tokens, token_lookup, tokens_of

from kframe.plugin import StoreError
from kframe.testing.clusters import healthy
from kframe.testing.waiting import until
from verification.kafka_wire.client import Client
from verification.kafka_wire.secured import login_listener
from verification.kafka_wire.served import FakeRecords, Served, acl_record

DAY_MS = 86_400_000
ALICE = Principal("alice")
ENABLED = {"delegation.token.secret.key": "shared"}
CONFIG = {
    **login_listener(alice="p", bob="p", carol="p", root="p"),
    "authorizer.class.name": ACL_AUTHORIZER,
    "super.users": "User:root",
}


@pytest.fixture
def records() -> FakeRecords:
    return FakeRecords({})


def entered(served: Served, user: str) -> Client:
    client = served.client("LOGIN")
    assert client.log_in(user, "p") == 0
    return client


@pytest.fixture
def served(records: FakeRecords) -> Iterator[Served]:
    with Served({"t": [healthy(1)]}, config={**CONFIG, **ENABLED}, records=records) as served:
        yield served


def test_token_is_valid_until_its_expiry(served: Served, records: FakeRecords) -> None:
    renewers = [{"principal_type": "User", "principal_name": "bob"}]
    with entered(served, "alice") as alice, entered(served, "bob") as bob, entered(served, "carol") as carol:
        created = alice.ask(38, 3, renewers=renewers, max_lifetime=2 * DAY_MS)
        assert (created["error_code"], created["principal_name"], created["token_requester_principal_name"]) == (
            0,
            "alice",
            "alice",
        )
        assert created["expiry_timestamp"] - created["issue_timestamp"] == DAY_MS
        assert created["max_timestamp"] - created["issue_timestamp"] == 2 * DAY_MS
        (path,) = records.records
        assert path == f"/delegation_token/tokens/{created['token_id']}"
        stored = json.loads(records.records[path])
        assert (stored["owner"], stored["renewers"], stored["version"]) == ("User%3Aalice", ["User%3Abob"], 3)
        assert records.appended == [("/delegation_token/token_changes/token_change_", created["token_id"])]

        for client in (alice, bob):
            (seen,) = client.ask(41, 3, owners=None)["tokens"]
            assert (seen["token_id"], seen["hmac"]) == (created["token_id"], created["hmac"])
        assert carol.ask(41, 3, owners=None)["tokens"] == []
        assert alice.ask(41, 3, owners=[])["tokens"] == []
        assert alice.ask(41, 3, owners=[{"principal_type": "User", "principal_name": "carol"}])["tokens"] == []

        assert carol.ask(39, 2, hmac=created["hmac"], renew_period=-1)["error_code"] == 63
        assert bob.ask(39, 2, hmac=b"other", renew_period=-1)["error_code"] == 62
        renewed = bob.ask(39, 2, hmac=created["hmac"], renew_period=10 * DAY_MS)
        assert renewed["expiry_timestamp"] == created["max_timestamp"]  # No token can be renewed beyond that.
        assert bob.ask(40, 2, hmac=created["hmac"], expiry_time_period=DAY_MS)["error_code"] == 0
        assert bob.ask(40, 2, hmac=created["hmac"], expiry_time_period=-1)["error_code"] == 0
    assert records.records == {}


def test_tokens_of_other_principals_need_permission(served: Served, records: FakeRecords) -> None:
    of_alice = {"owner_principal_type": "User", "owner_principal_name": "alice"}
    with entered(served, "bob") as bob, entered(served, "root") as root:
        assert bob.ask(38, 3, **of_alice)["error_code"] == 65
        created = root.ask(38, 3, **of_alice)
        assert (created["principal_name"], created["token_requester_principal_name"]) == ("alice", "root")
        group = [{"principal_type": "Group", "principal_name": "g"}]
        assert root.ask(38, 3, renewers=group)["error_code"] == 67
        assert bob.ask(41, 3, owners=None)["tokens"] == []
        records.records["/kafka-acl/User/User:alice"] = acl_record(("User:bob", "Allow", "DescribeTokens", "*"))
        any_filter = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        # The authorizer reads the ACLs again.
        root.ask(31, 3, filters=[{**any_filter, "resource_name_filter": "x"}])
        assert len(bob.ask(41, 3, owners=None)["tokens"]) == 1


def test_unauthenticated_clients_have_no_tokens() -> None:
    with Served({"t": [healthy(1)]}, config=ENABLED) as served, served.client() as client:
        for api_key, version in ((38, 3), (39, 2), (40, 2), (41, 3)):
            assert client.ask(api_key, version)["error_code"] == 64


def test_without_a_secret_there_are_no_tokens() -> None:
    served = Served({"t": [healthy(1)]}, config=CONFIG, records=FakeRecords({}))
    with served, entered(served, "alice") as client:
        for api_key, version in ((38, 3), (39, 2), (40, 2), (41, 3)):
            assert client.ask(api_key, version)["error_code"] == 61
    assert tokens_of({}) is None


def test_the_controller_deletes_expired_tokens(records: FakeRecords) -> None:
    now = [0]
    tokens = Tokens("s", 10, 5, lambda: now[0])
    old = tokens.create(records, ALICE, ALICE, (), 0)
    now[0] = 3
    new = tokens.create(records, ALICE, ALICE, (), 0)
    now[0] = 6
    assert tokens.delete_expired(records, records) == 1
    assert tokens.read(records, old.token_id) is None
    assert tokens.read(records, new.token_id) == new
    assert tokens.find(records, tokens.hmac_of(new.token_id)) == new


def test_deletion_under_continuous_writes_is_an_error(records: FakeRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens("s", 10, 5, lambda: 0)
    token = tokens.create(records, ALICE, ALICE, (), 0)
    notifications = list(records.appended)
    monkeypatch.setattr(records, "delete_record", lambda path, version: False)
    with pytest.raises(StoreError, match="written by others"):
        tokens.delete(records, token)
    assert records.appended == notifications


def test_a_server_of_the_active_controller_deletes_expired_tokens(records: FakeRecords) -> None:
    expired = Tokens("shared", 1, 1, lambda: 0).create(records, ALICE, ALICE, (), 0)
    interval = {"delegation.token.expiry.check.interval.ms": "10"}
    with Served({"t": [healthy(1)]}, config={**ENABLED, **interval}, records=records):
        assert until(lambda: not records.records, 30.0)
    assert records.appended[-1] == ("/delegation_token/token_changes/token_change_", expired.token_id)


def test_a_client_logs_in_by_a_token(records: FakeRecords) -> None:
    now = [0]
    tokens = Tokens("s", 10, 5, lambda: now[0])
    token = tokens.create(records, ALICE, ALICE, (), 0)
    lookup = token_lookup(tokens, records)
    owner, credential = lookup("SCRAM-SHA-256", token.token_id)
    assert (owner, owner.by_token) == (ALICE, True)
    assert credential is not None
    password = base64.b64encode(tokens.hmac_of(token.token_id)).decode()
    assert credential == make_credential("SCRAM-SHA-256", password, credential.salt)
    first = f"n,,n={token.token_id},r=abc,tokenauth=true".encode()
    assert ScramExchange("SCRAM-SHA-256", lambda *_: None, lookup).evaluate_response(first)
    now[0] = 6
    with pytest.raises(SaslError):
        ScramExchange("SCRAM-SHA-256", lambda *_: None, lookup).evaluate_response(first)


@pytest.mark.parametrize("data", ["", "{}", "[]", '{"version":3,"owner":"x"}', '{"version":3,"owner":7}'])
def test_malformed_token_records_are_skipped(data: str) -> None:
    records = FakeRecords({"/delegation_token/tokens/x": data})
    assert list(Tokens("s", 10, 5).read_all(records)) == []
