"""Figures that mean the same on every machine, because both sides of each were measured on one: kept in records,
compared between them, and held against targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report.targets import TARGETS, Target


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure. ``name`` says what was measured at which size, beside what. ``less`` is whether less is better;
    ``absolute`` marks seconds and the like, which are held against targets and not compared between machines."""

    name: str
    value: float
    less: bool = False
    absolute: bool = False


def to_record(ratios: Iterable[Ratio]) -> list[dict[str, Any]]:
    """As a record keeps them, under ``ratios``."""
    return [{"name": one.name, "value": one.value, "less": one.less, "absolute": one.absolute} for one in ratios]


def of_record(record: Mapping[str, Any]) -> list[Ratio]:
    """What a record keeps; none if it was made before records kept any."""
    return [Ratio(**one) for one in record.get("ratios", ())]


@dataclass(frozen=True, slots=True)
class Held:
    """A target, and what was measured, if it was: ``where`` says in which run."""

    target: Target
    measured: float | None = None
    where: str = ""

    @property
    def reached(self) -> bool | None:
        """None where nothing was measured."""
        if self.measured is None:
            return None
        wanted = self.target.wanted
        return self.measured <= wanted if self.target.at_most else self.measured >= wanted


def held(now: Iterable[Ratio], kept: Mapping[str, Sequence[Ratio]]) -> list[Held]:
    """Every target with what was measured ``now``, else in the last of the ``kept`` records (by name) that has it."""
    known: dict[str, Held] = {}
    for where, ratios in (*kept.items(), ("this run", now)):
        for one in ratios:
            if one.name in TARGETS:
                known[one.name] = Held(TARGETS[one.name], one.value, where)
    return [known.get(name, Held(target)) for name, target in TARGETS.items()]


def lines(all_held: Iterable[Held]) -> list[tuple[str, ...]]:
    """A table with its headings."""
    return [("target", "wanted", "measured", "reached", "where"), *map(_line, all_held)]


def _line(one: Held) -> tuple[str, ...]:
    target = one.target
    reached = {True: "yes", False: "NO", None: "-"}[one.reached]
    wanted = f"{'at most' if target.at_most else 'at least'} {target.wanted:g} {target.unit}"
    measured = "not measured" if one.measured is None else f"{one.measured:.3g} {target.unit}"
    return (target.text, wanted, measured, reached, one.where or "-")


def as_plain(all_held: Iterable[Held]) -> list[dict[str, Any]]:
    """The same table as plain data."""
    return [
        {"target": one.target.text, "name": one.target.name, "wanted": one.target.wanted, "unit": one.target.unit,
         "at_most": one.target.at_most, "measured": one.measured, "reached": one.reached, "where": one.where}
        for one in all_held
    ]  # fmt: skip
