"""The partitions whose stored state a what-if changed, in columns: before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from kframe.model.arrays import Bool, Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.columns import Partitions
from kframe.model.ids import NO_LEADER
from kframe.model.kraft.columns import KraftPartitions
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.lists import same_lists
from kframe.whatif.results.health import ClusterHealth
from kframe.whatif.results.saved_rows import SavedRows, take_rows

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns that only a KRaft cluster has.
ELR_LISTS: Final = ("elr_before", "elr_after", "last_known_elr_before", "last_known_elr_after")
#: Rows that are turned into Python objects at a time.
CHUNK_ROWS: Final = 4096


class ChangedPartition(Struct):
    """A partition whose state or assignment changes; leader -1 is none, null is unknown."""

    topic: str
    partition: int
    leader_before: int
    leader_after: int
    leader_epoch_before: int | None
    leader_epoch_after: int | None
    partition_epoch_before: int | None
    partition_epoch_after: int | None
    went_offline: bool
    came_online: bool
    unclean: bool
    isr_before: list[int]
    isr_after: list[int]
    replicas_before: list[int]
    replicas_after: list[int]
    elr_before: list[int] | UnsetType = UNSET
    elr_after: list[int] | UnsetType = UNSET
    last_known_elr_before: list[int] | UnsetType = UNSET
    last_known_elr_after: list[int] | UnsetType = UNSET


@dataclass(frozen=True, slots=True, eq=False)
class PartitionChanges:
    """``k`` changed partitions, ascending by topic and partition. Brokers are ids, -1 is no leader.

    A new partition has no replicas and no leader before, one of a deleted topic none after.
    ``topic`` is an index into ``topic_names``. The epochs are None where the snapshot lacks them: what they were raised
    to is not known then. ``unclean`` marks those that got a leader from outside the ISR.
    """

    topic_names: Sequence[str]
    rows: Int32
    topic: Int32
    partition: Int32
    leader_before: Int32
    leader_after: Int32
    leader_epoch_before: Int32 | None
    leader_epoch_after: Int32 | None
    isr_before: Ragged
    isr_after: Ragged
    partition_epoch_before: Int32 | None
    partition_epoch_after: Int32 | None
    went_offline: Bool
    came_online: Bool
    unclean: Bool
    replicas_before: Ragged
    replicas_after: Ragged
    elr_before: Ragged | None = None
    """The eligible leader replicas; None in ZooKeeper mode."""
    elr_after: Ragged | None = None
    last_known_elr_before: Ragged | None = None
    last_known_elr_after: Ragged | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def lists(self) -> dict[str, Ragged]:
        """The columns of lists by name; those of ELRs only in KRaft mode."""
        names = ("isr_before", "isr_after", "replicas_before", "replicas_after", *ELR_LISTS)
        return {name: lists for name in names if (lists := getattr(self, name)) is not None}

    @property
    def moved(self) -> Bool:
        """(k,) led before and after, by different brokers."""
        led = (self.leader_before >= 0) & (self.leader_after >= 0)
        return np.asarray(led & (self.leader_before != self.leader_after), np.bool_)

    def to_arrow(self) -> pa.Table:
        """The changes as an Arrow table, a row each. Epochs that are not known are null."""
        import pyarrow as pa

        return pa.table(
            {
                "topic": pa.array(list(self.topic_names), pa.string()).take(pa.array(self.topic)),
                "partition": pa.array(self.partition),
                "leader_before": pa.array(self.leader_before),
                "leader_after": pa.array(self.leader_after),
                **{name: _lists(lists) for name, lists in self.lists().items()},
                "leader_epoch_before": _known(self.leader_epoch_before, len(self)),
                "leader_epoch_after": _known(self.leader_epoch_after, len(self)),
                "partition_epoch_before": _known(self.partition_epoch_before, len(self)),
                "partition_epoch_after": _known(self.partition_epoch_after, len(self)),
                "went_offline": pa.array(self.went_offline),
                "came_online": pa.array(self.came_online),
                "unclean": pa.array(self.unclean),
            }
        )

    def records(self, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """The changes as objects for people and files. With a ``limit`` those that went offline are first."""
        order = np.arange(len(self))
        if limit is not None:
            order = np.argsort(~self.went_offline, kind="stable")[:limit]
        for first in range(0, len(order), CHUNK_ROWS):
            yield from self._chunk(order[first : first + CHUNK_ROWS])

    def _chunk(self, positions: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[dict[str, Any]]:
        lists = {name: lists.take(positions) for name, lists in self.lists().items()}
        numbers = {
            name: None if (column := getattr(self, name)) is None else column[positions].tolist()
            for name in (
                "partition",
                "leader_before",
                "leader_after",
                "leader_epoch_before",
                "leader_epoch_after",
                "partition_epoch_before",
                "partition_epoch_after",
                "went_offline",
                "came_online",
                "unclean",
            )
        }
        for i, topic in enumerate(self.topic[positions].tolist()):
            yield {
                "topic": self.topic_names[topic],
                **{name: None if column is None else column[i] for name, column in numbers.items()},
                **{name: values[i].tolist() for name, values in lists.items()},
            }


def changes_between(
    saved: SavedRows[Any],
    cluster: ClusterState | ClusterMetadata,
    healths: tuple[ClusterHealth, ClusterHealth],
    unclean: Sequence[Int32],
    known: tuple[bool, bool],
) -> PartitionChanges:
    """Compare the saved rows with those of ``cluster``, in either mode. Every change of a state raises its version.

    ``healths`` are those of both times, and ``unclean`` the rows elected so. ``known`` says whether the snapshot has
    leader epochs and partition epochs.
    """
    after, ids = cluster.partitions, np.append(cluster.brokers.ids, np.int32(NO_LEADER))
    rows, before = _changed_rows(saved, after)
    all_positions = np.arange(len(rows))
    elected_unclean = np.zeros(len(after), np.bool_)
    for elected_rows in unclean:
        elected_unclean[elected_rows] = True
    epochs, versions = known
    health_before, health_after = healths
    was_offline = np.append(health_before.offline, np.zeros(len(after) - len(health_before.offline), np.bool_))[rows]
    is_offline = health_after.offline[rows]
    exists = after.topic[rows] >= 0
    lists: dict[str, Any] = {"isr": "isr", "replicas": "replica"}
    if isinstance(after, KraftPartitions):
        lists |= {"elr": "elr", "last_known_elr": "last_known_elr"}
    return PartitionChanges(
        topic_names=cluster.topics.names,
        rows=rows,
        topic=np.where(exists, after.topic[rows], before.topic),
        partition=np.where(exists, after.partition[rows], before.partition),
        leader_before=ids[before.leader],
        leader_after=ids[after.leader[rows]],
        leader_epoch_before=before.leader_epoch if epochs else None,
        leader_epoch_after=after.leader_epoch[rows] if epochs else None,
        partition_epoch_before=before.partition_epoch if versions else None,
        partition_epoch_after=after.partition_epoch[rows] if versions else None,
        went_offline=is_offline & ~was_offline,
        came_online=was_offline & ~is_offline & health_after.counted[rows],
        unclean=elected_unclean[rows],
        **{
            f"{name}_{when}": _as_ids(partitions.lists(column, positions), ids)
            for name, column in lists.items()
            for when, partitions, positions in (("before", before, all_positions), ("after", after, rows))
        },
    )


def _changed_rows(saved: SavedRows[Any], after: Partitions | KraftPartitions) -> tuple[Int32, Any]:
    """The saved rows that differ now and the new ones, ascending, and a table of them as they were."""
    rows, before = saved.before()
    changed = (before.partition_epoch != after.partition_epoch[rows]) | (before.topic != after.topic[rows])
    changed |= ~same_lists(before.lists("replica", np.arange(len(rows))), after.lists("replica", rows))
    table = take_rows(before, np.flatnonzero(changed))
    new = np.arange(saved.existing, len(after), dtype=np.int32)
    first_row, first_slot = table.grow(len(new), 0)
    table.topic[first_row:], table.partition[first_row:] = after.topic[new], after.partition[new]
    table.slot_start[first_row:] = first_slot
    return np.concatenate([rows[changed], new]), table


def _as_ids(lists: Ragged, ids: Int32) -> Ragged:
    return Ragged(lists.offsets, ids[lists.values])


def _lists(lists: Ragged) -> pa.Array:
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(lists.offsets), pa.array(lists.values))


def _known(column: Int32 | None, count: int) -> pa.Array:
    import pyarrow as pa

    return pa.nulls(count, pa.int32()) if column is None else pa.array(column.astype(np.int32, copy=False))
