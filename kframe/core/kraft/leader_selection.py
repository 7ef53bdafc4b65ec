"""The choice of leaders. A selector plugin for KRaft is to replace ``choose_leaders``, and only here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kframe import kernels
from kframe.model.columns import Int32, Ragged, UInt8
from kframe.model.kraft.metadata import ClusterMetadata


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The rows in need of a leader, with what a choice depends on. All lists have one entry a row."""

    rows: Int32
    kinds: UInt8
    """KraftElection of each row."""
    active: UInt8
    """(b,) 1 for brokers that may lead."""
    stored: Ragged
    replicas: Ragged
    isr: Ragged
    elr: Ragged
    last_known_leader: Int32
    """(k,) the broker that may lead if ISR and ELR are empty, or -1."""


def choose_leaders(metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
    """(k,) leader of each row, or NO_LEADER, and (k,) 1 where the election is unclean."""
    partitions, rows = metadata.partitions, candidates.rows
    acceptable = np.empty(len(candidates.stored.values), np.uint8)
    kernels.mark_acceptable_replicas(
        rows, partitions.slot_start, partitions.replica_count, partitions.replica, partitions.directory,
        candidates.active, metadata.directories.brokers, metadata.brokers.lists_none, acceptable,
    )  # fmt: skip
    leader, unclean = np.empty(len(rows), np.int32), np.empty(len(rows), np.uint8)
    stored, replicas, isr, elr = candidates.stored, candidates.replicas, candidates.isr, candidates.elr
    kernels.choose_kraft_leaders(
        candidates.kinds, partitions.leader[rows].astype(np.int32), stored.offsets, stored.values, acceptable,
        replicas.offsets, replicas.values, isr.offsets, isr.values, elr.offsets, elr.values,
        candidates.last_known_leader, leader, unclean,
    )  # fmt: skip
    return leader, unclean
