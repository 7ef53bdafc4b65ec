"""Automatic replica assignment (Kafka 3.9 ``AdminUtils.assignReplicasToBrokers``), rack-aware and not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe.model.brokers import Brokers
from kframe.model.columns import Int32, Int64, Ragged


@dataclass(frozen=True, slots=True, eq=False)
class Arrangement:
    """The brokers that can be given replicas, in the order in which they take turns.

    ``ids`` ascend without racks; with racks these take turns. ``racks`` has the number of each one's rack, or nothing.
    """

    ids: Int32
    racks: Int32

    @staticmethod
    def of(brokers: Brokers) -> Arrangement:
        """All registered brokers; either none or all of them name a rack."""
        ids = brokers.registered_ids()
        named = {broker_id: rack for broker_id in ids if (rack := _rack(brokers, broker_id)) is not None}
        if not named:
            return Arrangement(np.array(ids, np.int32), np.empty(0, np.int32))
        racks = {broker_id: named.get(broker_id, "") for broker_id in ids}
        numbers = {rack: number for number, rack in enumerate(sorted(set(racks.values())))}
        alternating = _alternating(racks)
        return Arrangement(
            np.array(alternating, np.int32), np.array([numbers[racks[one]] for one in alternating], np.int32)
        )


def assign_automatically(
    arrangement: Arrangement,
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> Ragged:
    """Replica lists (broker ids) of ``partitions`` partitions numbered from ``first_partition``.

    ``start_index`` and ``shift`` are the two numbers that Kafka draws at random; any non-negative ones will do.
    """
    count = len(arrangement.ids)
    numbers = np.arange(first_partition, first_partition + partitions, dtype=np.int64)
    # The shift grows whenever the brokers have all led once: at every multiple of their number but 0.
    shifts = shift + numbers // count - (max(first_partition, 1) - 1) // count
    places = np.empty((partitions, replication_factor), np.int64)
    places[:, 0] = (numbers + start_index) % count
    if len(arrangement.racks):
        _spread_over_racks(arrangement.racks, places, shifts)
    else:
        for taken in range(1, replication_factor):
            places[:, taken] = _follower(places[:, 0], shifts + taken - 1, count)
    offsets = np.arange(partitions + 1, dtype=np.int32) * np.int32(replication_factor)
    return Ragged(offsets, arrangement.ids[places.ravel()])


def _rack(brokers: Brokers, broker_id: int) -> str | None:
    index = brokers.find(broker_id)
    registration = None if index is None else brokers.registrations[index]
    return None if registration is None else registration.rack


def _follower(first: Int64, distance: Int64, count: int) -> Int64:
    return (first + 1 + distance % (count - 1)) % count


def _spread_over_racks(racks: Int32, places: Int64, shifts: Int64) -> None:
    """Fill all but the first column of ``places``, the brokers of each partition by their places among ``racks``.

    A follower is passed over while its rack has a replica and some rack has none, or it is used and some is not. All
    partitions that still look for their next follower try one candidate in a pass.
    """
    count, rack_count = len(racks), int(racks.max()) + 1
    tried, racks_used = np.zeros(len(places), np.int64), np.ones(len(places), np.int64)
    for taken in range(1, places.shape[1]):
        open_ = np.arange(len(places))
        while len(open_):
            candidate = _follower(places[open_, 0], shifts[open_] * rack_count + tried[open_], count)
            tried[open_] += 1
            used = places[open_, :taken]
            fresh_rack = (racks[used] != racks[candidate][:, None]).all(axis=1)
            fits = fresh_rack | (racks_used[open_] == rack_count)
            fits &= (used != candidate[:, None]).all(axis=1) | (taken >= count)
            places[open_[fits], taken] = candidate[fits]
            racks_used[open_] += fits & fresh_rack
            open_ = open_[~fits]


def _alternating(racks: dict[int, str]) -> list[int]:
    """Brokers with their racks taking turns: racks by name, each giving its brokers by id."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    ordered = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(one) for one in ordered)
    return [one[turn] for turn in range(longest) for one in ordered if turn < len(one)]
