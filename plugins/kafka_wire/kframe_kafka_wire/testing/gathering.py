"""Collect the records that a member of a group reads, each record once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kframe_zookeeper.testing.process import until

#: Partition and offset.
RecordPosition = tuple[int, int]


def gathered(
    count: int, more: Callable[[bool], Mapping[RecordPosition, str]], commit: Callable[[Mapping[int, int]], bool]
) -> list[str]:
    """The next ``count`` values, whose offsets are committed; fewer after a timeout.

    ``more`` receives whether records are missing, and returns new ones. ``commit`` receives offsets by partition, and
    returns its success. It fails after the group has rebalanced, and the same records are read again.
    """
    texts: dict[RecordPosition, str] = {}

    def done() -> bool:
        texts.update(more(len(texts) < count))
        behind: dict[int, int] = {}
        for partition, offset in texts:
            behind[partition] = max(behind.get(partition, 0), offset + 1)
        return len(texts) >= count and commit(behind)

    until(done)
    return list(texts.values())
