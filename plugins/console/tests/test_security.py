"""Logins, writes and their audit log, and hostile clients."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from kframe_console.application import application
from kframe_console.pages.page import ActionPage, PageContext, page
from kframe_console.routes import PAGES
from kframe_console.security.audit import AuditEntry, AuditLog
from kframe_console.security.identities import StoredCredentials, password_line, token_line
from kframe_console.security.login import LoginPolicy
from kframe_console.security.sessions import (
    FAILURES_MAX,
    IDLE_S,
    PENDING_MAX,
    PENDING_S,
    TOTAL_S,
    FailedLogins,
    Sessions,
)
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.saved import SavedSource
from kframe_console.web.assets import ASSETS
from msgspec import Meta, Struct
from starlette.testclient import TestClient

from kframe.plugin import InputError, ParameterError
from kframe.plugin.snapshot import Snapshot
from verification.console.client import ConsoleClient


class NoteParameters(Struct, forbid_unknown_fields=True):
    """The parameters of a write."""

    text: str
    count: Annotated[int, Meta(ge=1, le=9)] = 1


class NoteContent(Struct):
    """The result of a write."""

    noted: str


NOTED: list[str] = []


def note(context: PageContext, parameters: NoteParameters) -> NoteContent:
    if parameters.text == "bad":
        raise ParameterError("text", "'bad'", "another")
    NOTED.append(f"{context.user.name}: {parameters.text}")
    return NoteContent(parameters.text * parameters.count)


def predict(_context: PageContext, parameters: NoteParameters) -> dict[str, int]:
    return {"notes": parameters.count}


NOTE = page(ActionPage, "note", "/note", schema="test.note/v1", template="error.html", predict=predict)(note)
EXECUTE = replace(NOTE, name="execute", path="/execute", predict=None, executes=True)


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> StoredCredentials:
    folder = tmp_path_factory.mktemp("credentials")
    (folder / "users").write_text(f"# users\n\n{password_line('ada', 'päss:word')}\n")
    (folder / "tokens").write_text(token_line("robot", "secret-token") + "\n")
    return StoredCredentials.read(folder / "users", folder / "tokens")


@pytest.fixture
def audit_path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def open_console(kraft_snapshot: Snapshot, audit_path: Path) -> Iterator[Any]:
    NOTED.clear()
    with ExitStack() as stack:
        log = stack.enter_context(closing(AuditLog(audit_path)))

        def start(login: LoginPolicy | None = None, settings: ConsoleSettings | None = None) -> TestClient:
            app = application(SavedSource.of(kraft_snapshot), settings, login, audit=log, pages=(*PAGES, NOTE, EXECUTE))
            return stack.enter_context(TestClient(app, base_url="http://localhost", follow_redirects=False))

        yield start


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@pytest.mark.parametrize(
    "authorization, status",
    [
        (None, 401),
        (basic("ada", "päss:word"), 200),
        (basic("ada", "wrong"), 401),
        (basic("ada", ""), 401),
        (basic("eve", "päss:word"), 401),
        (basic("", ""), 401),
        ("Basic !!!", 401),
        ("Basic " + base64.b64encode(b"\xff\xfe").decode(), 401),
        ("Basic " + base64.b64encode(b"nocolon").decode(), 401),
        ("Bearer secret-token", 200),
        ("bearer  secret-token", 200),
        ("Bearer secret-toke", 401),
        ("Bearer", 401),
        ("Digest x", 401),
        ("", 401),
        ("Basic " + "A" * 20_000, 401),
    ],
    ids=lambda value: str(value)[:30],
)
def test_login_by_password_or_token(
    open_console: Any, credentials: StoredCredentials, authorization: str | None, status: int
) -> None:
    client = open_console(LoginPolicy(credentials))
    for path in ("/", "/partitions?format=json", "/openapi.json", f"{ASSETS}/table.js", "/nowhere"):
        headers = {} if authorization is None else {"authorization": authorization}
        response = client.get(path, headers=headers)
        assert response.status_code == (404 if path == "/nowhere" and status == 200 else status)
        if status == 401:
            assert response.headers["www-authenticate"].startswith("Basic realm=")
            assert "content-security-policy" in response.headers


def test_failed_logins_block_an_address_for_a_minute(open_console: Any, credentials: StoredCredentials) -> None:
    login = LoginPolicy(credentials)
    client = open_console(login)
    for _ in range(FAILURES_MAX):
        assert client.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/", headers={"authorization": "Bearer secret-token"}).status_code == 429
    login.failed_logins = FailedLogins()
    assert client.get("/", headers={"authorization": "Bearer secret-token"}).status_code == 200


def token_of(client: TestClient, **headers: str) -> str:
    return ConsoleClient(client).token(**headers)


ADA = {"authorization": basic("ada", "päss:word")}
ROBOT = {"authorization": "Bearer secret-token"}


@pytest.mark.parametrize(
    "user, headers, has_token, status",
    [
        (ADA, {}, True, 200),
        (ADA, {}, False, 403),
        (ADA, {"x-csrf-token": "0" * 64}, False, 403),
        (ADA, {"x-csrf-token": "ü"}, False, 403),
        (ADA, {"origin": "http://localhost"}, True, 200),
        (ADA, {"origin": "http://attacker.example"}, True, 403),
        (ADA, {"origin": "null"}, True, 403),
        (ADA, {"sec-fetch-site": "cross-site"}, True, 403),
        (ADA, {"sec-fetch-site": "same-site"}, True, 403),
        (ADA, {"sec-fetch-site": "same-origin"}, True, 200),
        (ROBOT, {}, False, 200),
        ({}, {}, True, 401),
    ],
)
def test_write_needs_the_token_of_a_page(
    open_console: Any,
    credentials: StoredCredentials,
    user: dict[str, str],
    headers: dict[str, str],
    has_token: bool,
    status: int,
) -> None:
    client = open_console(LoginPolicy(credentials))
    sent = {**user, **{name: text.encode() for name, text in headers.items()}}
    if has_token:
        sent["x-csrf-token"] = token_of(client, **ADA)
    response = client.post("/note?format=json", json={"text": "hi"}, headers=sent)
    assert response.status_code == status, response.text
    assert len(NOTED) == (status == 200)


def test_token_of_another_user_or_console_is_refused(open_console: Any, credentials: StoredCredentials) -> None:
    local, other = open_console(), open_console()
    assert local.post("/note", json={"text": "a"}, headers={"x-csrf-token": token_of(other)}).status_code == 403
    secured = open_console(LoginPolicy(credentials))
    as_robot = token_of(secured, **ROBOT)
    assert secured.post("/note", json={"text": "a"}, headers={**ADA, "x-csrf-token": as_robot}).status_code == 403


def test_form_has_its_token_in_a_field(open_console: Any) -> None:
    client = open_console()
    form = {"text": "from a form", "count": "2", "csrf_token": token_of(client)}
    response = client.post("/note?format=json", data=form)
    assert response.json() == {"schema": "test.note/v1", "noted": "from a formfrom a form"}
    assert NOTED == ["local: from a form"]


@pytest.mark.parametrize(
    "content, kind, status, parameter",
    [
        (b'{"text": "a"', "application/json", 400, "body"),
        (b"[1]", "application/json", 400, "body"),
        (b"[" * 100_000, "application/json", 400, "body"),
        (b'{"text": 5}', "application/json", 400, "text"),
        (b'{"count": 1}', "application/json", 400, "text"),
        (b'{"text": "a", "count": 10}', "application/json", 400, "count"),
        (b'{"text": "a", "other": 1}', "application/json", 400, "other"),
        (b'{"text": "bad"}', "application/json", 400, "text"),
        (b"text=a&text=b", "application/x-www-form-urlencoded", 400, "text"),
        (b"&".join(b"a%d=1" % number for number in range(2000)), "application/x-www-form-urlencoded", 400, "body"),
        (b"text=a", "text/plain", 400, "content-type"),
        (b"\xff=\xfe", "application/x-www-form-urlencoded", 400, "body"),
        (b"x" * (1 << 20) + b"x", "application/json", 413, None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_body_is_refused_by_name(
    open_console: Any, content: bytes, kind: str, status: int, parameter: str | None
) -> None:
    client = open_console()
    headers = {"content-type": kind, "x-csrf-token": token_of(client)}
    response = client.post("/note?format=json", content=content, headers=headers)
    assert response.status_code == status, response.text
    assert "Traceback" not in response.text
    if parameter is not None:
        assert response.json()["parameter"] == parameter
    assert NOTED == []


def test_body_without_a_length_is_bounded(open_console: Any) -> None:
    client = open_console()
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(64):
            sent += 1 << 16
            yield b"x" * (1 << 16)

    headers = {"content-type": "application/json", "x-csrf-token": token_of(client)}
    response = client.post("/note?format=json", content=endless(), headers=headers)
    assert response.status_code == 400
    assert "within the limit" in response.json()["error"]


def test_each_write_is_logged_with_its_prediction(
    open_console: Any, credentials: StoredCredentials, audit_path: Path
) -> None:
    client = open_console(LoginPolicy(credentials))
    client.post("/note", json={"text": "x", "count": 3}, headers=ROBOT)
    client.post("/note", json={"text": "bad"}, headers=ROBOT)
    client.post("/note", json={"text": "y", "count": 0}, headers=ROBOT)
    client.get("/partitions", headers=ROBOT)
    lines = audit_path.read_text().splitlines()
    entries = [msgspec.json.decode(line, type=AuditEntry) for line in lines]
    assert [(entry.event, entry.action, entry.user, entry.method) for entry in entries] == [
        ("begin", "note", "robot", "bearer"),
        ("done", "note", "robot", "bearer"),
        ("begin", "note", "robot", "bearer"),
        ("failed", "note", "robot", "bearer"),
    ]
    assert entries[0].parameters == {"text": "x", "count": 3}
    assert (entries[0].what_if, entries[1].result) == ({"notes": 3}, {"noted": "xxx"})
    assert entries[3].result == "text: found 'bad', expected another"
    assert audit_path.stat().st_mode & 0o077 == 0
    assert "secret-token" not in audit_path.read_text()


def test_nothing_is_done_that_cannot_be_logged(kraft_snapshot: Snapshot, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    app = application(SavedSource.of(kraft_snapshot), audit=log, pages=(*PAGES, NOTE))
    NOTED.clear()
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        token = token_of(client)
        log._file = -1
        assert client.post("/note", json={"text": "x"}, headers={"x-csrf-token": token}).status_code == 500
    assert NOTED == []


def test_execution_needs_the_option(open_console: Any) -> None:
    client = open_console()
    headers = {"x-csrf-token": token_of(client)}
    assert client.post("/execute", json={"text": "x"}, headers=headers).status_code == 403
    allowed = open_console(settings=ConsoleSettings(allow_execute=True))
    headers = {"x-csrf-token": token_of(allowed)}
    assert allowed.post("/execute?format=json", json={"text": "x"}, headers=headers).json()["noted"] == "x"


def test_writes_answer_no_other_method(open_console: Any) -> None:
    client = open_console()
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        assert client.request(method, "/note").status_code == 405
    assert client.post("/partitions").status_code == 405


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_sessions_are_bounded_and_end() -> None:
    clock = FakeClock()
    sessions = Sessions(3, clock)
    ada = sessions.complete(sessions.begin(), "ada")
    for _ in range(10 * PENDING_MAX):
        sessions.begin()
    assert len(sessions) == PENDING_MAX + 1
    assert sessions.find(ada.key) is not None, "logins that have only begun displace no user"
    later = [sessions.complete(sessions.begin(), f"user-{number}") for number in range(3)]
    assert sessions.find(ada.key) is None
    assert all(sessions.find(session.key) for session in later)
    clock.now = IDLE_S + 1
    assert sessions.find(later[0].key) is None
    used = sessions.complete(sessions.begin(), "ada")
    while clock.now < IDLE_S + 1 + TOTAL_S:
        assert sessions.find(used.key) is not None
        clock.now += IDLE_S - 1
    assert sessions.find(used.key) is None, "a session ends although it is used"
    begun = sessions.begin()
    clock.now += PENDING_S + 1
    assert sessions.pending(begun.key) is None


def test_login_changes_the_key_of_the_session() -> None:
    sessions = Sessions(3)
    begun = sessions.begin()
    assert sessions.find(begun.key) is None
    assert sessions.complete(begun, "ada").key != begun.key
    assert sessions.find(begun.key) is None


def test_failures_of_many_addresses_are_bounded() -> None:
    clock = FakeClock()
    failures = FailedLogins(clock)
    for number in range(30_000):
        failures.add(str(number))
    assert len(failures._counts) == 10_000
    for _ in range(FAILURES_MAX):
        failures.add("a")
    assert failures.is_blocked("a")
    clock.now = 61
    assert not failures.is_blocked("a")


@pytest.mark.parametrize(
    "line, message",
    [
        ("ada", ":1: found a malformed line"),
        ("ada:md5:1:00:00", ":1: found a malformed line"),
        ("ada:scrypt:1000:00:" + "00" * 64, ":1: found a malformed line"),
        ("ada:scrypt:1024:zz:" + "00" * 64, ":1: found a malformed line, expected hexadecimal"),
        ("ada:scrypt:1024:00:00", ":1: found a malformed line"),
        ("ada:scrypt:1024:00:" + "00" * 64 + "\nada:scrypt:1024:00:" + "00" * 64, ":2: found 'ada', expected each"),
        (":scrypt:1024:00:" + "00" * 64, ":1: found ''"),
        ("x" * (2 << 20), "found a large file"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_malformed_users_file_is_refused_by_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "users").write_text(line)
    with pytest.raises(InputError) as raised:
        StoredCredentials.read(tmp_path / "users", None)
    assert message in str(raised.value)


def test_actions_are_described(open_console: Any) -> None:
    description = open_console().get("/openapi.json").json()
    operation = description["paths"]["/note"]["post"]
    content = operation["requestBody"]["content"]
    assert set(content["application/json"]["schema"]["properties"]) == {"text", "count"}
    assert json.dumps(content["application/json"]) == json.dumps(content["application/x-www-form-urlencoded"])
