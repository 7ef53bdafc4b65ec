"""Login in Chromium: by the password that the browser asks for, at an issuer of OpenID Connect, by a certificate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kframe_console.command import example
from kframe_console.security.identities import password_line

from verification.console.browser import Open
from verification.console.issuer import Issuer
from verification.console.running import running_console
from verification.console.served import served
from verification.zookeeper.certificates import Authority, Identity
from verification.zookeeper.servers import free_ports

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def guarded_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    users = tmp_path_factory.mktemp("users") / "users"
    users.write_text(f"{password_line('ada', 'enchantress')}\n")
    with running_console(example(), "--users", users) as console:
        yield console.port


def credentials(password: str) -> dict[str, dict[str, str]]:
    return {"http_credentials": {"username": "ada", "password": password}}


def test_wrong_password_is_refused(visit_port: Open, guarded_port: int) -> None:
    visit = visit_port(guarded_port, **credentials("wrong"))
    visit.allow("status of 401")
    assert visit.page.goto("/").status == 401
    assert "clicks" not in visit.text("body")


def test_right_password_shows_the_pages_and_the_user(visit_port: Open, guarded_port: int) -> None:
    visit = visit_port(guarded_port, **credentials("enchantress"))
    visit.open("/topics")
    assert "clicks" in {row[0] for row in visit.rows()}
    assert visit.text("header .user") == "ada"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    with served(issuer.application()) as port:
        issuer.url = f"http://127.0.0.1:{port}"
        yield issuer


@pytest.fixture
def oidc_port(issuer: Issuer, tmp_path: Path) -> Iterator[int]:
    (port,) = free_ports(1)
    keys = {
        "issuer": issuer.url,
        "client.id": issuer.client_id,
        "client.secret": issuer.client_secret,
        "public.url": f"http://127.0.0.1:{port}",
        "user.claim": "email",
    }
    properties = tmp_path / "oidc.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    with running_console(example(), "--oidc", properties, port=port) as console:
        yield console.port


def test_issuer_logs_the_user_in(oidc_port: int, issuer: Issuer, visit_port: Open) -> None:
    visit = visit_port(oidc_port)
    visit.allow_host(issuer.url)
    visit.open("/topics")
    visit.follow("/")
    assert visit.text("header .user") == "ada@example.org"
    visit.open("/topics")
    assert "clicks" in {row[0] for row in visit.rows()}


def test_wrong_token_of_the_issuer_is_refused(oidc_port: int, issuer: Issuer, visit_port: Open) -> None:
    issuer.overrides = {"aud": "another client"}
    visit = visit_port(oidc_port)
    visit.allow_host(issuer.url)
    visit.allow("status of 403")
    assert visit.page.goto("/").status == 403
    assert visit.text("body").strip() == "the login failed"


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Identity]:
    """Certificates of the console and of two users; the authority of the console has issued only the first user's."""
    folder = tmp_path_factory.mktemp("certificates")
    trusted, other = Authority(folder, "trusted"), Authority(folder, "other")
    return {"console": trusted.issue("console", "127.0.0.1"), "ada": trusted.issue("ada"), "eve": other.issue("eve")}


@pytest.fixture(scope="module")
def tls_port(identities: dict[str, Identity]) -> Iterator[int]:
    certificate = identities["console"].key_and_certificate
    options = ("--tls-cert", certificate, "--tls-key", certificate, "--client-ca", identities["console"].authority)
    with running_console(example(), *options) as console:
        yield console.port


def with_certificate(port: int, identity: Identity) -> dict[str, object]:
    """Options of a context that presents a certificate. Playwright's proxy accepts the authority of the tests."""
    path = str(identity.key_and_certificate)
    certificate = {"origin": f"https://127.0.0.1:{port}", "certPath": path, "keyPath": path}
    return {"scheme": "https", "ignore_https_errors": True, "client_certificates": [certificate]}


def test_certificate_names_the_user(tls_port: int, identities: dict[str, Identity], visit_port: Open) -> None:
    visit = visit_port(tls_port, **with_certificate(tls_port, identities["ada"]))
    visit.open("/topics")
    assert "clicks" in {row[0] for row in visit.rows()}
    assert visit.text("header .user") == "ada"


def test_certificate_of_another_authority_is_refused(
    tls_port: int, identities: dict[str, Identity], visit_port: Open
) -> None:
    visit = visit_port(tls_port, **with_certificate(tls_port, identities["eve"]))
    with pytest.raises(Exception, match="net::ERR_EMPTY_RESPONSE"):
        visit.page.goto("/topics")
