"""A live cluster: polled through its brokers or ZooKeeper, or followed through its metadata log."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from kframe.plugin import ParameterError
from kframe.plugin.columns import Int64
from kframe.plugin.kraft import ClusterMetadata, replay
from kframe.plugin.live import CommittedLog, Difference, GroupedCluster, LiveCluster, LoggedCluster
from kframe.plugin.settings import short_repr
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.differences import differences_between
from kframe_console.sources.listed_bytes import BytesLister, ListDirectories
from kframe_console.sources.reading import EXAMPLES_MAX, ClusterChanges, ClusterSource, Reading
from kframe_console.sources.refresh import Refresher

#: Readings that are retained: the newest, and the one before, which a page may still show.
_RETAINED: Final = 2
#: How long changes are retained, and how many at most.
_CHANGES: Final = timedelta(hours=1)
_CHANGES_MAX: Final = 1_000


class LiveReader(Protocol):
    """Reads a cluster, in one thread."""

    def read(self) -> Snapshot | None:
        """The cluster now; None if nothing has changed since the last call. Raises KframeError."""

    def close(self) -> None:
        """Disconnect."""


@dataclass(slots=True)
class CapturingReader:
    """Reads the whole cluster each time."""

    cluster: LiveCluster
    _digest: str = ""

    def read(self) -> Snapshot | None:
        """See LiveReader."""
        snapshot = self.cluster.capture()
        digest, self._digest = self._digest, snapshot.digest()
        return None if digest == self._digest else snapshot

    def close(self) -> None:
        """See LiveReader."""


@dataclass(slots=True)
class FollowingReader:
    """Reads the whole cluster once, then the new records of its log."""

    cluster: LiveCluster
    log: CommittedLog
    _metadata: ClusterMetadata | None = None
    _base: Snapshot | None = None
    _generation: int = 0
    _epoch: int | None = None

    def read(self) -> Snapshot | None:
        """See LiveReader."""
        if self._metadata is None or self._base is None:
            self._base = self.cluster.capture()
            self._epoch = self._base.controller_epoch
            self.log.open()
            self._generation, self._metadata = self.log.generation, self.log.metadata()
            return self._snapshot(self._base, self._metadata)
        batches = self.log.poll()
        if self.log.generation != self._generation:
            self._generation, self._metadata = self.log.generation, self.log.metadata()
            return self._snapshot(self._base, self._metadata)
        for batch in batches:
            self._epoch = batch.leader_epoch
            for offset, record, _ in batch.records:
                replay(self._metadata, record, offset)
        return self._snapshot(self._base, self._metadata) if any(batch.records for batch in batches) else None

    def close(self) -> None:
        """See LiveReader."""
        if self._metadata is not None:
            self.log.close()

    def _snapshot(self, base: Snapshot, metadata: ClusterMetadata) -> Snapshot:
        return Snapshot.from_metadata(
            metadata,
            source=base.source,
            cluster_id=base.cluster_id,
            controller_id=self.log.leader_id if self.log.leader_id >= 0 else base.controller_id,
            controller_epoch=self._epoch,
            offset=self.log.end - 1,
            voters=None if base.kraft is None else base.kraft.voters,
        )


def reader_of(cluster: LiveCluster) -> LiveReader:
    """The reader that suits a cluster."""
    if isinstance(cluster, LoggedCluster):
        return FollowingReader(cluster, cluster.committed_log())
    return CapturingReader(cluster)


class LiveSource(ClusterSource):
    """A live cluster. The constructor reads it, and raises what the reader raises."""

    is_live = True

    def __init__(
        self,
        name: str,
        reader: LiveReader,
        complete: Callable[[Snapshot], Snapshot],
        interval_s: float,
        groups: GroupedCluster | None = None,
        list_directories: ListDirectories | None = None,
    ) -> None:
        """With ``list_directories``, readings have the bytes of replicas."""
        self.groups = groups
        self.name = name
        self._reader = reader
        self._complete = complete
        self._refresher = Refresher(self.refresh, interval_s)
        self._changes: deque[tuple[datetime, ClusterChanges]] = deque(maxlen=_CHANGES_MAX)
        self._started_at = datetime.now(UTC)
        self._readings: tuple[Reading, ...] = ()
        self._lister = None
        if list_directories is not None:
            self._lister = BytesLister(list_directories, lambda: self._readings[-1].snapshot)
        self.refresh()

    @property
    def problem(self) -> str | None:
        """See ClusterSource."""
        return self._refresher.problem

    def refresh(self) -> None:
        """Read once. It replaces the tuple of readings as a whole, so that no page waits. Raises KframeError."""
        snapshot = self._reader.read()
        now = datetime.now(UTC)
        listed = None if self._lister is None else self._lister.newest
        number = self._readings[-1].number + 1 if self._readings else 1
        if snapshot is None:
            if self._readings and self._readings[-1].listed is listed:  # Still up to date.
                self._readings = (*self._readings[:-1], self._readings[-1].later(now))
            elif self._readings:
                newest = self._readings[-1]
                self._readings = (newest, newest.later(now, number=number, listed=listed))
            return
        snapshot = self._complete(snapshot)
        if self._readings:
            self._changes.append((now, differences_between(now, self._readings[-1].snapshot, snapshot)))
        self._readings = (*self._readings, Reading(number, snapshot, now, listed=listed).prepare())[-_RETAINED:]

    def sizes(self, snapshot: Snapshot) -> Int64 | None:
        """The bytes of a replica of each partition, as brokers listed them last; None if none has."""
        return None if self._lister is None else self._lister.sizes(snapshot)

    def reading(self, position: str) -> Reading:
        """The newest reading, or a retained one by its number. Raises ParameterError."""
        readings = self._readings
        if not position.strip():
            return readings[-1]
        for reading in readings:
            if str(reading.number) == position.strip():
                return reading
        numbers = " or ".join(str(reading.number) for reading in readings)
        raise ParameterError("at", short_repr(position), f"the number of a retained reading: {numbers}")

    def changes(self, reading: Reading) -> ClusterChanges | None:
        """The changes between all readings of the last hour."""
        begin = max(self._started_at, reading.read_at - _CHANGES)
        counts: Counter[str] = Counter()
        examples: list[Difference] = []
        for time, changes in reversed(self._changes.copy()):
            if begin <= time <= reading.read_at:
                counts.update(changes.counts)
                examples += changes.examples[: EXAMPLES_MAX - len(examples)]
        return ClusterChanges(begin.isoformat(timespec="seconds"), dict(sorted(counts.items())), examples)

    def start(self) -> None:
        """See ClusterSource."""
        self._refresher.start()
        if self._lister is not None:
            self._lister.refresher.start()

    def close(self) -> None:
        """See ClusterSource."""
        if self._lister is not None:
            self._lister.refresher.close()
        self._refresher.close()
        self._reader.close()
