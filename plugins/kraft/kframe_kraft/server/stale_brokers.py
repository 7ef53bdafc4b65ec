"""The check that ends the sessions of brokers, and what it does after this process was frozen."""

from __future__ import annotations

from typing import Final

from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import KraftContext, broker_events

#: Checks within a session. Kafka's controller makes eight, so that a failure counts a sixteenth of the session later.
_CHECKS: Final = 100


class StaleBrokerCheck:
    """Fences a broker whose session has expired.

    A check that comes late by half a session was held up with the whole process, so that no heartbeat could arrive. All
    sessions then last longer by that time. Kafka's controller fences all brokers, or has been replaced.
    """

    def __init__(self, session_timeout_ns: int) -> None:
        self.period_ms = max(session_timeout_ns // (_CHECKS * 1_000_000), 1)
        self._late_ns = session_timeout_ns // 2
        self._last_ns: int | None = None

    def check(self, context: KraftContext) -> ControllerResult[bool]:
        """Fence the broker whose session expired first; the response is whether there may be another."""
        now_ns, sessions = context.now_ns, context.heartbeats.contact_ns
        pause_ns = 0 if self._last_ns is None else now_ns - self._last_ns
        self._last_ns = now_ns
        if pause_ns > self._late_ns:
            for session, contact_ns in sessions.items():
                sessions[session] = min(contact_ns + pause_ns, now_ns)
        return broker_events.fence_stale_broker(context)
