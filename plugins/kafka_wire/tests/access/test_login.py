"""Logins of clients: accepted, refused, and the error messages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
from collections.abc import Callable, Iterator

import pytest
from kframe_kafka_wire.access.sasl import PlainExchange, SaslError, ScramExchange
from kframe_kafka_wire.records.credentials import ScramCredential, make_credential, parse_credential, scram_lookup
from kframe_kafka_wire.records.principals import Principal

from kframe.testing.clusters import healthy
from kframe.testing.waiting import until
from verification.kafka_wire.client import Client
from verification.kafka_wire.secured import login_listener
from verification.kafka_wire.served import FakeRecords, Served, broker, user_record

CONFIG = {
    **login_listener(alice="secret", bob="other"),
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "connections.max.reauth.ms": "3600000",
}
RECORDS = FakeRecords({"/config/users/carol": user_record("SCRAM-SHA-256", "pencil")})


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served({"t": [healthy(1)]}, [broker(1, "LOGIN")], CONFIG, RECORDS) as served:
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client("LOGIN") as client:
        yield client


def plain(user: str, password: str, authorization: str = "") -> bytes:
    return f"{authorization}\0{user}\0{password}".encode()


def scram(client: Callable[[bytes], bytes], user: str, password: str, name: str = "sha256") -> None:
    """Log in by RFC 5802. ``client`` sends a token and returns the server's."""
    first = f"n={user},r=abc"
    challenge = client(f"n,,{first}".encode()).decode()
    values = dict(attribute.split("=", 1) for attribute in challenge.split(","))
    salted = hashlib.pbkdf2_hmac(name, password.encode(), base64.b64decode(values["s"]), int(values["i"]))
    key = hmac.digest(salted, b"Client Key", name)
    final = f"c=biws,r={values['r']}"
    whole = f"{first},{challenge},{final}".encode()
    signature = hmac.digest(hashlib.new(name, key).digest(), whole, name)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    response = client(f"{final},p={proof}".encode())
    server = hmac.digest(hmac.digest(salted, b"Server Key", name), whole, name)
    assert response == b"v=" + base64.b64encode(server)


def test_plain_login_succeeds(client: Client) -> None:
    assert client.ask(18, 0)["error_code"] == 0  # ApiVersions gets a response before the login, too.
    assert client.ask(17, 1, mechanism="PLAIN") == {"error_code": 0, "mechanisms": ["PLAIN", "SCRAM-SHA-256"]}
    response = client.ask(36, 2, auth_bytes=plain("alice", "secret"))
    assert response == {"error_code": 0, "error_message": None, "auth_bytes": b"", "session_lifetime": 3_600_000}
    assert client.ask(3, 12, topics=None)["controller_id"] == 1000


def test_scram_login_succeeds(client: Client) -> None:
    client.ask(17, 1, mechanism="SCRAM-SHA-256")

    def token(data: bytes) -> bytes:
        response = client.ask(36, 0, auth_bytes=data)
        assert response["error_code"] == 0, response
        auth_bytes: bytes = response["auth_bytes"]
        return auth_bytes

    scram(token, "carol", "pencil")
    assert client.ask(60, 0)["controller_id"] == 1000


def test_bare_tokens_of_version_0(client: Client) -> None:
    client.ask(17, 0, mechanism="PLAIN")
    token = plain("alice", "secret")
    client.send(struct.pack(">i", len(token)) + token)
    assert client.receive() == b""
    assert client.ask(3, 4, topics=None)["controller_id"] == 1000


WRONG = [
    ("alice", "wrong", ""),
    ("unknown", "secret", ""),
    ("alice", "", ""),
    ("", "secret", ""),
    ("alice", "secret", "bob"),
]


@pytest.mark.parametrize("user, password, authorization", WRONG)
def test_plain_login_with_a_wrong_password_fails(user: str, password: str, authorization: str, client: Client) -> None:
    client.ask(17, 1, mechanism="PLAIN")
    response = client.ask(36, 1, auth_bytes=plain(user, password, authorization))
    assert response["error_code"] == 58
    assert response["error_message"]
    assert client.ended()


