"""A call in a Python of its own, which holds little."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_fresh_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a module's function answers, or raises, in a new process.

    For measures that ask ``sys.getallocatedblocks`` at every call: it goes through all memory that Python holds, which
    after thousands of tests takes it a thousand times as long.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()
