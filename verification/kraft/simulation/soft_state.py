"""What the active controller knows beside the log: a plain model of Kafka 4.4's ``BrokerHeartbeatManager``.

Each process of the controller begins with that of ``activate``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kframe.plugin.kraft import records


@dataclass(slots=True)
class BrokerMemory:
    """What the heartbeats of a broker have said. -1: nothing yet, or no controlled shutdown."""

    fenced: bool
    applied: int = -1
    shutdown_offset: int = -1

    @property
    def is_stopping(self) -> bool:
        """Whether the broker is in controlled shutdown."""
        return self.shutdown_offset >= 0


@dataclass(slots=True)
class SoftState:
    """Times are nanoseconds. ``now_ns`` is the time of the decision that is compared, ``draws`` are the random numbers
    drawn for it, with their bounds."""

    session_ns: int = 0
    now_ns: int = 0
    brokers: dict[int, BrokerMemory] = field(default_factory=dict)
    contacts: dict[tuple[int, int], int] = field(default_factory=dict)
    """The last contact of a session: a broker id and a broker epoch."""
    registered: dict[int, int] = field(default_factory=dict)
    """The offset of the record of each registration."""
    draws: list[tuple[int, int]] = field(default_factory=list)
    checked_ns: int | None = None
    """When sessions were checked last."""

    def activate(self, epochs: Mapping[int, int], snapshot_end: int) -> None:
        """Begin a process whose log opens with a snapshot. The registrations have ``epochs``: those of brokers that are
        not fenced begin a session. A registration of the snapshot counts as one at its last offset."""
        self.brokers = {broker_id: BrokerMemory(memory.fenced) for broker_id, memory in self.brokers.items()}
        self.contacts = {
            (broker_id, epochs[broker_id]): self.now_ns
            for broker_id, memory in self.brokers.items()
            if not memory.fenced
        }
        self.registered = {
            broker_id: snapshot_end - 1 if offset < snapshot_end else offset
            for broker_id, offset in self.registered.items()
        }

    def follow(self, record: records.MetadataRecord, offset: int) -> None:
        """Follow a record of the log."""
        match record:
            case records.RegisterBrokerRecord():
                self.registered[record.broker_id] = offset
                self.brokers[record.broker_id] = BrokerMemory(record.fenced)
            case records.UnregisterBrokerRecord():
                self.brokers.pop(record.broker_id, None)
            case records.BrokerRegistrationChangeRecord():
                fenced = self.brokers[record.broker_id].fenced
                if record.fenced != records.FencingChange.NONE:
                    fenced = record.fenced == records.FencingChange.FENCE
                self.register(record.broker_id, fenced=fenced)

    def register(self, broker_id: int, *, fenced: bool) -> None:
        """Note a registration: what the broker has applied is unknown, unless ``fenced`` changes."""
        memory = self.brokers.setdefault(broker_id, BrokerMemory(fenced))
        self.touch(broker_id, fenced=fenced, applied=-1 if memory.fenced == fenced else memory.applied)

    def touch(self, broker_id: int, *, fenced: bool, applied: int) -> None:
        """Note a state. A fenced broker is not in controlled shutdown."""
        memory = self.brokers[broker_id]
        memory.fenced, memory.applied = fenced, applied
        if fenced:
            memory.shutdown_offset = -1

    def is_expired(self, session: tuple[int, int]) -> bool:
        """Whether a session has ended, or never began."""
        return session not in self.contacts or self.contacts[session] + self.session_ns < self.now_ns

    def lowest_applied(self) -> int | None:
        """The lowest offset that an active broker has applied. None without such a broker."""
        active = [memory.applied for memory in self.brokers.values() if not memory.fenced and not memory.is_stopping]
        return min(active, default=None)

    def after_pause(self) -> None:
        """A check of sessions begins. kframe prolongs all of them after a pause of more than half a session, in which
        the process did not run."""
        pause_ns = 0 if self.checked_ns is None else self.now_ns - self.checked_ns
        self.checked_ns = self.now_ns
        if 2 * pause_ns > self.session_ns:
            self.contacts = {session: min(at + pause_ns, self.now_ns) for session, at in self.contacts.items()}
