"""Limit the rate of connections whose clients do not log in, by address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Connections a second of each address; 0 for no limit.
RATE_KEY: Final = "kframe.unauthenticated.connection.rate"
RATE_DEFAULT: Final = 100
#: Seconds whose connections may come at once, as when all clients behind an address restart.
BURST_S: Final = 10
_BUCKETS_BEFORE_SWEEP: Final = 1_000


@dataclass(slots=True)
class _Tokens:
    count: float
    refilled_s: float


class ConnectionRate:
    """A token bucket for each address. Not thread-safe.

    A connection takes a token. A login returns it, so that only connections without a login count.
    """

    def __init__(self, per_second: int, now_s: Callable[[], float]) -> None:
        """``now_s`` is a monotonic clock in seconds."""
        self._per_second = per_second
        self._capacity = float(per_second * BURST_S)
        self._now_s = now_s
        self._buckets: dict[str, _Tokens] = {}
        self._sweep_size = _BUCKETS_BEFORE_SWEEP

    def __len__(self) -> int:
        """The number of addresses that are remembered."""
        return len(self._buckets)

    def take(self, address: str) -> bool:
        """Whether another connection of the address is accepted."""
        if not self._per_second:
            return True
        now_s = self._now_s()
        tokens = self._buckets.get(address)
        if tokens is None:
            self._sweep(now_s)
            tokens = self._buckets[address] = _Tokens(self._capacity, now_s)
        self._refill(tokens, now_s)
        if tokens.count < 1:
            return False
        tokens.count -= 1
        return True

    def give_back(self, address: str) -> None:
        """Return the token of a connection whose client has logged in."""
        tokens = self._buckets.get(address)
        if tokens is not None:
            tokens.count = min(self._capacity, tokens.count + 1)

    def _refill(self, tokens: _Tokens, now_s: float) -> None:
        tokens.count = min(self._capacity, tokens.count + (now_s - tokens.refilled_s) * self._per_second)
        tokens.refilled_s = now_s

    def _sweep(self, now_s: float) -> None:
        """Forget the addresses with all their tokens, each time the number of addresses has doubled."""
        if len(self._buckets) < self._sweep_size:
            return
        for tokens in self._buckets.values():
            self._refill(tokens, now_s)
        self._buckets = {address: tokens for address, tokens in self._buckets.items() if tokens.count < self._capacity}
        self._sweep_size = max(_BUCKETS_BEFORE_SWEEP, 2 * len(self._buckets))
