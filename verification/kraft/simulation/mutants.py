"""Plays mutants of the KRaft rules and of the log: ``python -m verification.kraft.simulation.mutants --record FILE``.

The draw depends on the commit alone. A mutant is noticed if one of the seeds breaks a rule or raises an error. A run
that was interrupted continues.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from verification.mutants.areas import Area
from verification.mutants.mutant import Mutant, Result, ResultLog
from verification.mutants.report import entries, equivalents, rate, row_of
from verification.mutants.session import Session
from verification.mutants.tree import Tree
from verification.support.evidence import facts_lines, run_facts

#: What the simulated clusters execute, with its share of the mutants.
AREAS: Final = (
    (Area("kraft-replication", "kframe/core/kraft/replication"), 0.4),
    (Area("kraft-brokers", "kframe/core/kraft/brokers"), 0.2),
    (Area("kraft-topics", "kframe/core/kraft/topics"), 0.15),
    (Area("kraft-log", "plugins/kraft/kframe_kraft/log"), 0.2),
    (Area("kraft-quorum", "plugins/kraft/kframe_kraft/quorum"), 0.05),
)
_SIMULATION: Final = "verification.kraft.simulation"
#: Seconds of the processor that a seed may take on average; without a mutant it takes less than a quarter.
_SEED_S: Final = 2


@dataclass(frozen=True, slots=True)
class Campaign:
    """``count`` mutants of a commit, each played with ``seeds`` seeds."""

    commit: str
    count: int
    seeds: int

    def run(self, minutes: float) -> list[tuple[Mutant, Result]]:
        """Play what has not been played, up to a number of minutes. Returns all mutants."""
        session = Session([area for area, _ in AREAS], self.commit, self.count, 0.0)
        for tree in session.trees:
            tree.write(self.commit)
        mutants = [mutant for area, share in AREAS for mutant in session.draw(area)[: round(self.count * share)]]
        log = ResultLog(session.folder / f"simulated-{self.seeds}.jsonl")
        results = log.read()
        self._play([mutant for mutant in mutants if mutant.key not in results], session.trees, log, minutes)
        results = log.read()
        return [(mutant, results.get(mutant.key, Result("not run"))) for mutant in mutants]

    def _play(self, mutants: Iterable[Mutant], trees: Iterable[Tree], log: ResultLog, minutes: float) -> None:
        waiting, lock, until = iter(mutants), threading.Lock(), time.monotonic() + 60 * minutes

        def work(tree: Tree) -> None:
            while time.monotonic() < until:
                with lock:
                    mutant = next(waiting, None)
                if mutant is None:
                    return
                with tree.mutated(mutant):
                    outcome = self._outcome(tree)
                with lock:
                    log.append(mutant, Result(outcome, f"{self.seeds} seeds", self.seeds))

        with ThreadPoolExecutor() as pool:
            list(pool.map(work, trees))

    def _outcome(self, tree: Tree) -> str:
        options = ("--jobs", 1, "--first", "--cpu-seconds", _SEED_S * self.seeds)
        try:
            code = tree.run([_SIMULATION, "--seeds", f"1-{self.seeds}", *options], 20 * _SEED_S * self.seeds)
        except subprocess.TimeoutExpired:
            return "timeout"
        if code < 0:
            return "timeout"
        return "killed" if code else "survived"


@click.command()
@click.option("--count", type=click.IntRange(20), default=500, show_default=True)
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True)
@click.option("--minutes", type=float, default=600.0, show_default=True, help="Begin no mutant after this time.")
@click.option("--commit", default="HEAD", show_default=True, help="The mutated commit.")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), required=True)
def main(count: int, seeds: int, minutes: float, commit: str, record: Path) -> None:
    """Play mutants, and write the record and its page."""
    drawn = subprocess.run(["git", "rev-parse", commit], capture_output=True, text=True, check=True).stdout.strip()
    facts = run_facts(f"python -m verification.kraft.simulation.mutants --count {count} --seeds {seeds}")
    facts["commit"] = drawn
    results, reasons = Campaign(drawn, count, seeds).run(minutes), equivalents()
    rows = [row_of(mutant, result, reasons) for mutant, result in results]
    record.write_text(json.dumps({**facts, "mutants": rows}, indent=1) + "\n")
    lines = [*_summary(facts, rows), *entries(rows, "survived"), *entries(rows, "equivalent")]
    record.with_suffix(".md").write_text("\n".join(lines).rstrip() + "\n")
    click.echo("\n".join(_summary(facts, rows)))


def _summary(facts: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of the page before the missed mutants."""
    lines = ["# Mutants in simulated KRaft clusters", "", *facts_lines(facts), ""]
    lines += ["| package | drawn | noticed | missed | equivalent | not run | rate |", "|---|---|---|---|---|---|---|"]
    for package in (*(area.package for area, _ in AREAS), ""):
        number = Counter(str(row["outcome"]) for row in rows if str(row["file"]).startswith(package))
        share = rate(number)
        cells = (
            f"`{package}`" if package else "all",
            number.total(),
            number["killed"] + number["timeout"],
            number["survived"],
            number["equivalent"],
            number["not run"],
            "–" if share is None else f"{100 * share:.1f} %",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, "", "The rate is the share of the noticed among those that ran and are not equivalent.", ""]


if __name__ == "__main__":
    main()
