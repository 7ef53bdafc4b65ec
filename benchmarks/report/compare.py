"""Which ratios have become worse since the stored records (``make bench-compare``).

    python -m benchmarks.report.compare [NEW ...] [--against RECORD ...]

Compares ratios (with other controllers, growth exponents, bytes per partition), never seconds, because machines
differ. NEW defaults to the last records of ``make bench`` and ``benchmarks.against_kafka``. Each ratio is compared
with the newest stored record that has it, if possible of the same processor: caches change some ratios, too. A ratio
that fell by more than a fifth is marked, and the exit code is 1. Ratios without a counterpart are listed as new or not
measured.
The exit code is 2 if there is nothing to compare.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.records import LATEST, RESULTS, newest, table
from benchmarks.report.ratios import Ratio, of_record

#: How much of a stored ratio has to remain.
REMAINING_MIN: Final = 0.8
HEADINGS: Final = ("ratio", "stored", "new", "of stored", "")
LEGEND: Final = "of stored: how good the new one is; 0.80 is a fifth worse. * where less is better."


@dataclass(frozen=True, slots=True)
class Compared:
    """One ratio in stored records and in new ones, as far as it is there."""

    name: str
    stored: float | None
    new: float | None
    less: bool

    @property
    def remaining(self) -> float | None:
        """How good the new one is, 1 being as good as the stored one. None where one of them is lacking."""
        if self.stored is None or self.new is None:
            return None
        better, worse = (self.stored, self.new) if self.less else (self.new, self.stored)
        if worse == 0:
            return 1.0 if better == 0 else float("inf")
        return better / worse

    @property
    def change(self) -> str:
        """``WORSE``, ``better`` or nothing. ``new`` and ``not measured`` where there is no comparison."""
        if self.remaining is None:
            return "new" if self.stored is None else "not measured"
        return "WORSE" if self.remaining < REMAINING_MIN else "better" if self.remaining > 1 / REMAINING_MIN else ""


def compare(stored: Iterable[Ratio], new: Iterable[Ratio]) -> list[Compared]:
    """Every ratio of both, by name. Of several of one name the last stands. Absolute figures are left out."""
    before = {ratio.name: ratio for ratio in stored if not ratio.absolute}
    after = {ratio.name: ratio for ratio in new if not ratio.absolute}
    compared = []
    for name in sorted(before.keys() | after.keys()):
        old, now = before.get(name), after.get(name)
        less = (now or old or Ratio(name, 0.0)).less
        compared.append(Compared(name, old.value if old else None, now.value if now else None, less))
    return compared


def prefer_processors(stored: Sequence[Mapping[str, Any]], processors: Collection[object]) -> list[Mapping[str, Any]]:
    """Stored records in their order, those of these processors last. Of ratios with the same name the last counts."""
    return sorted(stored, key=lambda record: record.get("processor") in processors)


def line(ratio: Compared) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    values = ("-" if value is None else f"{value:.3g}" for value in (ratio.stored, ratio.new, ratio.remaining))
    return (ratio.name + (" *" if ratio.less else ""), *values, ratio.change)


def main(words: Sequence[str] | None = None) -> int:
    """Compare, print, and say by the exit code whether something has become worse."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report.compare", description=__doc__)
    parser.add_argument("new", type=Path, nargs="*", help=f"records; by default those in {LATEST.name}/")
    parser.add_argument("--against", type=Path, nargs="+", help=f"stored records; by default all in {RESULTS.name}/")
    chosen = parser.parse_args(words)
    new = [_read(path) for path in chosen.new or sorted(LATEST.glob("*.json"))]
    stored = [_read(path) for path in chosen.against] if chosen.against else newest(RESULTS)
    against = prefer_processors(stored, {record.get("processor") for record in new})
    compared = compare(_ratios(against), _ratios(new))
    if not any(ratio.remaining is not None for ratio in compared):
        print("nothing to compare: run make bench first, and keep a record", file=sys.stderr)
        return 2
    table([HEADINGS, *map(line, compared)], LEGEND)
    worse = [ratio.name for ratio in compared if ratio.change == "WORSE"]
    print(f"{len(worse)} of {sum(ratio.remaining is not None for ratio in compared)} ratios fell by more than a fifth")
    return 1 if worse else 0


def _read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def _ratios(records: Iterable[Mapping[str, Any]]) -> list[Ratio]:
    return [ratio for record in records for ratio in of_record(record)]


if __name__ == "__main__":
    raise SystemExit(main())
