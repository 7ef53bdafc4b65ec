"""The records of a sweep."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from kframe.snapshot.content import Mode
from kframe.whatif.results.health import Skew


class FailureRow(Struct):
    """A failure and its effects, in partitions; null is unknown."""

    kind: Literal["broker", "pair", "rack", "directory"]
    brokers: list[int]
    rack: str | None
    offline: int
    newly_offline: int
    under_min_isr: int | None
    newly_under_min_isr: int | None
    at_min_isr: int | None
    unclean_elections: int
    needs_unclean_election: int
    leaders_moved: int
    newly_may_lose_data: int
    leaders_max: int
    leaders_mean: float | None
    leader_skew: float | None


class SweepRow(FailureRow):
    """A failure in a sweep. Only rows of KRaft clusters have ``directory`` and ``may_lose_data``."""

    directory: str | UnsetType | None = UNSET
    may_lose_data: int | UnsetType = UNSET


class SweepSnapshot(Struct):
    """The snapshot of a sweep."""

    format: str
    name: str
    mode: Mode
    partitions: int


class FailureKinds(Struct):
    """Failures of each kind."""

    broker: int
    pair: int
    rack: int
    directory: int | UnsetType = UNSET


class SweepBefore(Struct, kw_only=True):
    """Partitions in each condition before any failure."""

    offline: int
    under_min_isr: int | None
    at_min_isr: int | None
    needs_unclean_election: int
    may_lose_data: int | UnsetType = UNSET
    leader_skew: Skew
