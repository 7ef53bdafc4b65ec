"""Run mutants and print their outcomes. ``--page`` writes ``docs/evidence/defects.md``."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from kframe_simulator.mutants import evidence, observed_kills, page
from kframe_simulator.mutants.run import (
    Clean,
    Evaluation,
    MutantOutcome,
    MutantResult,
    evaluate,
    nodes_of,
    run_tests,
    tree,
)
from kframe_simulator.mutants.saved_results import ResultFile
from kframe_simulator.mutants.table import Mutant, defects, mutants


def main(words: Sequence[str] | None = None) -> int:
    """Exit 0 if all mutants were killed, 1 if some survived, 2 if the run is impossible."""
    arguments = _arguments(words)
    if arguments.page:
        page.PATH.write_text(page.render())
        return 0
    chosen = [mutant for mutant in mutants() if not arguments.only or mutant.id in arguments.only]
    if arguments.only and len(chosen) != len(set(arguments.only)):
        print("no such mutant: " + ", ".join(set(arguments.only) - {mutant.id for mutant in chosen}), file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # Exit normally, so that the copies of the tree are deleted.
    keep = ResultFile(arguments.keep) if arguments.keep else None
    waiting = [mutant for mutant in chosen if keep is None or _wants(mutant, keep, arguments)]
    with tempfile.TemporaryDirectory(prefix="kframe-mutants-") as folder, ExitStack() as trees:
        roots = [trees.enter_context(tree(Path(folder) / str(job))) for job in range(arguments.jobs)]
        if arguments.tests and not arguments.unchecked and not _sound(roots, waiting):
            return 2
        results = run(roots, waiting, arguments.seeds, arguments.tests, keep)
    if keep is not None:
        results = [keep.result(mutant) for mutant in chosen]
    if arguments.output == "json":
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        print(evidence.table(results))
    if arguments.evidence and keep is not None and not arguments.tests:
        arguments.evidence.write_text(evidence.simulated(results, arguments.seeds, keep))
        arguments.evidence.with_suffix(".json").write_text(evidence.simulated_record(results, keep))
    elif arguments.evidence:
        arguments.evidence.write_text(evidence.page(results, arguments.seeds, keep, not arguments.unchecked))
        arguments.evidence.with_suffix(".json").write_text(evidence.record(results, arguments.seeds))
        page.PATH.write_text(page.render())  # The page lists the tests that failed.
    tested = [outcome for outcome in results if outcome.tests.outcome is not MutantOutcome.NOT_RUN] if keep else results
    if not arguments.tests:
        return 0
    return int(
        any(outcome.tests.outcome is not MutantOutcome.KILLED for outcome in tested)
        or bool(observed_kills.unobserved(results))
    )


def _wants(mutant: Mutant, keep: ResultFile, arguments: argparse.Namespace) -> bool:
    """Whether a requested result is not saved yet."""
    seeds = keep.pending_seeds(mutant, arguments.seeds) if mutant.simulated else None
    return seeds is not None or (arguments.tests and keep.tests(mutant) is None)


def run(
    roots: Sequence[Path],
    chosen: Sequence[Mutant],
    seeds: str | None,
    tests: bool = True,
    keep: ResultFile | None = None,
) -> list[MutantResult]:
    """Run the mutants, one per root at a time. Returns results in catalogue order."""
    free: SimpleQueue[Path] = SimpleQueue()
    history, lock, clean = defects(), Lock(), Clean()
    for root in roots:
        free.put(root)

    def evaluate_saved(mutant: Mutant) -> MutantResult:
        root = free.get()
        try:
            pending_seeds = seeds if keep is None else keep.pending_seeds(mutant, seeds)
            untested = keep is None or keep.tests(mutant) is None
            result = evaluate(root, mutant, history, pending_seeds, tests and untested, clean)
        finally:
            free.put(root)
        with lock:
            if keep is not None:
                keep.add(result, seeds)
            for evaluation, took in ((result.tests, f" ({result.took_s:.0f} s)"), (result.simulator, "")):
                if evaluation.by != "not asked for":
                    print(f"{evaluation.outcome:9} {mutant.id}: {evaluation.by}{took}", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(len(roots)) as pool:
        return list(pool.map(evaluate_saved, chosen))


def _sound(roots: Sequence[Path], chosen: Sequence[Mutant]) -> bool:
    """Whether the tests pass without a mutant, on both kernels. Otherwise a failure proves nothing."""
    history = defects()

    def evaluation(naive: bool) -> Evaluation:
        nodes = tuple(
            sorted({node for mutant in chosen if mutant.naive == naive for node in nodes_of(mutant, history)})
        )
        return run_tests(roots[naive % len(roots)], nodes, naive) if nodes else Evaluation(MutantOutcome.NOT_RUN)

    with ThreadPoolExecutor(len(roots)) as pool:
        failed = [
            result
            for result in pool.map(evaluation, (False, True))
            if result.outcome in (MutantOutcome.KILLED, MutantOutcome.BROKEN)
        ]
    for failure in failed:
        print(f"the tests fail without any mutant: {failure.by} {failure.failed}", file=sys.stderr)
    return not failed


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m kframe_simulator.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="ids of mutants; all without any")
    parser.add_argument("--seeds", help="also run the simulator on these seeds, such as 1..2000")
    parser.add_argument(
        "--no-tests", dest="tests", action="store_false", help="run only the simulator, and not the tests"
    )
    parser.add_argument(
        "--keep", type=Path, help="keep evaluations in this file as they come, and run only what is not there"
    )
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument(
        "--evidence",
        type=Path,
        help="write the page of the results to this file, the results to a JSON file beside it, and "
        "docs/evidence/defects.md; with --no-tests and --keep only the results of the simulator",
    )
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without any mutant first")
    parser.add_argument("--page", action="store_true", help="write docs/evidence/defects.md and exit")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
