"""Authentication of requests: by password, bearer token, client certificate, or a session of OpenID Connect."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kframe_console.security.identities import LOCAL, Identity, StoredCredentials
from kframe_console.security.sessions import FailedLogins, Sessions

#: Keys of the state of a request: its user, and the common name in the client's certificate (``serving``).
USER: Final = "user"
CERTIFICATE: Final = "client_certificate"
#: The paths of OpenID Connect, which need no login.
LOGIN_PATH: Final = "/login"
CALLBACK_PATH: Final = "/login/callback"
#: Passwords that are verified at a time; each needs 16 MiB.
_VERIFICATIONS_MAX: Final = 2


@dataclass(slots=True)
class LoginPolicy:
    """How users log in. Without any method every request is that of LOCAL.

    With ``secure``, browsers send the cookie only over TLS.
    """

    credentials: StoredCredentials | None = None
    _: KW_ONLY
    certificates: bool = False
    oidc: bool = False
    secure: bool = False
    sessions: Sessions = field(default_factory=Sessions)
    failed_logins: FailedLogins = field(default_factory=FailedLogins)

    @property
    def is_required(self) -> bool:
        """Whether users must log in."""
        return self.credentials is not None or self.certificates or self.oidc

    @property
    def cookie(self) -> str:
        """The name of the cookie of sessions. Browsers let only this host set the secure one (RFC 6265bis)."""
        return "__Host-kframe" if self.secure else "kframe"

    def challenge(self) -> str:
        """The header ``WWW-Authenticate`` (RFC 9110)."""
        return ", ".join(
            [
                *(['Basic realm="kframe", charset="UTF-8"'] if self.credentials and self.credentials.passwords else []),
                'Bearer realm="kframe"',
            ]
        )


class Login:
    """Middleware that finds the user of each request. It refuses requests without one, or redirects them to a login."""

    def __init__(self, app: ASGIApp, policy: LoginPolicy) -> None:
        self._app = app
        self._policy = policy
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        policy, state = self._policy, scope.setdefault("state", {})
        address = scope["client"][0] if scope.get("client") else ""
        if not policy.is_required:
            state[USER] = LOCAL
        elif policy.failed_logins.is_blocked(address):
            refusal = PlainTextResponse("too many failed logins: try again in a minute\n", 429, {"retry-after": "60"})
            await refusal(scope, receive, send)
            return
        elif not (policy.oidc and scope["path"] in (LOGIN_PATH, CALLBACK_PATH)):
            identity = await self._identity(Headers(scope=scope), state, address)
            if identity is None:
                await self._refusal(scope)(scope, receive, send)
                return
            state[USER] = identity
        await self._app(scope, receive, send)

    async def _identity(self, headers: Headers, state: dict[str, Any], address: str) -> Identity | None:
        policy = self._policy
        if policy.certificates and (subject := state.get(CERTIFICATE)):
            return Identity(subject, "certificate")
        key = cookie_parser(headers.get("cookie", "")).get(policy.cookie, "")
        if policy.oidc and (session := policy.sessions.find(key)) is not None:
            return Identity(session.user, "oidc", key)
        authorization = headers.get("authorization")
        if policy.credentials is None or not authorization:
            return None
        if self._limiter is None:
            self._limiter = CapacityLimiter(_VERIFICATIONS_MAX)
        identity = await to_thread.run_sync(policy.credentials.authenticate, authorization, limiter=self._limiter)
        if identity is None:
            policy.failed_logins.add(address)
        return identity

    def _refusal(self, scope: Scope) -> Response:
        accepts_html = "text/html" in Headers(scope=scope).get("accept", "")
        if self._policy.oidc and scope["method"] == "GET" and accepts_html:
            return RedirectResponse(LOGIN_PATH, 303)
        return PlainTextResponse("a login is required\n", 401, {"www-authenticate": self._policy.challenge()})
