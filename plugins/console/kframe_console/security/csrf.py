"""CSRF tokens: each write needs one, which the pages of the console have and other sites do not."""

from __future__ import annotations

import hmac
import secrets
from typing import Final

from starlette.requests import Request

from kframe_console.security.identities import Identity

#: The header or form field with the token of a request.
HEADER: Final = "x-csrf-token"
FIELD: Final = "csrf_token"


class CsrfTokens:
    """A token for each user and session. A restart of the console makes new ones."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def token(self, identity: Identity) -> str:
        """The token for the pages of a user."""
        return hmac.new(self._key, repr(identity).encode(), "sha256").hexdigest()

    def problem(self, request: Request, identity: Identity, token: str) -> str | None:
        """Why a write is refused; None if it comes from a page of the console.

        A request with a bearer token needs no CSRF token: no browser sends it by itself.
        """
        if identity.method == "bearer":
            return None
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "found a request of another site, expected one of a page of this console"
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            return f"found the origin {origin[:200]}, expected a page of this console"
        if not hmac.compare_digest(token.encode(), self.token(identity).encode()):
            return f"found no valid token, expected that of the page in the header {HEADER} or the field {FIELD}"
        return None
