"""Results that pages share, within a bound of bytes. The least recently used ones are dropped first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock
from typing import Any, Final, TypeVar

Value = TypeVar("Value")
#: Bytes of an entry besides its key and result.
_ENTRY_BYTES: Final = 1_000


class ResultCache:
    """Results by key. Each is made once: other threads wait while a thread makes it."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = Lock()
        self._results: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._pending: dict[Hashable, Future[Any]] = {}
        self._nbytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all results, as their makers stated them, and of their keys."""
        return self._nbytes

    def get(self, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """The result of ``key``. ``make`` makes it if there is none; ``size`` states its bytes.

        Raises what ``make`` raises, in each thread that waits; the next call tries again.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                result: Value = self._results[key][0]
                return result
            pending = self._pending.get(key)
            if pending is None:
                future: Future[Any] = Future()
                self._pending[key] = future
        if pending is not None:
            shared: Value = pending.result()
            return shared
        try:
            value = make()
        except BaseException as problem:
            with self._lock:
                del self._pending[key]
            future.set_exception(problem)
            raise
        self._store(key, value, size(value))
        future.set_result(value)
        return value

    def _store(self, key: Hashable, value: Any, nbytes: int) -> None:
        nbytes += _ENTRY_BYTES + len(repr(key))  # Keys are from clients; results of no bytes are not free.
        with self._lock:
            del self._pending[key]
            if nbytes > self._bytes_max:
                return
            self._results[key] = (value, nbytes)
            self._nbytes += nbytes
            while self._nbytes > self._bytes_max:
                _, (_, dropped) = self._results.popitem(last=False)
                self._nbytes -= dropped