def test_failed_logins_are_counted_and_logged(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    def count() -> float:
        return served.server.metrics()['kframe_connections_dropped_total{reason="login_failed"}']

    caplog.set_level("INFO")
    for mechanism, token, logged in (
        ("PLAIN", b"\0alice\0wrong", "Invalid username or password"),
        ("GSSAPI", b"", "mechanism 'GSSAPI' is not enabled"),
    ):
        before = count()
        with served.client("LOGIN") as client:
            client.ask(17, 1, mechanism=mechanism)
            if token:
                assert client.ask(36, 2, auth_bytes=token)["error_code"] == 58
            assert client.ended()
        assert until(lambda before=before: count() == before + 1)  # type: ignore[misc]
        assert logged in caplog.text


def test_wrong_bare_tokens_end_the_connection(client: Client) -> None:
    client.ask(17, 0, mechanism="PLAIN")
    token = plain("alice", "wrong")
    client.send(struct.pack(">i", len(token)) + token)
    assert client.ended()


def test_unsupported_mechanism_returns_supported_ones(client: Client) -> None:
    response = client.ask(17, 1, mechanism="GSSAPI")
    assert response == {"error_code": 33, "mechanisms": ["PLAIN", "SCRAM-SHA-256"]}
    assert client.ended()


@pytest.mark.parametrize("api_key, version", [(3, 12), (19, 7), (7, 3), (60, 0)])
def test_requests_before_login_are_refused(api_key: int, version: int, client: Client) -> None:
    with pytest.raises(ConnectionError):
        client.ask(api_key, version, topics=(), broker_id=1)


def test_token_without_handshake_is_refused(client: Client) -> None:
    assert client.ask(36, 2, auth_bytes=plain("alice", "secret"))["error_code"] == 34
    assert client.ended()


def test_before_the_login_frames_are_small(client: Client) -> None:
    client.send(struct.pack(">i", 524_289))
    assert client.ended()


def test_reauthentication_as_another_user_is_refused(client: Client) -> None:
    assert client.log_in("alice", "secret") == 0
    assert client.log_in("alice", "secret") == 0
    assert client.ask(60, 0)["controller_id"] == 1000
    assert client.log_in("bob", "other") == 58
    assert client.ended()


# -- the exchanges themselves


@pytest.mark.parametrize("mechanism, name", [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_scram_proves_both_sides(mechanism: str, name: str) -> None:
    credential = make_credential(mechanism, "pencil", b"salt", 8192)
    exchange = ScramExchange(mechanism, lambda *_: credential)
    scram(exchange.evaluate_response, "us=3Der", "pencil", name)
    assert exchange.principal == Principal("us=er")


def find_credential(mechanism: str, user: str) -> ScramCredential | None:
    """Carol has a valid credential, dave one of too few iterations."""
    iterations = {"carol": 4096, "dave": 4095}.get(user)
    return None if iterations is None else make_credential(mechanism, "pencil", b"salt", iterations)


FIRST_TOKENS = [
    b"n,,n=carol,r=abc,tokenauth=true",  # Delegation tokens.
    b"n,a=other,n=carol,r=abc",
    b"n,,n=unknown,r=abc",
    b"n,,n=dave,r=abc",
    b"y,,n=carol,r=abc",
    b"p=tls-unique,,n=carol,r=abc",
    b"n,,n=car=ol,r=abc",
    b"n,,n=,r=abc",
    b"n,,r=abc,n=carol",
    b"",
    b"\xff\xfe",
]


@pytest.mark.parametrize("token", FIRST_TOKENS)
def test_scram_refuses_first_tokens(token: bytes) -> None:
    with pytest.raises(SaslError):
        ScramExchange("SCRAM-SHA-256", find_credential).evaluate_response(token)


@pytest.mark.parametrize("final", ["c=biws,r=abcXYZ,p=AAAA", "c=biws,r=abc,p=AAAA", "c=eSws,r=abcXYZ,p=AAAA", "", "x"])
def test_scram_refuses_final_tokens(final: str) -> None:
    exchange = ScramExchange("SCRAM-SHA-256", find_credential, nonce=lambda: "XYZ")
    exchange.evaluate_response(b"n,,n=carol,r=abc")
    with pytest.raises(SaslError):
        exchange.evaluate_response(final.encode())
    assert exchange.principal is None


@pytest.mark.parametrize("token", [b"", b"alice\0secret", b"\0alice\0secret\0more", b"\xff\0a\0b"])
def test_plain_refuses_other_tokens(token: bytes) -> None:
    with pytest.raises(SaslError):
        PlainExchange({"user_alice": "secret"}).evaluate_response(token)


def test_user_records_are_read_under_sanitized_names() -> None:
    name = "/config/users/CN%3Da%20b%2A"
    records = FakeRecords({name: user_record("SCRAM-SHA-512", "x"), "/config/users/bad": json.dumps({"config": []})})
    find = scram_lookup(records)
    assert find("SCRAM-SHA-512", "CN=a b*") == make_credential("SCRAM-SHA-512", "x", b"some-salt")
    assert find("SCRAM-SHA-256", "CN=a b*") is None
    assert find("SCRAM-SHA-512", "bad") is None
    assert find("SCRAM-SHA-512", "unknown") is None


@pytest.mark.parametrize("text", ["", "salt=x", "salt=eA==,stored_key=eA==,server_key=eA==,iterations=many"])
def test_malformed_credential_records_are_ignored(text: str) -> None:
    assert parse_credential(text) is None


# -- users that are made through the controller


def upsertion(user: str, mechanism: int, iterations: int = 4096) -> dict[str, object]:
    salted = hashlib.pbkdf2_hmac({1: "sha256", 2: "sha512"}.get(mechanism, "sha256"), b"pencil", b"salt", iterations)
    return {"name": user, "mechanism": mechanism, "iterations": iterations, "salt": b"salt", "salted_password": salted}


def test_scram_credentials_are_created_altered_and_deleted() -> None:
    with Served() as served, served.client() as client:

        def code(**changes: object) -> int:
            (result,) = client.ask(51, 0, **changes)["results"]
            assert bool(result["error_code"]) == bool(result["error_message"])
            error_code: int = result["error_code"]
            return error_code

        assert code(upsertions=[upsertion("a b", 1)]) == 0
        assert code(upsertions=[upsertion("a b", 2, 8192)]) == 0
        find = scram_lookup(served.controller.store)  # type: ignore[arg-type]
        assert find("SCRAM-SHA-256", "a b") == make_credential("SCRAM-SHA-256", "pencil", b"salt")
        assert find("SCRAM-SHA-512", "a b") == make_credential("SCRAM-SHA-512", "pencil", b"salt", 8192)
        assert code(deletions=[{"name": "a b", "mechanism": 1}]) == 0
        assert find("SCRAM-SHA-256", "a b") is None
        assert code(deletions=[{"name": "a b", "mechanism": 1}]) == 91
        assert code(deletions=[{"name": "a b", "mechanism": 2}], upsertions=[upsertion("a b", 2)]) == 92
        assert code(upsertions=[upsertion("", 1)]) == 93
        assert code(upsertions=[upsertion("c", 1, 4095)]) == 93
        assert code(upsertions=[upsertion("c", 1, 16385)]) == 93
        assert code(upsertions=[upsertion("c", 3)]) == 33
        assert find("SCRAM-SHA-512", "a b") is not None
