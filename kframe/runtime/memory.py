"""Allocates the memory of a failover in advance.

The kernel maps and clears a page at its first access, which takes 2 to 10 µs in a virtual machine. A failover accesses
thousands of new pages while the cluster waits. So a controller accesses them at its start, and its allocator keeps
freed memory for later arrays.

This uses ``mallopt`` of the GNU C library; with other allocators it does nothing.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

#: About the memory of a failover with 100,000 partitions. Larger clusters map the rest while they are read, which takes
#: longer anyway.
READY_BYTES: Final = 64 * 2**20
#: The size of each allocation; numpy requests huge pages for it: 32 pages instead of 16,000.
_PIECE_BYTES: Final = 16 * 2**20
#: Parameters of mallopt(3).
_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8
#: No free memory is returned to the system, so that the next failover needs no new pages: the process keeps what its
#: largest event needed, as a JVM keeps its heap.
_NEVER: Final = -1


def preallocate(nbytes: int = READY_BYTES) -> bool:
    """Map ``nbytes`` and keep them in the heap of all threads; return False where the allocator does not support it.

    Call it before other threads start, because each would have a heap of its own.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not mallopt(_ARENA_MAX, 1):
        return False  # another C library, or an allocator that replaces its own, such as a sanitizer's
    mallopt(_TRIM_THRESHOLD, _NEVER)
    mallopt(_MMAP_MAX, 0)  # Else large arrays would be mapped separately, and returned.
    pieces = [np.ones(_PIECE_BYTES, np.uint8) for _ in range(nbytes // _PIECE_BYTES)]
    pieces.clear()
    return True
