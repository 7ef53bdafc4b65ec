"""TLS for servers that sends the alert of a failed handshake to the client.

asyncio closes the connection without sending it. A client without a certificate would then see no reason, and retry.
"""

from __future__ import annotations

import ssl


class _AlertingObject(ssl.SSLObject):
    """A TLS connection whose failed handshake raises only after the alert was sent."""

    outgoing: ssl.MemoryBIO
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """As ``SSLObject``, except for the first call after a failure.

        That call reports that more input is needed, so that asyncio sends the pending alert. The next call raises the
        error, when the client has answered or closed the connection.
        """
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as problem:
            if not self.outgoing.pending:
                raise
            self._failure = problem
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the alert is to be sent first") from problem


class AlertingContext(ssl.SSLContext):
    """An SSL context for asyncio's servers. A client has the handshake timeout to receive the alert."""

    sslobject_class = _AlertingObject

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False,
        server_hostname: str | bytes | None = None, session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:  # fmt: skip
        """As ``SSLContext``."""
        tls = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(tls, _AlertingObject)
        tls.outgoing = outgoing
        return tls
