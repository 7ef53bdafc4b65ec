"""Keep Confluent's observers in a plan: as many as before, the last of a partition's replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kframe.errors import ParameterError
from kframe.model.arrays import Int32, Ragged, positions_within
from kframe.model.lists import same_lists
from kframe.snapshot import Snapshot


def observers_last(snapshot: Snapshot, original: Ragged, after: Ragged, racks: Sequence[int]) -> Ragged:
    """The replicas ``after`` a plan. Where it changes a partition with observers, these are its last replicas.

    Lists are of broker indexes, a list for each row of the snapshot; ``racks`` is the rack by index. Raises InputError
    for another replication factor of such a partition, whose placement constraints determine it.
    """
    if snapshot.partitions.observers is None:
        return after
    lists = after.values.copy()
    for row in np.flatnonzero((snapshot.partitions.observers.counts > 0) & ~same_lists(original, after)).tolist():
        full, observers = _divided(snapshot, original, after, row, racks)
        lists[after.offsets[row] : after.offsets[row + 1]] = [*full, *observers]
    return Ragged(after.offsets, lists)


def planned_observers(snapshot: Snapshot, rows: Int32, replicas: Ragged) -> Ragged | None:
    """The observers of each of ``rows``, the last of the planned ``replicas``; None if none has any."""
    observers = snapshot.partitions.observers
    if observers is None or not observers.counts[rows].any():
        return None
    full = replicas.counts - observers.counts[rows]
    return replicas.keep(positions_within(replicas.counts) >= np.repeat(full, replicas.counts))


def _divided(
    snapshot: Snapshot, original: Ragged, after: Ragged, row: int, racks: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The full replicas and the observers of a row after the plan.

    A new replica succeeds a removed observer of its rack, or else one without a successor. The others are full.
    """
    ids, observers = snapshot.partitions.replicas[row].tolist(), snapshot.partitions.observers
    assert observers is not None
    index_of: Mapping[int, int] = dict(zip(ids, original[row].tolist(), strict=True))
    before = [index_of[broker_id] for broker_id in observers[row].tolist()]
    target = after[row].tolist()
    if len(target) != len(ids):
        name = snapshot.topics.name_of_row(row)
        raise ParameterError("replication_factors", f"{len(target)} for {name} with observers", f"{len(ids)}, as it is")
    added = [index for index in target if index not in original[row]]
    removed = [index for index in before if index not in target]
    successors: dict[int, int] = {}
    for same_rack in (True, False):
        for index in removed:
            candidates = [new for new in reversed(added) if not same_rack or racks[new] == racks[index]]
            if index not in successors and candidates:
                successors[index] = candidates[0]
                added.remove(candidates[0])
    planned = [successors.get(index, index) for index in before]
    return [index for index in target if index not in planned], planned
