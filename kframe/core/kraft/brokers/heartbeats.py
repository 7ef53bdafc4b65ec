"""Soft state of brokers in the active controller: sessions, applied offsets and controlled shutdowns.

Source: Kafka 4.4 ``BrokerHeartbeatManager`` and ``BrokerHeartbeatTracker``. Times are nanoseconds of a monotonic clock
that the caller reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

UNKNOWN_OFFSET: Final = -1
#: Larger than the offset of any record.
OFFSET_MAX: Final = 2**63 - 1


class BrokerControlState(Enum):
    """The states of a broker's process as its heartbeats change them (Kafka ``BrokerControlState``)."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    SHUTDOWN_NOW = "may shut down"


class HeartbeatState(Struct):
    """The state of a broker by its heartbeats. Offsets are UNKNOWN_OFFSET until a heartbeat reports them."""

    fenced: bool
    metadata_offset: int = UNKNOWN_OFFSET
    controlled_shutdown_offset: int = UNKNOWN_OFFSET

    @property
    def state(self) -> BrokerControlState:
        """The current state."""
        if self.controlled_shutdown_offset >= 0:
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.FENCED if self.fenced else BrokerControlState.UNFENCED


class Heartbeats:
    """Soft state of all brokers in the active controller. It is not in the log."""

    def __init__(self, session_timeout_ns: int) -> None:
        self.session_timeout_ns = session_timeout_ns
        self.brokers: dict[int, HeartbeatState] = {}
        self.contact_ns: dict[tuple[int, int], int] = {}
        """Time of the last heartbeat by broker id and broker epoch."""

    @classmethod
    def activated(
        cls, session_timeout_ns: int, registrations: Mapping[int, BrokerRegistration], now_ns: int
    ) -> Heartbeats:
        """The state after a failover: the session of each unfenced broker begins now."""
        heartbeats = cls(session_timeout_ns)
        for broker_id, registration in registrations.items():
            heartbeats.register(broker_id, registration.fenced)
            if not registration.fenced:
                heartbeats.contact_ns[broker_id, registration.broker_epoch] = now_ns
        return heartbeats

    def has_valid_session(self, broker_id: int, broker_epoch: int, now_ns: int) -> bool:
        """Whether a process of the broker has sent a heartbeat within the session timeout."""
        contact_ns = self.contact_ns.get((broker_id, broker_epoch))
        return contact_ns is not None and not self._is_expired(contact_ns, now_ns)

    def expired_sessions(self, now_ns: int) -> list[tuple[int, int]]:
        """Broker ids and epochs of expired sessions, the oldest first."""
        expired = [key for key, contact_ns in self.contact_ns.items() if self._is_expired(contact_ns, now_ns)]
        return sorted(expired, key=lambda key: (self.contact_ns[key], key))

    def _is_expired(self, contact_ns: int, now_ns: int) -> bool:
        return contact_ns + self.session_timeout_ns < now_ns

    def register(self, broker_id: int, fenced: bool) -> None:
        """Record the registration of a broker. Only a change of ``fenced`` preserves its applied offset."""
        broker = self.brokers.setdefault(broker_id, HeartbeatState(fenced))
        self.touch(broker_id, fenced, broker.metadata_offset if broker.fenced != fenced else UNKNOWN_OFFSET)

    def touch(self, broker_id: int, fenced: bool, metadata_offset: int) -> None:
        """Record a heartbeat. A fenced broker is not in controlled shutdown."""
        broker = self.brokers[broker_id]
        broker.fenced, broker.metadata_offset = fenced, metadata_offset
        if fenced:
            broker.controlled_shutdown_offset = UNKNOWN_OFFSET

    def fence(self, broker_id: int) -> None:
        """Mark a broker as fenced after its session has expired."""
        self.brokers[broker_id].fenced = True

    def begin_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Record the offset at which a controlled shutdown began, if it has none yet."""
        broker = self.brokers[broker_id]
        if broker.controlled_shutdown_offset < 0:
            broker.controlled_shutdown_offset = offset

    def lowest_active_offset(self) -> int:
        """The lowest offset that an unfenced broker outside of controlled shutdown has applied, or OFFSET_MAX."""
        active = [
            broker.metadata_offset for broker in self.brokers.values() if broker.state is BrokerControlState.UNFENCED
        ]
        return min(active, default=OFFSET_MAX)

    def next_state(
        self,
        broker_id: int,
        *,
        want_fence: bool,
        want_shut_down: bool,
        is_caught_up: bool,
        has_leaderships: Callable[[], bool],
    ) -> BrokerControlState:
        """The state after a heartbeat (Kafka ``BrokerHeartbeatManager.calculateNextBrokerState``)."""
        broker = self.brokers[broker_id]
        if broker.state is BrokerControlState.FENCED:
            if want_shut_down:
                return BrokerControlState.SHUTDOWN_NOW
            return BrokerControlState.UNFENCED if is_caught_up and not want_fence else BrokerControlState.FENCED
        if broker.state is BrokerControlState.UNFENCED:
            if want_fence:
                return BrokerControlState.SHUTDOWN_NOW if want_shut_down else BrokerControlState.FENCED
            if not want_shut_down:
                return BrokerControlState.UNFENCED
            return BrokerControlState.CONTROLLED_SHUTDOWN if has_leaderships() else BrokerControlState.SHUTDOWN_NOW
        if has_leaderships() or broker.controlled_shutdown_offset > self.lowest_active_offset():
            return BrokerControlState.CONTROLLED_SHUTDOWN
        return BrokerControlState.SHUTDOWN_NOW

    def replay(self, metadata: ClusterMetadata, record: MetadataRecord) -> None:
        """Follow the registration that ``record`` has written to ``metadata`` or removed from it."""
        if isinstance(record, RegisterBrokerRecord | UnregisterBrokerRecord):
            self.brokers.pop(record.broker_id, None)
        if isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord):
            self.register(record.broker_id, metadata.brokers.registrations[record.broker_id].fenced)
        elif isinstance(record, FenceBrokerRecord | UnfenceBrokerRecord):
            self.register(record.id, metadata.brokers.registrations[record.id].fenced)
