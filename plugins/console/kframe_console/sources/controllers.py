"""Readings of running controllers: embedded in this process, or through the pages of ``--metrics-listen``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from kframe.plugin import ConfigError
from kframe.plugin.controller import Controller, KraftController

_TIMEOUT_S: Final = 1.0
_PAGE_BYTES_MAX: Final = 16 << 20
#: Most controllers that a console reads.
CONTROLLERS_MAX: Final = 16


@dataclass(frozen=True, slots=True)
class ControllerReading:
    """The state of a controller at one time."""

    name: str
    details: Mapping[str, Any] = field(default_factory=dict)
    """The fields of ``/readyz``."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """By exported name, labels included."""
    problems: Sequence[str] = ()
    """Why it is not ready."""
    is_reachable: bool = True


class Controllers(Protocol):
    """The controllers that a console shows."""

    def read_controllers(self) -> list[ControllerReading]:
        """A reading of each, always in the same order. It takes a few seconds at most, and raises nothing."""


def embedded_reading(controller: Controller | KraftController) -> ControllerReading:
    """The state of a controller that runs in this process."""
    if isinstance(controller, KraftController):
        quorum = controller.quorum
        details, problems, kind = quorum.details(), list(quorum.problems()), "node"
    else:
        status = controller.status()
        details = {name: getattr(status, name) for name in ("controller_id", "active", "active_controller")}
        details |= {"controller_epoch": status.controller_epoch, "events_waiting": status.events_waiting}
        problems, kind = [] if controller.store.connected() else ["no live session with storage"], "controller"
    return ControllerReading(f"{kind} {details['controller_id']}", details, controller.metrics(), problems)


class ServedControllers:
    """Controllers, stand-bys and shadows, read through their pages ``/metrics`` and ``/readyz``."""

    def __init__(self, addresses: Sequence[str]) -> None:
        """``addresses`` have the form http://HOST:PORT. Raises ConfigError."""
        if len(addresses) > CONTROLLERS_MAX:
            raise ConfigError("--metrics", f"{len(addresses)} of them", f"at most {CONTROLLERS_MAX}")
        self._addresses: Final = [(address, *_host_and_port(address)) for address in dict.fromkeys(addresses)]
        self._pool: Final = ThreadPoolExecutor(max(len(self._addresses), 1), "controller-pages")

    def read_controllers(self) -> list[ControllerReading]:
        """See Controllers."""
        return [*self._pool.map(lambda address: _served_reading(*address), self._addresses)]


def _host_and_port(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(address)
        if parts.scheme == "http" and parts.hostname and parts.port and parts.path in ("", "/") and not parts.query:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise ConfigError("--metrics", repr(address[:200]), "http://HOST:PORT of --metrics-listen")


def _served_reading(address: str, host: str, port: int) -> ControllerReading:
    try:
        metrics = _page(host, port, "/metrics")
        document = json.loads(_page(host, port, "/readyz"))
        reasons = [str(reason) for reason in document.pop("reasons")]
        return ControllerReading(address, document, parse_exposition(metrics.decode()), reasons)
    except (OSError, HTTPException, ValueError, LookupError, TypeError, AttributeError) as problem:
        reason = f"its pages cannot be read ({str(problem) or type(problem).__name__})"
        return ControllerReading(address, problems=(reason,), is_reachable=False)


def _page(host: str, port: int, path: str) -> bytes:
    """The text of a page. Raises OSError, HTTPException, and ValueError for a page that is too long."""
    connection = HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(_PAGE_BYTES_MAX + 1)
    finally:
        connection.close()
    if len(body) > _PAGE_BYTES_MAX:
        raise ValueError(f"{path}: found more than {_PAGE_BYTES_MAX} bytes")
    if response.status not in (200, 503):
        raise OSError(f"{path}: status {response.status}")
    return body


def parse_exposition(text: str) -> dict[str, float]:
    """Metrics by name with labels, of a page in Prometheus' text format without times. Raises ValueError."""
    samples = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}
