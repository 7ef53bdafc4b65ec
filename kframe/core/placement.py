"""Automatic replica assignment (Kafka 3.9 ``AdminUtils.assignReplicasToBrokers``), rack-aware and not."""

from __future__ import annotations

from kframe.model.brokers import Brokers


def assign_automatically(
    brokers: Brokers, partitions: int, replication_factor: int, start_index: int, shift: int, first_partition: int = 0
) -> list[tuple[int, ...]]:
    """Replica lists (broker ids) of ``partitions`` partitions numbered from ``first_partition``.

    ``start_index`` and ``shift`` are the two numbers that Kafka draws at random; any non-negative ones will do.
    """
    ids = brokers.registered_ids()
    racks = {broker_id: _rack(brokers, broker_id) for broker_id in ids}
    if any(rack is not None for rack in racks.values()):
        return _rack_aware(
            _alternating(racks), racks, partitions, replication_factor, start_index, shift, first_partition
        )
    lists = []
    for number in range(first_partition, first_partition + partitions):
        if number > 0 and number % len(ids) == 0:
            shift += 1
        first = (number + start_index) % len(ids)
        followers = (_follower(first, shift, j, len(ids)) for j in range(replication_factor - 1))
        lists.append((ids[first], *(ids[place] for place in followers)))
    return lists


def _rack(brokers: Brokers, broker_id: int) -> str | None:
    index = brokers.find(broker_id)
    registration = None if index is None else brokers.registrations[index]
    return None if registration is None else registration.rack


def _follower(first: int, shift: int, j: int, count: int) -> int:
    return (first + 1 + (shift + j) % (count - 1)) % count


def _alternating(racks: dict[int, str | None]) -> list[int]:
    """Brokers with their racks taking turns: racks by name, each giving its brokers by id."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id] or "", []).append(broker_id)
    ordered = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(one) for one in ordered)
    return [one[turn] for turn in range(longest) for one in ordered if turn < len(one)]


def _rack_aware(
    arranged: list[int],
    racks: dict[int, str | None],
    partitions: int,
    replication_factor: int,
    start_index: int,
    shift: int,
    first_partition: int,
) -> list[tuple[int, ...]]:
    """A follower is passed over while its rack has a replica and some rack has none, or it is used and some is not."""
    rack_count, count = len(set(racks.values())), len(arranged)
    lists = []
    for number in range(first_partition, first_partition + partitions):
        if number > 0 and number % count == 0:
            shift += 1
        first = (number + start_index) % count
        chosen = [arranged[first]]
        used_racks, k = {racks[chosen[0]]}, 0
        for _ in range(replication_factor - 1):
            while True:
                candidate = arranged[_follower(first, shift * rack_count, k, count)]
                k += 1
                fresh_rack = racks[candidate] not in used_racks or len(used_racks) == rack_count
                fresh_broker = candidate not in chosen or len(set(chosen)) == count
                if fresh_rack and fresh_broker:
                    break
            chosen.append(candidate)
            used_racks.add(racks[candidate])
        lists.append(tuple(chosen))
    return lists
