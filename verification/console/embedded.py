"""A console that may execute plans on a controller in this process, whose replicas catch up when a test lets them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kframe_console.application import application
from kframe_console.plans.executions import Executions
from kframe_console.security.audit import AuditLog
from kframe_console.settings import ConsoleSettings
from kframe_console.sources.reading import ClusterSource, Reading
from starlette.applications import Starlette

from kframe.plugin import StoreError
from kframe.plugin.admin import ClusterDescription
from kframe.plugin.snapshot import Snapshot
from tests.plans.embedded_admin import EmbeddedAdmin

URL: Final = "kafka://embedded:9092"


class SharedAdmin(EmbeddedAdmin):
    """The admin API of one controller for several threads. Replicas catch up while ``copies`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()
        self.copies = threading.Event()
        self.reachable = True

    def capture(self) -> Snapshot:
        """See EmbeddedAdmin."""
        with self._lock:
            return super().capture()

    def describe(self) -> ClusterDescription:
        """See EmbeddedAdmin. Raises StoreError while the controller is not ``reachable``."""
        with self._lock:
            if not self.reachable:
                raise StoreError("no controller can be reached")
            return super().describe() if self.copies.is_set() else self._description()

    def reassign(self, targets: Any) -> Any:
        """See EmbeddedAdmin."""
        with self._lock:
            return super().reassign(targets)

    def close(self) -> None:
        """Nothing: the next connection is to the same controller."""

    def end(self) -> None:
        """Stop the controller."""
        super().close()


class CapturedSource(ClusterSource):
    """A cluster that is read for each page, with a new number if it has changed."""

    name = URL
    is_live = True

    def __init__(self, admin: SharedAdmin) -> None:
        self._admin = admin
        self._number = 0
        self._digest = ""
        self._lock = threading.Lock()

    def reading(self, at: str) -> Reading:
        """See ClusterSource."""
        with self._lock:
            snapshot = self._admin.capture()
            digest, self._digest = self._digest, snapshot.digest()
            self._number += digest != self._digest
            return Reading(self._number, snapshot, datetime.now(UTC))


@contextmanager
def executing_application(folder: Path) -> Iterator[tuple[Starlette, SharedAdmin]]:
    """The application, and its cluster. ``folder`` gets journals and ``audit.jsonl``."""
    admin = SharedAdmin()
    executions = Executions(URL, lambda: admin, folder, interval_s=0.01)
    settings = ConsoleSettings(allow_execute=True)
    with closing(AuditLog(folder / "audit.jsonl")) as audit:
        yield application(CapturedSource(admin), settings, audit=audit, executions=executions), admin
    admin.end()
