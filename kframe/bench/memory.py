"""How much memory this process had at most, where the system tells (Linux)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_CLEAR: Final = Path("/proc/self/clear_refs")
_STATUS: Final = Path("/proc/self/status")
#: What makes Linux forget the peak (``proc_pid_clear_refs(5)``).
_FORGET_PEAK: Final = "5"


def forget_peak() -> None:
    """Let the peak be what is resident now, where that can be asked for."""
    with suppress(OSError):
        _CLEAR.write_text(_FORGET_PEAK)


def peak_bytes() -> int | None:
    """The most that was resident since, None where nobody knows."""
    try:
        lines = _STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
