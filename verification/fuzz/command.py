"""The command line of a fuzz module: run targets, repeat a case, extend the corpus."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kframe._core import DEBUG
from verification.fuzz.cases import Cases, DecoderTarget
from verification.fuzz.corpus import new_entries, read_corpus, reevaluated, write_corpus
from verification.fuzz.run import Targets, TargetTotals, run

#: The default number of cases. Kernels with index checks run a quarter.
CASES: Final = int(os.environ.get("KFRAME_FUZZ_CASES", "50000" if DEBUG else "200000"))
#: The most memory of a process beyond its initial memory. A case has some kilobytes at most.
PEAK_BYTES_MAX: Final = 64 * 2**20
#: The least share of decoded and of refused cases: otherwise the mutations of a target test little.
RARER_MIN: Final = 0.02


def main(module: str, targets: Targets, corpus: Path, arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``python -m MODULE --help``). Returns the exit code, 1 if a case escaped."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {module}", description="Decode mutated messages with every decoder."
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the cases (1)")
    parser.add_argument("--cases", type=int, default=CASES, help=f"number of cases of all targets together ({CASES})")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--target", action="append", default=[], help="a decoder to run; repeat it for more (all)")
    parser.add_argument("--case", type=int, help="run this case of --target again and show its outcome")
    parser.add_argument(
        "--keep", action="store_true", help="update the outcomes of the corpus, and add cases with new outcomes"
    )
    options = parser.parse_args(arguments)
    known = [target.name for target in targets()]
    if unknown := [name for name in options.target if name not in known]:
        parser.error(f"no target {unknown[0]!r}; there are: {', '.join(known)}")
    selected = [target for target in targets() if not options.target or target.name in options.target]
    if options.case is not None:
        if len(selected) != 1:
            parser.error("--case needs one --target")
        return _repeat_case(selected[0], options.seed, options.case)
    if options.keep:
        return _extend_corpus(selected, options.seed, options.cases, corpus)
    begun = time.monotonic()
    totals_by_target = run(targets, options.seed, options.cases, options.jobs, options.target)
    print(report(module, options.seed, totals_by_target))
    print(f"{time.monotonic() - begun:.0f} s, {options.jobs} processes")
    results = problems(totals_by_target, options.cases)
    print(*results, sep="\n", file=sys.stderr, end="\n" if results else "")
    return int(bool(results))


def problems(totals_by_target: Sequence[TargetTotals], cases: int) -> list[str]:
    """What a run of so many cases must not have: escapes, lost cases, too much memory, and targets of one outcome."""
    results = [f"{totals.target}: {totals.escaped:,} escaped" for totals in totals_by_target if totals.escaped]
    if (evaluated := sum(totals.cases for totals in totals_by_target)) != cases:
        results.append(f"{evaluated:,} of {cases:,} cases were evaluated")
    for totals in totals_by_target:
        if totals.peak_bytes > PEAK_BYTES_MAX:
            results.append(f"{totals.target}: {totals.peak_bytes:,} bytes of memory")
        if min(totals.decoded, totals.refused) < RARER_MIN * (totals.decoded + totals.refused):
            results.append(f"{totals.target}: {totals.decoded:,} decoded and {totals.refused:,} refused")
    return results


def report(module: str, seed: int, totals_by_target: Sequence[TargetTotals]) -> str:
    """A table of outcomes, with a command that repeats each escaped case."""
    lines = [f"seed {seed}", f"{'target':32}{'cases':>12}{'decoded':>12}{'refused':>12}{'escaped':>9}{'peak MiB':>10}"]
    total = TargetTotals("all")
    for totals in totals_by_target:
        total.add(totals)
    for totals in [*totals_by_target, total]:
        peak = f"{totals.peak_bytes / 2**20:>10.1f}"
        lines.append(
            f"{totals.target:32}{totals.cases:>12,}{totals.decoded:>12,}{totals.refused:>12,}{totals.escaped:>9,}{peak}"
        )
    for escape in (escape for totals in totals_by_target for escape in totals.escapes):
        where = f"--seed {seed} --target '{escape.target}' --case {escape.number}"
        more_cases = f" (one of {escape.cases} from there on)" if escape.cases > 1 else ""
        lines.append(f"\nescaped: python -m {module} {where}{more_cases}\n{escape.detail}")
    return "\n".join(lines)


def _repeat_case(target: DecoderTarget, seed: int, number: int) -> int:
    """Run one case; exceptions propagate."""
    ((_, batch),) = Cases(target, seed).batches(number, 1)
    single_case = batch.part(0, 1)
    print(f"{target.name}, seed {seed}, case {number}, made of {single_case.kinds[0]}:\n{single_case[0]!r}", flush=True)
    outcome = target.evaluate(single_case)[0]
    print("decoded" if outcome is None else f"refused: {outcome}")
    return 0


def _extend_corpus(targets: Sequence[DecoderTarget], seed: int, cases: int, corpus: Path) -> int:
    saved = [reevaluated(entry, targets) for entry in read_corpus(corpus)]
    before = len(saved)
    for target in targets:
        saved += new_entries(target, seed, cases // len(targets), saved)
    write_corpus(corpus, saved)
    print(f"{len(saved) - before} more than {before} in {corpus}", file=sys.stderr)
    return 0
