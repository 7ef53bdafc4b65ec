"""Preallocated and retained memory, in a separate process with its own allocator settings."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

#: Page faults of arrays that are allocated and then freed: twice in this thread, once in another. Then those of a
#: second time, with arrays that take more than was preallocated: those of a batch of requests, and a large one.
COUNT: Final = """
import resource, threading
import numpy as np
from kframe.runtime.memory import preallocate
from kframe.wire.sections import GROUP_BYTES

def faults(count: int, size: int) -> int:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(size, np.uint8) for _ in range(count)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

made = preallocate()
counts = [faults(16, 2**20), faults(16, 2**20)]
thread = threading.Thread(target=lambda: counts.append(faults(16, 2**20)))
thread.start()
thread.join()
faults(32, GROUP_BYTES)
counts.append(faults(32, GROUP_BYTES))
faults(1, 2**28)
counts.append(faults(1, 2**28))
print(int(made), *counts)
"""
#: 16 MiB are 4096 pages; other activity touches some of them.
FEW: Final = 200


def test_preallocated_memory_is_reused() -> None:
    completed = subprocess.run([sys.executable, "-c", COUNT], check=True, stdout=subprocess.PIPE, text=True)
    preallocated, *counts = map(int, completed.stdout.split())
    if not preallocated:
        pytest.skip("the allocator of this system cannot be told to keep memory")
    assert len(counts) == 5
    assert max(counts) < FEW
