"""The bytes of replicas as the brokers of a live cluster list them, requested by a separate thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias

from kframe.plugin import StoreError
from kframe.plugin.admin import LogDirectory
from kframe.plugin.columns import Int64
from kframe.plugin.plans import ReplicaSizes
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.refresh import Refresher

#: Least seconds between two requests to the brokers: their responses take at most 5 % of the CPU time.
LISTING_S: Final = 60.0
_PAUSE_FACTOR: Final = 20.0

#: Lists the log directories of brokers, without brokers that do not respond. Raises StoreError if none responds.
ListDirectories: TypeAlias = Callable[[Collection[int]], Mapping[int, Sequence[LogDirectory]]]


@dataclass(frozen=True, slots=True, eq=False)
class ListedBytes:
    """The bytes that brokers listed at ``time``: of all replicas of each broker, and of the largest of each partition.

    Future logs do not count.
    """

    time: datetime
    by_broker: Mapping[int, int]
    sizes: ReplicaSizes

    @staticmethod
    def of(listed: Mapping[int, Sequence[LogDirectory]], time: datetime) -> ListedBytes:
        """The bytes in the log directories of brokers."""
        by_broker = {
            broker_id: sum(log.bytes for directory in directories for log in directory.logs if not log.is_future)
            for broker_id, directories in listed.items()
        }
        return ListedBytes(time, by_broker, ReplicaSizes.of_directories(listed, "log directories"))

    def problem(self, snapshot: Snapshot) -> str | None:
        """Which brokers of a snapshot have unknown bytes; None if all are known."""
        unknown = [broker.broker_id for broker in snapshot.brokers if broker.broker_id not in self.by_broker]
        if not unknown:
            return None
        names = f"broker{'s' if len(unknown) > 1 else ''} {', '.join(map(str, unknown))}"
        return (
            f"unknown for {names}: no response to DescribeLogDirs at {self.time.isoformat(timespec='seconds')}. Plans "
            "count partitions of which no replica is known as 0 bytes."
        )


class BytesLister:
    """Lists the log directories of the live brokers from ``start`` on, at most every LISTING_S seconds.

    ``newest`` is the last result that differs from the one before; None until the first.
    """

    def __init__(self, list_directories: ListDirectories, snapshot: Callable[[], Snapshot]) -> None:
        """``snapshot`` returns the cluster with the live brokers."""
        self.newest: ListedBytes | None = None
        self._list_directories = list_directories
        self._snapshot = snapshot
        self.refresher: Final = Refresher(self.refresh, LISTING_S, first_pause_s=0.0, pause_factor=_PAUSE_FACTOR)

    def refresh(self) -> None:
        """List once. A broker that does not respond has no bytes."""
        try:
            listed = self._list_directories(live_brokers(self._snapshot()))
        except StoreError:
            listed = {}
        result = ListedBytes.of(listed, datetime.now(UTC))
        if self.newest is None or self.newest.by_broker != result.by_broker:
            self.newest = result

    def sizes(self, snapshot: Snapshot) -> Int64 | None:
        """The bytes of a replica of each partition, 0 where no broker knows them; None if no broker has responded."""
        newest = self.newest
        return newest.sizes.weights(snapshot, absent=0) if newest is not None and newest.by_broker else None


def live_brokers(snapshot: Snapshot) -> list[int]:
    """The ids of the brokers that are registered and not fenced."""
    return [
        broker.broker_id
        for broker in snapshot.brokers
        if broker.registered is not False and (broker.registration is None or not broker.registration.fenced)
    ]
