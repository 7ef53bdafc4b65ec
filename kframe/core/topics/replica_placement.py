"""Automatic replica assignment (Kafka 3.9 ``AdminUtils.assignReplicasToBrokers``), rack-aware and not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.model.arrays import Int32, Int64, Ragged
from kframe.model.brokers import Brokers


@dataclass(frozen=True, slots=True, eq=False)
class AssignableBrokers:
    """The brokers that can have replicas, in round-robin order.

    ``ids`` ascend without racks and alternate between racks otherwise. ``racks`` has each broker's rack number, or is
    empty.
    """

    ids: Int32
    racks: Int32

    @staticmethod
    def of(brokers: Brokers) -> AssignableBrokers:
        """All registered brokers; none or all of them have a rack."""
        ids = brokers.registered_ids()
        named = {broker_id: rack for broker_id in ids if (rack := _rack(brokers, broker_id)) is not None}
        if not named:
            return AssignableBrokers(np.array(ids, np.int32), np.empty(0, np.int32))
        racks = {broker_id: named.get(broker_id, "") for broker_id in ids}
        numbers = {rack: number for number, rack in enumerate(sorted(set(racks.values())))}
        alternating = _alternating(racks)
        return AssignableBrokers(
            np.array(alternating, np.int32),
            np.array([numbers[racks[broker_id]] for broker_id in alternating], np.int32),
        )


def assign_automatically(
    assignable: AssignableBrokers,
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Ragged:
    """Replica lists (broker ids) of ``partitions`` partitions numbered from ``first_partition``.

    ``start_index`` and ``shift`` are the two numbers that Kafka draws at random, not negative.
    """
    count = len(assignable.ids)
    numbers = np.arange(first_partition, first_partition + partitions, dtype=np.int64)
    # The shift grows each time all brokers have been first: at every multiple of their number but 0.
    shifts = shift + numbers // count - (max(first_partition, 1) - 1) // count
    positions = np.empty((partitions, replication_factor), np.int64)
    positions[:, 0] = (numbers + start_index) % count
    if len(assignable.racks):
        _spread_over_racks(assignable.racks, positions, shifts)
    else:
        for column in range(1, replication_factor):
            positions[:, column] = _follower(positions[:, 0], shifts + column - 1, count)
    offsets = np.arange(partitions + 1, dtype=np.int32) * np.int32(replication_factor)
    return Ragged(offsets, assignable.ids[positions.ravel()])


def _rack(brokers: Brokers, broker_id: int) -> str | None:
    index = brokers.find(broker_id)
    registration = None if index is None else brokers.registrations[index]
    return None if registration is None else registration.rack


def _follower(first: Int64, distance: Int64, count: int) -> Int64:
    return (first + 1 + distance % (count - 1)) % count


def _spread_over_racks(racks: Int32, positions: Int64, shifts: Int64) -> None:
    """Fill all but the first column of ``positions``: each partition's brokers, by their positions in ``racks``.

    A candidate is skipped if its rack has a replica and another rack has none, or if it is used and another broker is
    not. In each pass all partitions without their next follower try one candidate.
    """
    count, rack_count = len(racks), int(racks.max()) + 1
    attempts, racks_used = np.zeros(len(positions), np.int64), np.ones(len(positions), np.int64)
    for column in range(1, positions.shape[1]):
        pending = np.arange(len(positions))
        while len(pending):
            candidate = _follower(positions[pending, 0], shifts[pending] * rack_count + attempts[pending], count)
            attempts[pending] += 1
            used = positions[pending, :column]
            new_rack = (racks[used] != racks[candidate][:, None]).all(axis=1)
            fits = new_rack | (racks_used[pending] == rack_count)
            fits &= (used != candidate[:, None]).all(axis=1) | (column >= count)
            positions[pending[fits], column] = candidate[fits]
            racks_used[pending] += fits & new_rack
            pending = pending[~fits]


def _alternating(racks: dict[int, str]) -> list[int]:
    """Brokers that alternate between racks: racks by name, the brokers of each by id."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    ordered = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(brokers) for brokers in ordered)
    return [brokers[position] for position in range(longest) for brokers in ordered if position < len(brokers)]
