"""Encode the lists of a large batch by several threads: the kernels do not hold Python's global lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from kframe.wire.request import EncodedRequest
from kframe.wire.sections import Lists

#: About the number of rows of a part. A thread takes milliseconds for them, much longer than it takes to start.
PART_ROWS: Final = 2**18


def by_threads(lists: Lists, encode: Callable[[Lists], Iterator[EncodedRequest]]) -> Iterator[EncodedRequest]:
    """The requests that ``encode`` makes of all lists, in their order.

    There are as many threads as processors, and each encodes some consecutive lists at a time. The calling thread
    encodes up to ``PART_ROWS`` rows itself, because most batches are small.
    """
    if len(lists.rows) <= PART_ROWS or _processors() == 1:
        return encode(lists)
    return _by_parts(lists, encode)


def _by_parts(lists: Lists, encode: Callable[[Lists], Iterator[EncodedRequest]]) -> Iterator[EncodedRequest]:
    """``by_threads`` for more than ``PART_ROWS`` rows."""
    from concurrent.futures import ThreadPoolExecutor  # Most processes never have such a batch.

    ends = np.searchsorted(lists.offsets, np.arange(PART_ROWS, len(lists.rows), PART_ROWS))
    bounds = np.unique(np.concatenate([[0], ends, [len(lists.offsets) - 1]])).tolist()
    parts = [lists.part(first, end) for first, end in pairwise(bounds)]
    with ThreadPoolExecutor(_processors(), "kframe-encoder") as pool:
        for requests in pool.map(lambda part: list(encode(part)), parts):
            yield from requests


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
