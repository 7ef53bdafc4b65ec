"""TLS of a server that tells clients why it refuses them.

asyncio ends a connection whose handshake has failed without sending the alert that OpenSSL has written for the other
side, so that a client without a certificate hears nothing at all, and tries again.
"""

from __future__ import annotations

import ssl


class _TellingObject(ssl.SSLObject):
    """One connection: a handshake that has failed fails when what it had to say has been sent."""

    outgoing: ssl.MemoryBIO
    _failure: ssl.SSLError | None = None

    def do_handshake(self) -> None:
        """As ``SSLObject``, but for the first call after a failure: what waits to be sent is sent by who called, as in
        the middle of a handshake, and the next call, when the client has said or closed something, fails."""
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


class TellingContext(ssl.SSLContext):
    """For asyncio's servers. A client has the time of a handshake to receive the alert."""

    sslobject_class = _TellingObject

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False,
        server_hostname: str | bytes | None = None, session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:  # fmt: skip
        """As ``SSLContext``."""
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, _TellingObject)
        made.outgoing = outgoing
        return made
