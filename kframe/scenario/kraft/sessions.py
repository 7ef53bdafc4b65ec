"""Sessions that expire in Kafka's order, the order of a Java ``ConcurrentHashMap`` of broker ids and epochs.

Buckets of more than eight entries in a table of 64 or more are trees in Java. Their order is not modelled.
"""

from __future__ import annotations

from typing import TypeAlias

from kframe.core.kraft.brokers.heartbeats import Heartbeats

#: Broker id and broker epoch.
Session: TypeAlias = tuple[int, int]
#: Capacity of an empty table (Java ``ConcurrentHashMap.DEFAULT_CAPACITY``).
DEFAULT_CAPACITY = 16
#: A table smaller than MIN_TREEIFY_CAPACITY grows when a bucket has TREEIFY_THRESHOLD entries.
TREEIFY_THRESHOLD, MIN_TREEIFY_CAPACITY = 8, 64


class JavaHeartbeats(Heartbeats):
    """Heartbeats in the iteration order of Kafka's ``BrokerHeartbeatTracker``, which uses a hash table."""

    def __init__(self, session_timeout_ns: int) -> None:
        super().__init__(session_timeout_ns)
        self.contact_ns: JavaTable = JavaTable()

    def expired_sessions(self, now_ns: int) -> list[Session]:
        """Expired sessions in the order of the table."""
        expired = set(super().expired_sessions(now_ns))
        return [session for session in self.contact_ns.in_order() if session in expired]


class JavaTable(dict[Session, int]):
    """A dict that also has the iteration order of Java's table after the same insertions and removals."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: list[list[Session]] = [[] for _ in range(DEFAULT_CAPACITY)]

    def __setitem__(self, session: Session, contact_ns: int) -> None:
        bucket = self.bucket(session)
        if session in self:
            entries_before = bucket.index(session) + 1
        else:
            entries_before = len(bucket)
            bucket.append(session)
        super().__setitem__(session, contact_ns)
        if entries_before >= TREEIFY_THRESHOLD and len(self._buckets) < MIN_TREEIFY_CAPACITY:
            self._grow_to(2 ** (3 * len(self._buckets)).bit_length())
        self._grow_to(len(self) + 1)

    def __delitem__(self, session: Session) -> None:
        super().__delitem__(session)
        self.bucket(session).remove(session)

    def bucket(self, session: Session) -> list[Session]:
        """The sessions that share a bucket."""
        return self._buckets[hash_of(session) & (len(self._buckets) - 1)]

    def in_order(self) -> list[Session]:
        """All sessions in the order of iteration."""
        return [session for bucket in self._buckets for session in bucket]

    def _grow_to(self, entries: int) -> None:
        """Grow until the table may hold so many entries."""
        while len(self._buckets) * 3 // 4 < entries:
            self._grow()

    def _grow(self) -> None:
        """Double the buckets. The last run of each half keeps its order, and earlier entries are prepended."""
        size = len(self._buckets)
        grown: list[list[Session]] = [[] for _ in range(2 * size)]
        for index, bucket in enumerate(self._buckets):
            run = 0
            for position in range(1, len(bucket)):
                if (hash_of(bucket[position]) ^ hash_of(bucket[run])) & size:
                    run = position
            halves: tuple[list[Session], list[Session]] = [], []
            if bucket:
                halves[bool(hash_of(bucket[run]) & size)].extend(bucket[run:])
            for session in bucket[:run]:
                halves[bool(hash_of(session) & size)].insert(0, session)
            grown[index], grown[index + size] = halves
        self._buckets = grown


def hash_of(session: Session) -> int:
    """Java's spread hash of the record of a session."""
    broker_id, epoch = session
    code = (31 * broker_id + (epoch ^ epoch >> 32)) & 0xFFFFFFFF
    return code ^ code >> 16
