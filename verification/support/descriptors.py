"""A process that has no free file descriptor."""

from __future__ import annotations

import itertools
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def exhausted_descriptors(pid: int | None = None) -> Iterator[int]:
    """A process, by default this one, can open no file or socket in the block. Yields its limit of descriptors.

    Descriptors that it closes in the block can be used again.
    """
    pid = os.getpid() if pid is None else pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    folder = f"/proc/{pid}/fd"
    # The descriptor of the listing itself does not count.
    used = {int(name) for name in os.listdir(folder) if os.path.lexists(f"{folder}/{name}")}
    limit = next(number for number in itertools.count() if number not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limits[1]))
    try:
        yield limit
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
