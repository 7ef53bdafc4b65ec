"""Logins by OpenID Connect, by Authlib: authorization code with PKCE, state and nonce, and checks of the ID token."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from kframe.plugin import ConfigError
from kframe.plugin.settings import nearest, read_properties
from kframe_console.security.login import CALLBACK_PATH, LOGIN_PATH, LoginPolicy

_LOG: Final = logging.getLogger("kframe.console")
_METADATA: Final = "/.well-known/openid-configuration"
_REQUIRED: Final = ("issuer", "client.id", "client.secret", "public.url")
_KEYS: Final = (*_REQUIRED, "user.claim", "users")


class OidcLogin:
    """Logins at one issuer."""

    def __init__(self, settings: Mapping[str, str], policy: LoginPolicy) -> None:
        """Raises ConfigError if Authlib is missing."""
        try:
            from authlib.integrations.starlette_client import OAuth
        except ImportError as problem:
            raise ConfigError("--oidc", "no module authlib", "pip install 'kframe-console[oidc]'") from problem
        self._policy = policy
        self._claim = settings.get("user.claim", "sub")
        self._users = frozenset(filter(None, map(str.strip, settings.get("users", "").split(","))))
        self._redirect = settings["public.url"].rstrip("/") + CALLBACK_PATH
        self._client: Any = OAuth().register(
            "issuer",
            client_id=settings["client.id"],
            client_secret=settings["client.secret"],
            server_metadata_url=settings["issuer"].rstrip("/") + _METADATA,
            client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256", "timeout": 10.0},
        )

    def routes(self) -> list[Route]:
        """The paths that a browser visits to log in."""
        return [
            Route(LOGIN_PATH, self._login, methods=["GET"]),
            Route(CALLBACK_PATH, self._callback, methods=["GET"]),
        ]

    async def _login(self, request: Request) -> Response:
        session = self._policy.sessions.begin()
        request.scope["session"] = session.data
        try:
            response: Response = await self._client.authorize_redirect(request, self._redirect)
        except Exception:  # Authlib passes on the exceptions of its libraries.
            _LOG.exception("no login at the issuer")
            return PlainTextResponse("the issuer of logins cannot be reached\n", 502)
        self._set_cookie(response, session.key)
        return response

    async def _callback(self, request: Request) -> Response:
        session = self._policy.sessions.pending(request.cookies.get(self._policy.cookie, ""))
        if session is None:
            return PlainTextResponse("the login has expired: open the console again\n", 400)
        request.scope["session"] = session.data
        try:
            token = await self._client.authorize_access_token(request)
            claims: Mapping[str, Any] = token["userinfo"]
            user = claims[self._claim]
        except Exception:
            _LOG.exception("a login failed")
            self._policy.failed_logins.add(request.client.host if request.client else "")
            return PlainTextResponse("the login failed\n", 403)
        if not isinstance(user, str) or not user or (self._users and user not in self._users):
            return PlainTextResponse("this user may not use the console\n", 403)
        response = RedirectResponse("/", 303)
        self._set_cookie(response, self._policy.sessions.complete(session, user).key)
        return response

    def _set_cookie(self, response: Response, key: str) -> None:
        policy = self._policy
        response.set_cookie(policy.cookie, key, httponly=True, secure=policy.secure, samesite="lax", path="/")


def oidc_settings(path: Path) -> dict[str, str]:
    """The settings in a properties file. Raises ConfigError, which names the key."""
    settings = {entry.key: entry.value for entry in read_properties(path)}
    for key in settings:
        if key not in _KEYS:
            raise ConfigError(str(path), f"the key {key}", nearest(key, _KEYS))
    for key in _REQUIRED:
        if not settings.get(key, "").strip():
            raise ConfigError(str(path), f"no {key}", f"values of {', '.join(_REQUIRED)}")
    for key in ("issuer", "public.url"):
        if not settings[key].startswith(("https://", "http://localhost", "http://127.0.0.1")):
            raise ConfigError(f"{path}, key {key}", settings[key], "https://, or http:// of this machine")
    return settings
