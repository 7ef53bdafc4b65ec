"""Login in Chromium, by the password that the browser asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from kframe_console.command import example
from kframe_console.security.identities import password_line

from verification.console.browser import Visit
from verification.console.running import running_console

pytestmark = pytest.mark.real

Open = Callable[..., Visit]


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
