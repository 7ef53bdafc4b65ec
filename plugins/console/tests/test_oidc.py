"""Logins by OpenID Connect at an issuer on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from kframe_console.application import application
from kframe_console.security.login import LoginPolicy
from kframe_console.security.oidc import OidcLogin, oidc_settings
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.saved import SavedSource
from starlette.testclient import TestClient

from kframe.plugin import ConfigError
from kframe.plugin.snapshot import Snapshot
from verification.console.issuer import Issuer
from verification.console.served import served

HTML = {"accept": "text/html"}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    with served(issuer.application()) as port:
        issuer.url = f"http://127.0.0.1:{port}"
        yield issuer


@pytest.fixture
def open_console(kraft_snapshot: Snapshot, issuer: Issuer) -> Iterator[Callable[..., TestClient]]:
    with ExitStack() as clients:

        def start(**settings: str) -> TestClient:
            policy = LoginPolicy(oidc=True)
            values = {
                "issuer": issuer.url,
                "client.id": issuer.client_id,
                "client.secret": issuer.client_secret,
                "public.url": "http://localhost",
            }
            login = OidcLogin({**values, **{name.replace("_", "."): value for name, value in settings.items()}}, policy)
            app = application(SavedSource.of(kraft_snapshot), ConsoleSettings(allowed_hosts=()), policy, login)
            return clients.enter_context(TestClient(app, base_url="http://localhost", follow_redirects=False))

        yield start


def log_in(client: TestClient) -> httpx2.Response:
    """Follow a browser from the first page to the response to its login."""
    response = client.get("/", headers=HTML)
    assert (response.status_code, response.headers["location"]) == (303, "/login")
    response = client.get("/login", headers=HTML)
    assert response.status_code == 302, response.text
    at_issuer = httpx2.get(response.headers["location"])
    return client.get(at_issuer.headers["location"].removeprefix("http://localhost"), headers=HTML)


def test_browser_logs_in_at_the_issuer(open_console: Callable[..., TestClient]) -> None:
    client = open_console()
    before = dict(client.cookies)
    response = log_in(client)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert dict(client.cookies) != before
    page = client.get("/", headers=HTML)
    assert page.status_code == 200
    assert '<p class="user">ada</p>' in page.text
    client.cookies.clear()
    assert client.get("/", headers=HTML).status_code == 303


def test_user_is_the_chosen_claim(open_console: Callable[..., TestClient]) -> None:
    client = open_console(user_claim="email", users="ada@example.org, bob@example.org")
    assert log_in(client).status_code == 303
    assert "ada@example.org" in client.get("/").text


def test_user_who_is_not_listed_is_refused(open_console: Callable[..., TestClient]) -> None:
    client = open_console(users="bob")
    assert log_in(client).status_code == 403
    assert client.get("/").status_code == 401


@pytest.mark.parametrize(
    "overrides",
    [{"iss": "http://other"}, {"aud": "other"}, {"exp": 1}, {"nonce": "other"}, {"sub": ""}, {"sub": ["ada"]}],
    ids=str,
)
def test_wrong_id_token_is_refused(
    open_console: Callable[..., TestClient], issuer: Issuer, overrides: dict[str, object]
) -> None:
    issuer.overrides = overrides
    client = open_console()
    assert log_in(client).status_code == 403
    assert client.get("/", headers=HTML).status_code == 303


def test_id_token_of_another_key_is_refused(open_console: Callable[..., TestClient], issuer: Issuer) -> None:
    issuer.signs_with_other_key = True
    assert log_in(open_console()).status_code == 403


def test_callback_of_another_browser_is_refused(open_console: Callable[..., TestClient]) -> None:
    client = open_console()
    location = client.get("/login").headers["location"]
    callback = httpx2.get(location).headers["location"].removeprefix("http://localhost")
    client.cookies.clear()
    assert client.get(callback).status_code == 400
    client.get("/login")
    assert client.get(callback).status_code == 403, "its state is that of another login"


def test_programs_get_no_redirect(open_console: Callable[..., TestClient]) -> None:
    assert open_console().get("/partitions?format=json", headers={"accept": "application/json"}).status_code == 401


def test_issuer_that_cannot_be_reached_is_reported(open_console: Callable[..., TestClient]) -> None:
    response = open_console(issuer="http://127.0.0.1:1").get("/login")
    assert (response.status_code, response.text) == (502, "the issuer of logins cannot be reached\n")


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no issuer"),
        ("issuer=https://i\nclient.id=a\nclient.secret=b", "no public.url"),
        ("issuer=http://i\nclient.id=a\nclient.secret=b\npublic.url=https://c", "key issuer: found http://i"),
        ("issuer=https://i\nclient.id=a\nclient.secret=b\npublic.url=http://c", "key public.url: found http://c"),
        ("isuer=https://i", "'issuer' perhaps"),
    ],
)
def test_bad_settings_are_refused_by_key(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "oidc.properties").write_text(text)
    with pytest.raises(ConfigError) as raised:
        oidc_settings(tmp_path / "oidc.properties")
    assert message in str(raised.value)
