"""Memory that a controller has touched before it needs it.

The system hands out memory page by page when it is first touched, and clears each: in a virtual machine that takes 2 µs
a page, and up to ten where its host has to find the page first. A controller that takes over touches thousands that are
new to it, one after another, while a cluster waits. So one that may have to take over touches them when it starts, and
has its allocator keep what is given back: what one array leaves, the next takes.

This is for the allocator of the GNU C library, by its own ``mallopt``; with any other nothing is done.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np

#: What is touched: about what a takeover of 100,000 partitions comes to. Larger clusters touch the rest when they are
#: read, of which it is a small part.
READY_BYTES: Final = 64 * 2**20
#: It is asked for in such pieces, which numpy has the system make of huge pages: 32 of them in place of 16,000.
_PIECE_BYTES: Final = 16 * 2**20
#: From here on an array gets memory of its own, and gives it back to the system. Numpy asks for huge pages for these.
_OWN_BYTES: Final = 4 * 2**20
#: Memory at the end of the heap that is kept.
_KEPT_BYTES: Final = 2 * READY_BYTES
#: Parameters of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8


def make_ready(nbytes: int = READY_BYTES) -> bool:
    """Touch so much memory and keep it, for all threads of this process together; False where that cannot be done.

    To be called before there are other threads: each would have a heap of its own.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or not mallopt(_ARENA_MAX, 1):
        return False  # another library, or one whose allocator something else stands in for, such as a sanitizer's
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_MMAP_THRESHOLD, 2 * _PIECE_BYTES)  # as long as pieces are made, or they would not be of the heap
    pieces = [np.ones(_PIECE_BYTES, np.uint8) for _ in range(nbytes // _PIECE_BYTES)]
    pieces.clear()
    mallopt(_MMAP_THRESHOLD, _OWN_BYTES)
    return True
