"""The types of the JSON documents of ``kframe sim``."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kframe_simulator.simulation.options import Options


class SimCounts(Struct):
    """Counts over seeds: classes of faults, actions, checks of invariants, and events of clients and controllers."""

    seeds: int
    events: int
    events_least: int
    simulated_seconds: int
    failed_seeds: int
    faults: dict[str, int]
    actions: dict[str, int]
    looks: dict[str, int]
    counts: dict[str, int]


class SimTotals(SimCounts):
    """The sum of all seeds of ``kframe sim run``."""

    first_seed: int
    last_seed: int


class SimPartsTotal(SimTotals):
    """The sum of the parts of ``kframe sim run --append``: ``kframe sim total``."""

    build: str
    failed: dict[str, str]
    """The first violated invariant of each failed seed."""
    parts: int


class SimSeedRow(Struct):
    """A seed of ``kframe sim run --each``. ``trace`` is a digest."""

    seed: int
    events: int
    simulated_seconds: int
    trace: str
    violations: list[str]
    options: Options


class SimViolation(Struct):
    """A violated invariant."""

    invariant: str
    problem: str
    at_ms: float
    event: int


class SimRunDocument(Struct):
    """A simulated cluster: ``kframe sim replay`` and ``shrink``, and the files of ``--write`` and ``--keep``."""

    seed: int
    options: Options
    plan: list[dict[str, Any]]
    """Actions: ``at_ms``, ``kind`` and arguments."""
    events: int
    simulated_seconds: float
    trace: str
    violations: list[SimViolation]
