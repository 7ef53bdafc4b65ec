"""Automatic replica assignment (Kafka 3.9 ``AdminUtils``) for whole columns of partitions."""

from __future__ import annotations

import numpy as np

from kframe.model.arrays import Bool, Int32, Int64


def assign_replicas(first: Int32, rounds: Int32, brokers: int, replication_factor: int, racks: int) -> Int32:
    """(n, rf) brokers of each partition, the preferred leader ``first`` (n,) in front.

    Broker ``i`` is in rack ``i % racks``; 0 racks is none. ``rounds`` (n,) says how far followers are shifted.
    """
    if not racks:
        return assign_round_robin(first, rounds, brokers, replication_factor)
    # A cluster of any size has few distinct placements: compute each of them once.
    shift = rounds.astype(np.int64) * racks % max(brokers - 1, 1)
    patterns, inverse = np.unique(first * np.int64(brokers) + shift, return_inverse=True)
    return _assign_by_rack(patterns // brokers, patterns % brokers, brokers, replication_factor, racks)[inverse]


def assign_round_robin(first: Int32, rounds: Int32, brokers: int, replication_factor: int) -> Int32:
    """The same without racks: follower ``k`` is ``1 + (rounds + k) mod (brokers - 1)`` brokers after the leader."""
    replicas = np.empty((len(first), replication_factor), np.int32)
    replicas[:, 0] = first
    if replication_factor > 1:
        shift = rounds % np.int32(brokers - 1)
        for follower in range(1, replication_factor):
            distance = (shift + np.int32(follower - 1)) % np.int32(brokers - 1)
            replicas[:, follower] = (first + 1 + distance) % np.int32(brokers)
    return replicas


def _assign_by_rack(first: Int64, shift: Int64, brokers: int, replication_factor: int, racks: int) -> Int32:
    """Try one broker after another for each partition, and assign those that its racks and replicas allow."""
    replicas = np.full((len(first), replication_factor), -1, np.int32)
    replicas[:, 0] = first
    assigned = np.ones(len(first), np.int64)
    open_rows = np.arange(len(first)) if replication_factor > 1 else np.empty(0, np.int64)
    attempt = 0
    while len(open_rows):
        distance = 1 + (shift[open_rows] + attempt) % (brokers - 1)
        broker = ((first[open_rows] + distance) % brokers).astype(np.int32)
        allowed = _allowed(replicas[open_rows], broker, racks)
        rows = open_rows[allowed]
        replicas[rows, assigned[rows]] = broker[allowed]
        assigned[rows] += 1
        open_rows = open_rows[assigned[open_rows] < replication_factor]
        attempt += 1
    return replicas


def _allowed(replicas: Int32, broker: Int32, racks: int) -> Bool:
    """Whether each partition may use a broker: not twice, and no rack twice while another rack is unused."""
    empty = replicas < 0
    same_broker = (replicas == broker[:, None]).any(axis=1)
    same_rack = ((replicas % racks == (broker % racks)[:, None]) & ~empty).any(axis=1)
    used = np.zeros((len(replicas), racks), bool)
    rows, slots = np.nonzero(~empty)
    used[rows, replicas[rows, slots] % racks] = True
    allowed: Bool = ~same_broker & (~same_rack | used.all(axis=1))
    return allowed
