"""What a member of a group reads until it has enough: each record once, however often it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kframe_zookeeper.testing.process import until

PATIENCE_S: Final = 120.0
#: Partition and offset.
Place = tuple[int, int]


def gathered(
    count: int, more: Callable[[bool], Mapping[Place, str]], commit: Callable[[Mapping[int, int]], bool]
) -> list[str]:
    """So many values, with the group's place committed behind them; fewer only when patience ends.

    ``more`` hears whether any lack, and has what has come; ``commit`` is told offsets by partition, and whether it has
    done so is what it returns: a group that was joined again meanwhile refuses, and gives the same records once more.
    """
    texts: dict[Place, str] = {}

    def done() -> bool:
        texts.update(more(len(texts) < count))
        behind: dict[int, int] = {}
        for partition, offset in texts:
            behind[partition] = max(behind.get(partition, 0), offset + 1)
        return len(texts) >= count and commit(behind)

    until(done, PATIENCE_S)
    return list(texts.values())
