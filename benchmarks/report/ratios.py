"""Ratios that are comparable between machines, because both sides were measured on the same one; and targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report.targets import TARGETS, Target


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure. ``name`` states the measurement, its size and what it is compared with.

    ``less`` tells whether less is better. ``absolute`` marks seconds and bytes, which have targets but are not compared
    between machines.
    """

    name: str
    value: float
    less: bool = False
    absolute: bool = False


def to_record(ratios: Iterable[Ratio]) -> list[dict[str, Any]]:
    """The entry ``ratios`` of a record."""
    return [
        {"name": ratio.name, "value": ratio.value, "less": ratio.less, "absolute": ratio.absolute} for ratio in ratios
    ]


def of_record(record: Mapping[str, Any]) -> list[Ratio]:
    """The ratios of a record. None in the oldest records."""
    return [Ratio(**ratio) for ratio in record.get("ratios", ())]


@dataclass(frozen=True, slots=True)
class TargetResult:
    """A target and its measurement, if there is one. ``where`` names the run or the record."""

    target: Target
    measured: float | None = None
    where: str = ""

    @property
    def reached(self) -> bool | None:
        """None without a measurement."""
        if self.measured is None:
            return None
        limit = self.target.limit
        return self.measured <= limit if self.target.at_most else self.measured >= limit

    @property
    def limit_text(self) -> str:
        """The limit with its unit, such as ``at most 1.5 times``."""
        return f"at {'most' if self.target.at_most else 'least'} {self.target.limit:g} {self.target.unit}"

    @property
    def measured_text(self) -> str | None:
        """The measurement with its unit."""
        return None if self.measured is None else f"{self.measured:.3g} {self.target.unit}"


def compare_targets(now: Iterable[Ratio], records: Mapping[str, Sequence[Ratio]]) -> list[TargetResult]:
    """Every target with the value measured ``now``, else with that of the last of ``records`` (by name) that has it."""
    known: dict[str, TargetResult] = {}
    for where, ratios in (*records.items(), ("this run", now)):
        for ratio in ratios:
            if ratio.name in TARGETS:
                known[ratio.name] = TargetResult(TARGETS[ratio.name], ratio.value, where)
    return [known.get(name, TargetResult(target)) for name, target in TARGETS.items()]


def lines(results: Iterable[TargetResult]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    reached = {True: "yes", False: "NO", None: "-"}
    rows = (
        (
            result.target.text,
            result.limit_text,
            result.measured_text or "not measured",
            reached[result.reached],
            result.where or "-",
        )
        for result in results
    )
    return [("target", "wanted", "measured", "reached", "where"), *rows]


def as_plain(results: Iterable[TargetResult]) -> list[dict[str, Any]]:
    """The same table as plain data."""
    return [
        {
            "target": target.text,
            "name": target.name,
            "wanted": target.limit,
            "unit": target.unit,
            "at_most": target.at_most,
            "measured": result.measured,
            "reached": result.reached,
            "where": result.where,
        }
        for result in results
        for target in [result.target]
    ]
