"""Call a function in a new Python process with few objects."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_fresh_process(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a module's function in a new process, or raise its error.

    For measurements that call ``sys.getallocatedblocks`` at every function call. That call reads all of Python's
    memory, which takes a thousand times as long after thousands of tests.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()
