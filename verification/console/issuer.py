"""An issuer of OpenID Connect that logs in one user, for tests. ``faults`` make its ID tokens wrong."""

from __future__ import annotations

import base64
import hashlib
import time
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route


@dataclass
class Issuer:
    """Serves discovery, authorization, tokens and keys. ``url`` is set when its port is known."""

    client_id: str = "console"
    client_secret: str = "client-secret"
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "ada", "email": "ada@example.org"})
    overrides: dict[str, Any] = field(default_factory=dict)
    """Claims of the ID token that differ from the right ones."""
    signs_with_other_key: bool = False
    url: str = ""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one"})
        self.other_key = RSAKey.generate_key(2048, {"kid": "one"})

    def application(self) -> Starlette:
        """The pages of the issuer."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._metadata),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/keys", self._keys),
            ]
        )

    async def _metadata(self, _request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
                "response_types_supported": ["code"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def _authorize(self, request: Request) -> Response:
        query = dict(request.query_params)
        assert query["client_id"] == self.client_id
        assert query["code_challenge_method"] == "S256"
        self.codes["code-1"] = query
        return RedirectResponse(f"{query['redirect_uri']}?code=code-1&state={query['state']}")

    async def _token(self, request: Request) -> Response:
        body = dict(pair.split("=", 1) for pair in (await request.body()).decode().split("&"))
        query = self.codes.pop(body["code"], None)
        expected = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        if query is None or request.headers.get("authorization") != f"Basic {expected}":
            return JSONResponse({"error": "invalid_grant"}, 400)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(body["code_verifier"].encode()).digest()).rstrip(b"=")
        if challenge.decode() != query["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": self.client_id, "exp": now + 60, "iat": now, "nonce": query["nonce"]}
        key = self.other_key if self.signs_with_other_key else self.key
        token = jwt.encode({"alg": "RS256", "kid": "one"}, {**claims, **self.claims, **self.overrides}, key)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": token})

    async def _keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})
