"""Sessions of browsers, in memory and bounded in number, and failed logins by address."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

#: Logins that have begun and are not complete, and how long one may take.
PENDING_MAX: Final = 500
PENDING_S: Final = 600.0
#: How long a session lasts without a request, and in total.
IDLE_S: Final = 3_600.0
TOTAL_S: Final = 12 * 3_600.0
#: Failed logins of an address within a minute that block it, and most addresses that are counted.
FAILURES_MAX: Final = 10
_FAILURES_S: Final = 60.0
_ADDRESSES_MAX: Final = 10_000


@dataclass(slots=True)
class BrowserSession:
    """The session of a browser. ``user`` is empty until its login is complete."""

    key: str
    began_s: float
    used_s: float
    user: str = ""
    data: dict[str, Any] = field(default_factory=dict)


class Sessions:
    """Sessions by their secret keys. Logins that have only begun never displace complete ones."""

    def __init__(self, sessions_max: int = 1_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._sessions_max = sessions_max
        self._clock = clock
        self._pending: OrderedDict[str, BrowserSession] = OrderedDict()
        self._complete: OrderedDict[str, BrowserSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pending) + len(self._complete)

    def begin(self) -> BrowserSession:
        """A new session without a user. The oldest of these is dropped beyond PENDING_MAX."""
        now = self._clock()
        session = BrowserSession(secrets.token_urlsafe(32), now, now)
        self._pending[session.key] = session
        if len(self._pending) > PENDING_MAX:
            self._pending.popitem(last=False)
        return session

    def pending(self, key: str) -> BrowserSession | None:
        """The session of a login that has begun."""
        session = self._pending.get(key)
        return None if session is None or self._clock() - session.began_s > PENDING_S else session

    def complete(self, session: BrowserSession, user: str) -> BrowserSession:
        """The session of a user who has logged in, under a new key, against session fixation."""
        self._pending.pop(session.key, None)
        now = self._clock()
        completed = BrowserSession(secrets.token_urlsafe(32), now, now, user)
        self._complete[completed.key] = completed
        if len(self._complete) > self._sessions_max:
            self._complete.popitem(last=False)
        return completed

    def find(self, key: str) -> BrowserSession | None:
        """The session of a user; None if it has ended."""
        session = self._complete.get(key)
        if session is None:
            return None
        now = self._clock()
        if now - session.used_s > IDLE_S or now - session.began_s > TOTAL_S:
            del self._complete[key]
            return None
        session.used_s = now
        self._complete.move_to_end(key)
        return session


class FailedLogins:
    """Counts failed logins by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def is_blocked(self, address: str) -> bool:
        """Whether the address has failed too often within a minute."""
        began_s, count = self._counts.get(address, (0.0, 0))
        return count >= FAILURES_MAX and self._clock() - began_s < _FAILURES_S

    def add(self, address: str) -> None:
        """Count a failed login."""
        now = self._clock()
        began_s, count = self._counts.pop(address, (now, 0))
        self._counts[address] = (began_s, count + 1) if now - began_s < _FAILURES_S else (now, 1)
        if len(self._counts) > _ADDRESSES_MAX:
            self._counts.popitem(last=False)
