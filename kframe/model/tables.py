"""Topics as storage describes them: names, ids and assignments of many at once, in columns. Brokers are ids."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.model.columns import Int32, Ragged, ragged_positions


@dataclass(frozen=True, slots=True, eq=False)
class TopicTable:
    """``t`` topics. ``replicas``, ``adding`` and ``removing`` have a list a partition, topic by topic, partitions
    ``0 .. partition_counts[i] - 1`` in order; they hold broker ids."""

    names: tuple[str, ...]
    topic_ids: tuple[bytes | None, ...]
    partition_counts: Int32
    replicas: Ragged
    adding: Ragged
    removing: Ragged

    def __len__(self) -> int:
        return len(self.names)

    @staticmethod
    def of(names: tuple[str, ...], assignments: list[list[tuple[int, ...]]]) -> TopicTable:
        """Topics without ids whose partitions have these replicas; for small things."""
        counts = np.array([len(one) for one in assignments], np.int32)
        replicas = Ragged.of([replicas for one in assignments for replicas in one])
        none = Ragged.empty(int(counts.sum()))
        return TopicTable(names, (None,) * len(names), counts, replicas, none, none)

    def part(self, chosen: Int32) -> TopicTable:
        """The topics numbered ``chosen``."""
        starts = np.cumsum(self.partition_counts) - self.partition_counts
        counts = self.partition_counts[chosen]
        rows = ragged_positions(starts[chosen], counts)
        return TopicTable(
            tuple(self.names[i] for i in chosen), tuple(self.topic_ids[i] for i in chosen), counts,
            self.replicas.take(rows), self.adding.take(rows), self.removing.take(rows),
        )  # fmt: skip
