"""A client of a console, which sends what its pages have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import httpx2
from kframe_console.application import application
from kframe_console.sources.reading import ClusterSource
from kframe_console.sources.saved import SavedSource
from starlette.testclient import TestClient

from kframe.plugin.snapshot import Snapshot


class ConsoleClient:
    """Requests to a console by a client of HTTP, whose base is the address of the console."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def json(self, path: str, **parameters: str) -> Any:
        """The content of a page. Its path may have parameters already."""
        response = self.client.get(_address(path, **parameters))
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, response: httpx2.Response, status: int, message: str) -> None:
        """Check that a request for JSON was refused with this status, and with this message among others."""
        assert (response.status_code, message in response.json()["error"]) == (status, True), response.text

    def refuses(self, path: str, message: str, status: int = 400, **parameters: str) -> None:
        """Check that a page is refused."""
        self.refused(self.client.get(_address(path, **parameters)), status, message)

    def token(self, path: str = "/", **headers: str) -> str:
        """What writes from a page need."""
        text = self.client.get(path, headers=headers).text
        return text.partition('name="csrf-token" content="')[2].partition('"')[0]

    def write(self, path: str, fields: dict[str, str]) -> httpx2.Response:
        """The response to the form of a page that has these fields."""
        return self.client.post(path, params={"format": "json"}, data={"csrf_token": self.token(), **fields})

    def confirm(self, path: str, **parameters: str) -> Any:
        """Send the form of a page that confirms a write, as a browser does. Returns the execution."""
        self.json(path, **parameters)  # It waits for what the page needs.
        page = self.client.get(path, params=parameters)
        assert page.status_code == 200, page.text
        (form,) = re.findall(r'<form method="post" action="([^"]*)">(.*?)</form>', page.text, re.DOTALL)
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[1]))
        response = self.client.post(form[0], params={"format": "json"}, data=fields)
        assert response.status_code == 200, response.text
        return response.json()


@contextmanager
def client_of(url: str) -> Iterator[ConsoleClient]:
    """A client of the console at a URL, which waits a minute for each response."""
    with httpx2.Client(base_url=url, timeout=60, follow_redirects=True, trust_env=False) as client:
        yield ConsoleClient(client)


def _address(path: str, **parameters: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{urlencode({**parameters, 'format': 'json'})}"


@contextmanager
def console_of(source: ClusterSource | Snapshot, *arguments: Any, **options: Any) -> Iterator[ConsoleClient]:
    """A console of a source, or of a snapshot, in this process. Others are arguments of ``application``."""
    opened = SavedSource.of(source) if isinstance(source, Snapshot) else source
    with TestClient(application(opened, *arguments, **options), base_url="http://localhost") as client:
        yield ConsoleClient(client)
