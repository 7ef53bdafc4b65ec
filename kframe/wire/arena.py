"""Memory for encoded requests."""

from __future__ import annotations

from typing import Final

import numpy as np

from kframe.model.columns import UInt8

FIRST_BLOCK_BYTES: Final = 64 * 2**10
BLOCK_BYTES_MAX: Final = 8 * 2**20


class Arena:
    """Lends bytes that were not zeroed first, out of blocks that double in size up to ``BLOCK_BYTES_MAX``.

    A large batch spends more time in page faults than in encoding if each request has an allocation of its own. Numpy
    asks the kernel for huge pages for blocks of 4 MiB and more, which leaves few faults. A block lives as long as any
    request in it, so a broker that does not take its request holds on to one block at most beyond that request.
    """

    def __init__(self) -> None:
        self._block: UInt8 = np.empty(FIRST_BLOCK_BYTES, np.uint8)
        self._used = 0

    def lend(self, nbytes: int) -> UInt8:
        """``nbytes`` that nobody else has, of any content."""
        if self._used + nbytes > len(self._block):
            self._block = np.empty(max(nbytes, min(2 * len(self._block), BLOCK_BYTES_MAX)), np.uint8)
            self._used = 0
        start = self._used
        self._used += nbytes
        return self._block[start : self._used]
