"""A partition under reassignment, as an admin API describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """An ongoing reassignment: all replicas, and those of them that are being added and removed (broker ids)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
