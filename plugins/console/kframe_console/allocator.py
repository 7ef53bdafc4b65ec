"""Keeps the memory of a process near the size of its columns."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

#: ``M_MMAP_THRESHOLD`` of ``mallopt``, and the bytes from which an array has pages of its own.
_MMAP_THRESHOLD: Final = -3
_OWN_PAGES_BYTES: Final = 1 << 20


def return_large_arrays() -> None:
    """Let the GNU C library return the memory of each large array when it is freed.

    It would otherwise raise the size from which arrays have pages of their own, and keep smaller ones in a heap of each
    thread: after a few sorts of a million rows, half of the memory of a console is such heaps. Other allocators are
    left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _OWN_PAGES_BYTES)


def exempt_present_objects() -> None:
    """Let the garbage collector ignore the objects that there are now: modules, templates, routes and the source.

    A collection of all generations would examine them, which takes 20 to 60 ms. Several fall into the first requests.
    """
    gc.collect()
    gc.freeze()


def release_memory() -> None:
    """Free what only cycles refer to, such as the controller of a what-if with its columns, and return free memory.

    The allocator of the GNU C library would keep it for later arrays, in a heap of the thread; others are left alone.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
