"""The consumer groups of a live cluster. A cluster of a plugin offers them if its brokers can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from kframe.ports.progress import Progress, ignore_progress


class GroupPartition(NamedTuple):
    """A partition from which a consumer group reads: it has committed an offset, or a member has the partition."""

    group: str
    state: str
    members: int
    """The members of the group."""
    partition: int
    committed: int | None
    """The committed offset; None without one."""
    end: int | None
    """The end offset of the partition; None if its leader does not say."""
    client: str | None
    """Client id and host of the member that has the partition."""

    @property
    def lag(self) -> int | None:
        """The records that the group has not read; None if an offset is unknown."""
        return None if self.committed is None or self.end is None else max(self.end - self.committed, 0)


class TopicGroups(NamedTuple):
    """The consumer groups of a topic by group and partition, and why some may be missing."""

    partitions: Sequence[GroupPartition]
    problems: Sequence[str] = ()


@runtime_checkable
class GroupedCluster(Protocol):
    """A live cluster that knows its consumer groups."""

    def topic_groups(self, topic: str, progress: Progress = ignore_progress) -> TopicGroups:
        """The groups that read a topic. Raises StoreError where no broker can be reached."""
