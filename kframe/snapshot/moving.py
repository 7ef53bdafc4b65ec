"""A partition under reassignment, as an admin API describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moving:
    """One partition under reassignment: its replicas, and those of them that are added and removed (broker ids)."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
