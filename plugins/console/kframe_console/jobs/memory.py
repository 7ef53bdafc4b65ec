"""Returns the memory of a large computation to the system."""

from __future__ import annotations

import ctypes
import gc


def release_memory() -> None:
    """Free what only cycles refer to, such as the controller of a what-if with its columns, and return free memory.

    The allocator of the GNU C library would keep it for later arrays, in a heap of the thread; others are left alone.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
