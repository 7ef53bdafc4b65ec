"""The command of a module of targets: run them, make one case again, or add to the corpus."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kframe._core import DEBUG
from kframe_simulator.fuzz.cases import Cases, Target
from kframe_simulator.fuzz.corpus import found, judged_anew, read_corpus, write_corpus
from kframe_simulator.fuzz.run import Tally, Targets, run

#: Cases of a run by default; on kernels that check every index a twentieth of them.
CASES: Final = int(os.environ.get("KFRAME_FUZZ_CASES", "50000" if DEBUG else "1000000"))
#: Most memory that a process may take for all its cases together, each of some kilobytes at most.
PEAK_BYTES_MAX: Final = 64 * 2**20


def main(module: str, targets: Targets, corpus: Path, arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says (``python -m MODULE --help``); return the exit code, 1 if a case escaped."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description="Give bent messages to every reader.")
    parser.add_argument("--seed", type=int, default=1, help="what cases are drawn from (1)")
    parser.add_argument("--cases", type=int, default=CASES, help=f"how many, over all targets ({CASES})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--target", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument("--case", type=int, help="make this case of --target again and show what becomes of it")
    parser.add_argument(
        "--keep", action="store_true", help="write the outcomes of the corpus anew, and add cases of new ones"
    )
    chosen = parser.parse_args(arguments)
    known = [target.name for target in targets()]
    if unknown := [name for name in chosen.target if name not in known]:
        parser.error(f"no target {unknown[0]!r}; there are: {', '.join(known)}")
    picked = [target for target in targets() if not chosen.target or target.name in chosen.target]
    if chosen.case is not None:
        if len(picked) != 1:
            parser.error("--case needs one --target")
        return _again(picked[0], chosen.seed, chosen.case)
    if chosen.keep:
        return _keep(picked, chosen.seed, chosen.cases, corpus)
    begun = time.monotonic()
    tallies = run(targets, chosen.seed, chosen.cases, chosen.jobs, chosen.target)
    print(report(module, chosen.seed, tallies))
    print(f"{time.monotonic() - begun:.0f} s, {chosen.jobs} processes")
    sound = sum(tally.cases for tally in tallies) == chosen.cases and all(
        tally.peak_bytes <= PEAK_BYTES_MAX for tally in tallies
    )
    return 0 if sound and not any(tally.escaped for tally in tallies) else 1


def report(module: str, seed: int, tallies: Sequence[Tally]) -> str:
    """A table of what became of the cases, and how to make those again that escaped."""
    lines = [f"seed {seed}", f"{'target':32}{'cases':>12}{'decoded':>12}{'refused':>12}{'escaped':>9}{'peak MiB':>10}"]
    total = Tally("all")
    for tally in tallies:
        total.add(tally)
    for tally in [*tallies, total]:
        peak = f"{tally.peak_bytes / 2**20:>10.1f}"
        lines.append(
            f"{tally.target:32}{tally.cases:>12,}{tally.decoded:>12,}{tally.refused:>12,}{tally.escaped:>9,}{peak}"
        )
    for escape in (each for tally in tallies for each in tally.escapes):
        where = f"--seed {seed} --target '{escape.target}' --case {escape.number}"
        more = f" (one of {escape.cases} from there on)" if escape.cases > 1 else ""
        lines.append(f"\nescaped: python -m {module} {where}{more}\n{escape.what}")
    return "\n".join(lines)


def _again(target: Target, seed: int, number: int) -> int:
    """One case by itself; what escapes is raised."""
    ((_, batch),) = Cases(target, seed).batches(number, 1)
    alone = batch.part(0, 1)
    print(f"{target.name}, seed {seed}, case {number}, made of {alone.kinds[0]}:\n{alone[0]!r}", flush=True)
    outcome = target.judge(alone)[0]
    print("decoded" if outcome is None else f"refused: {outcome}")
    return 0


def _keep(targets: Sequence[Target], seed: int, cases: int, corpus: Path) -> int:
    kept = [judged_anew(entry, targets) for entry in read_corpus(corpus)]
    before = len(kept)
    for target in targets:
        kept += found(target, seed, cases // len(targets), kept)
    write_corpus(corpus, kept)
    print(f"{len(kept) - before} more than {before} in {corpus}", file=sys.stderr)
    return 0
