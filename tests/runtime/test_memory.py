"""Preallocated memory, in a separate process with its own allocator settings."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

#: Page faults of 16 MiB, allocated in arrays of 1 MiB and freed: twice in this thread, once in another.
COUNT: Final = """
import resource, threading
import numpy as np
from kframe.runtime.memory import make_ready

def faults() -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(2**20, np.uint8) for _ in range(16)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

made = make_ready()
counts = [faults(), faults()]
thread = threading.Thread(target=lambda: counts.append(faults()))
thread.start()
thread.join()
print(int(made), *counts)
"""
#: 16 MiB are 4096 pages; other activity touches some of them.
FEW: Final = 200


def test_touched_memory_is_reused_by_later_allocations() -> None:
    completed = subprocess.run([sys.executable, "-c", COUNT], check=True, stdout=subprocess.PIPE, text=True)
    preallocated, *counts = map(int, completed.stdout.split())
    if not preallocated:
        pytest.skip("the allocator of this system cannot be told to keep memory")
    assert len(counts) == 3
    assert max(counts) < FEW
