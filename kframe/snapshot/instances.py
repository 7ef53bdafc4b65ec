"""A running ``kframe controller run`` as other instances see it, and whether its process is alive."""

from __future__ import annotations

import os
import platform
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

_PROC: Final = Path("/proc")
#: Process states in which nothing runs any more (Linux ``proc(5)``): zombie and dead.
_ENDED_STATES: Final = ("Z", "X")


@dataclass(frozen=True, slots=True)
class Instance:
    """A controller process and its id."""

    controller_id: int
    host: str
    pid: int
    started_ms: int
    """When it started, by its own clock. In milliseconds since 1970."""
    token: str
    """32 hexadecimal digits, chosen at random by each process."""
    machine: str = ""
    """Identifies the boot of the machine and the process namespace. Empty if the system does not report it."""
    birth: str = ""
    """When the process started, in clock ticks since the boot. Empty if the system does not report it."""
    metrics: str | None = None
    """HOST:PORT of its pages, if it serves any."""

    @staticmethod
    def of_this_process(controller_id: int) -> Instance:
        """The process that calls this, under an id. With another token each time."""
        now_ms = time.time_ns() // 1_000_000
        host, pid, token = platform.node(), os.getpid(), uuid.uuid4().hex
        return Instance(controller_id, host, pid, now_ms, token, _machine(), _process_start(pid) or "")

    def is_alive(self) -> bool | None:
        """Whether the process is alive. None if unknown, because the process ran on another machine."""
        if not self.machine or not self.birth or self.machine != _machine():
            return None
        return _process_start(self.pid) == self.birth

    def __str__(self) -> str:
        return f"{self.host} pid {self.pid}, started {utc_text(self.started_ms)}"


@runtime_checkable
class InstanceRegistration(Protocol):
    """A store that lists this instance for other instances. It refuses an id that another instance has."""

    def register_instance(self, instance: Instance, *, duplicate: bool = False) -> None:
        """List this instance as long as the store is open. Another call replaces its description.

        Called before ``open``, which then raises ConfigError while another live instance has the id, unless
        ``duplicate``. Callable from any thread.
        """


def utc_text(milliseconds: int) -> str:
    """A point in time in UTC as ISO 8601. The bare number where it is beyond the calendar."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


def _machine() -> str:
    with suppress(OSError):
        boot_id = (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
        return f"{boot_id}/{(_PROC / 'self' / 'ns' / 'pid').readlink()}"
    return ""


def _process_start(pid: int) -> str | None:
    """Start time of a process, field 22 of Linux ``proc(5)`` stat. None if there is none of that number."""
    with suppress(OSError):
        # The second field is the name in parentheses, which may hold blanks and parentheses.
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in _ENDED_STATES else fields[19]
    return None
