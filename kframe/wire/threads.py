"""Encode a large batch by several threads: the kernels do not hold Python's global lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from kframe.wire.request import EncodedRequest
from kframe.wire.sections import Lists

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_Part = TypeVar("_Part")

#: The fewest rows that a thread gets. Measured: threads encode 10,000 distant rows no faster than the calling thread
#: alone, and 1,000,000 rows in two thirds of its time.
BLOCK_ROWS: Final = 2**15
#: About the largest number of rows of a part of the lists, so that threads end at about the same time.
PART_ROWS: Final = 2**18


def by_threads(lists: Lists, encode: Callable[[Lists], Iterator[EncodedRequest]]) -> Iterator[EncodedRequest]:
    """The requests that ``encode`` makes of all lists, in their order.

    There are as many threads as processors, and each encodes some consecutive lists at a time. The calling thread
    encodes a small batch itself. ``encode`` must not call functions of this module.
    """
    if not _is_shared(len(lists.rows)):
        return encode(lists)
    return _by_parts(lists, encode)


def row_blocks(rows: int) -> list[slice]:
    """Blocks that cover numbers from 0 to ``rows``: as many as processors, or a single block of few rows."""
    if not _is_shared(rows):
        return [slice(0, rows)]
    bounds = np.linspace(0, rows, _processors() + 1).astype(int).tolist()
    return list(map(slice, bounds[:-1], bounds[1:]))


def map_by_threads(work: Callable[[_Part], int], parts: Sequence[_Part]) -> list[int]:
    """What ``work`` returns for each part, such as the ``row_blocks``. Threads share several parts.

    ``work`` must not call functions of this module.
    """
    return list(map(work, parts) if len(parts) == 1 else _pool().map(work, parts))


def _by_parts(lists: Lists, encode: Callable[[Lists], Iterator[EncodedRequest]]) -> Iterator[EncodedRequest]:
    """``by_threads`` for lists that threads share."""
    size = min(PART_ROWS, -(-len(lists.rows) // _processors()))
    ends = np.searchsorted(lists.offsets, np.arange(size, len(lists.rows), size))
    bounds = np.unique(np.concatenate([[0], ends, [len(lists.offsets) - 1]])).tolist()
    parts = [lists.part(first, end) for first, end in pairwise(bounds)]
    for requests in _pool().map(lambda part: list(encode(part)), parts):
        yield from requests


def _is_shared(rows: int) -> bool:
    return rows >= 2 * BLOCK_ROWS and _processors() > 1


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of this process, idle between batches."""
    from concurrent.futures import ThreadPoolExecutor  # Most processes never have such a batch.

    return ThreadPoolExecutor(_processors(), "kframe-encoder")


def _processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_pool.cache_clear)  # A child has none of these threads.
