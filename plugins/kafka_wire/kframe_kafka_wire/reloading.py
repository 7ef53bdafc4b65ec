"""TLS for servers whose key and certificates may be replaced while they run.

Kafka reloads a store after an AlterConfigs request. kframe reloads a changed file with the next connection.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from kframe.plugin import ConfigError

_log = logging.getLogger("kframe.kafka_wire")


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
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False,
        server_hostname: str | bytes | None = None, session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:  # fmt: skip
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
