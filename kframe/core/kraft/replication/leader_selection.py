"""Leader selection: its input, and the built-in rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kframe import kernels
from kframe.core.kraft.replication.stored_partitions import StoredPartitions
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.kraft.metadata import ClusterMetadata


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The input of a selection: the rows, and their replicas, ISRs and ELRs. Each list has an entry for each row."""

    rows: Int32
    kinds: UInt8
    """KraftElection of each row."""
    active: UInt8
    """(b,) 1 for brokers that may lead."""
    stored: StoredPartitions
    replicas: Ragged
    isr: Ragged
    elr: Ragged
    last_known_leader: Int32
    """(k,) the broker that may lead if ISR and ELR are empty, or -1."""


class LeaderSelection(Protocol):
    """Chooses the leaders of a KRaft cluster."""

    def choose(self, metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        """See ``choose_leaders``."""


class BuiltinSelection:
    """Chooses by the built-in rule."""

    def choose(self, metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
        """See ``choose_leaders``."""
        return choose_leaders(metadata, candidates)


def choose_leaders(metadata: ClusterMetadata, candidates: Candidates) -> tuple[Int32, UInt8]:
    """(k,) leader of each row, or NO_LEADER, and (k,) 1 where the election is unclean."""
    stored = candidates.stored
    acceptable = acceptable_replicas(metadata, stored.starts, stored.replicas, candidates.active)
    return choose_from_acceptable(candidates, acceptable)


def choose_from_acceptable(candidates: Candidates, acceptable: UInt8) -> tuple[Int32, UInt8]:
    """See ``choose_leaders``; ``acceptable`` marks the stored replicas that may lead, as ``acceptable_replicas``."""
    count = len(candidates.rows)
    leader, unclean = np.empty(count, np.int32), np.empty(count, np.uint8)
    stored, replicas, isr, elr = candidates.stored, candidates.replicas, candidates.isr, candidates.elr
    kernels.choose_kraft_leaders(
        candidates.kinds,
        stored.leader,
        stored.replicas.offsets,
        stored.replicas.values,
        acceptable,
        replicas.offsets,
        replicas.values,
        isr.offsets,
        isr.values,
        elr.offsets,
        elr.values,
        candidates.last_known_leader,
        leader,
        unclean,
    )
    return leader, unclean


def acceptable_replicas(metadata: ClusterMetadata, starts: Int32, replicas: Ragged, active: UInt8) -> UInt8:
    """1 for each of the stored ``replicas`` whose broker is active and directory online. ``starts`` are their slots."""
    acceptable = np.empty(len(replicas.values), np.uint8)
    kernels.mark_acceptable_replicas(
        starts,
        replicas.offsets,
        replicas.values,
        metadata.partitions.directory,
        active,
        metadata.directories.brokers,
        metadata.brokers.lists_no_directory,
        acceptable,
    )
    return acceptable
