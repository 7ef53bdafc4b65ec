"""Middleware for all requests: security headers, checks of the header ``Host``, and a limit of body sizes."""

from __future__ import annotations

import logging
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kframe_console.settings import ConsoleSettings

#: No inline scripts or styles, and no content of other sites.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
_INTERNAL_ERROR: Final = "an error in kframe; the log of the console has the details\n"
_LOG: Final = logging.getLogger("kframe.console")


class Protection:
    """Refuses requests for other hosts and with long bodies, and adds HEADERS to every response.

    Unexpected exceptions are logged; the client receives status 500 without details.
    """

    def __init__(self, app: ASGIApp, settings: ConsoleSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        has_started = False

        async def send_protected(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._refusal(Headers(scope=scope))
        try:
            await (refusal or self._app)(scope, self._bounded(receive), send_protected)
        except Exception:
            _LOG.exception("error in kframe: %s", scope["path"])
            if not has_started:
                await PlainTextResponse(_INTERNAL_ERROR, 500)(scope, receive, send_protected)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        host, settings = headers.get("host", ""), self._settings
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if settings.allowed_hosts and name not in settings.allowed_hosts:
            return PlainTextResponse(f"Host: expected one of {', '.join(settings.allowed_hosts)}\n", 421)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > settings.body_bytes_max:
            return PlainTextResponse(f"body: expected at most {settings.body_bytes_max} bytes\n", 413)
        return None

    def _bounded(self, receive: Receive) -> Receive:
        """``receive`` for bodies without a Content-Length: a longer one ends as if the client had disconnected."""
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message if received <= self._settings.body_bytes_max else {"type": "http.disconnect"}

        return receive_bounded
