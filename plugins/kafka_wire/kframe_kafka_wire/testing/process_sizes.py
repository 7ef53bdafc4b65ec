"""Memory, threads and descriptors of a process."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import NamedTuple


class ProcessSizes(NamedTuple):
    """A sample of a process."""

    seconds: float
    """Since the start of the samples."""
    memory_kib: int
    """Resident memory."""
    threads: int
    descriptors: int


def sizes_of(pid: int, start_s: float) -> ProcessSizes:
    """A sample of a process, from Linux's ``/proc``. Raises OSError if the process has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    (memory_kib,), (threads,) = (
        re.findall(rf"^{name}:\s+(\d+)", status, re.MULTILINE) for name in ("VmRSS", "Threads")
    )  # fmt: skip
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    return ProcessSizes(round(time.monotonic() - start_s, 1), int(memory_kib), int(threads), descriptors)
