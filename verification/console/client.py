"""A client of a console, which sends what its pages have."""

from __future__ import annotations

import re
from typing import Any

import httpx2


class ConsoleClient:
    """Requests to a console by a client of HTTP, whose base is the address of the console."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client

    def json(self, path: str, **parameters: str) -> Any:
        """The content of a page."""
        response = self.client.get(path, params={**parameters, "format": "json"})
        assert response.status_code == 200, response.text
        return response.json()

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
