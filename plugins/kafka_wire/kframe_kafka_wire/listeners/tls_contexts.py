"""TLS for asyncio's servers: contexts that send alerts, and that follow changes of the files.

asyncio closes the connection without sending the alert of a failed handshake. A client without a certificate would then
see no reason, and retry. Kafka reloads a store after an AlterConfigs request, kframe a changed file with the next
connection.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from kframe.plugin import ConfigError

_log = logging.getLogger("kframe.kafka_wire")


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
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As ``SSLContext``."""
        tls = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(tls, _AlertingObject)
        tls.outgoing = outgoing
        return tls


class ReloadingContext(ssl.SSLContext):
    """A context for asyncio's servers. Each connection uses the present content of the files.

    Established connections keep their certificates. While changed files cannot be used, the last context stays in use.
    """

    def __new__(cls, create: Callable[[], ssl.SSLContext], paths: Sequence[Path]) -> Self:
        """``create`` reads the files at ``paths``."""
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, create: Callable[[], ssl.SSLContext], paths: Sequence[Path]) -> None:
        """Raises ConfigError if a file cannot be used."""
        self._create = create
        self._paths = tuple(paths)
        self._versions = self._read_versions()
        self._current = create()

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As ``SSLContext``, with the present content of the files."""
        self._refresh()
        return self._current.wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def _refresh(self) -> None:
        versions = self._read_versions()
        if versions == self._versions:
            return
        self._versions = versions
        try:
            self._current = self._create()
        except ConfigError as error:
            _log.warning("changed TLS files cannot be used; the last ones remain in use: %s", error)
        else:
            _log.info("TLS files were reloaded: %s", ", ".join(map(str, self._paths)))

    def _read_versions(self) -> list[tuple[int, int, int] | None]:
        """Inode, size and modification time of each file, None for a missing one."""
        versions: list[tuple[int, int, int] | None] = []
        for path in self._paths:
            try:
                status = path.stat()
            except OSError:
                versions.append(None)
            else:
                versions.append((status.st_ino, status.st_size, status.st_mtime_ns))
        return versions
