"""``python -m tests.mutants``: run mutants, print what became of each; ``--page`` writes ``docs/defects.md`` anew."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

from tests.mutants import evidence, page
from tests.mutants.run import Outcome, Result, judge, nodes_of, run_tests, tree
from tests.mutants.table import Mutant, defects, mutants


def main(words: Sequence[str] | None = None) -> int:
    """Exit 0 if all mutants were killed, 1 if some survived, 2 for what cannot be run."""
    arguments = _arguments(words)
    if arguments.page:
        page.PATH.write_text(page.render())
        return 0
    chosen = [one for one in mutants() if not arguments.only or one.id in arguments.only]
    if arguments.only and len(chosen) != len(set(arguments.only)):
        print("no such mutant: " + ", ".join(set(arguments.only) - {one.id for one in chosen}), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="kframe-mutants-") as folder, ExitStack() as trees:
        roots = [trees.enter_context(tree(Path(folder) / str(job))) for job in range(arguments.jobs)]
        if not arguments.unchecked and not _sound(roots[0], chosen):
            return 2
        results = run(roots, chosen, arguments.seeds)
    if arguments.output == "json":
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        print(evidence.table(results))
    if arguments.evidence:
        arguments.evidence.write_text(evidence.page(results, arguments.seeds))
    return int(any(result.tests.outcome is not Outcome.KILLED for result in results) or bool(evidence.unseen(results)))


def run(roots: Sequence[Path], chosen: Sequence[Mutant], seeds: str | None) -> list[Result]:
    """All of them, as many at a time as there are roots; results in the order of the catalogue."""
    free: SimpleQueue[Path] = SimpleQueue()
    history = defects()
    for root in roots:
        free.put(root)

    def one(mutant: Mutant) -> Result:
        root = free.get()
        try:
            result = judge(root, mutant, history, seeds)
        finally:
            free.put(root)
        print(f"{result.tests.outcome:9} {mutant.id}: {result.tests.by}", file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(len(roots)) as pool:
        return list(pool.map(one, chosen))


def _sound(root: Path, chosen: Sequence[Mutant]) -> bool:
    """Whether the tests pass where nothing is changed, on both kernels: else a failure would prove nothing."""
    history = defects()
    for naive in (False, True):
        nodes = tuple(sorted({node for one in chosen if one.naive == naive for node in nodes_of(one, history)}))
        verdict = run_tests(root, nodes, naive) if nodes else None
        if verdict is not None and verdict.outcome not in (Outcome.SURVIVED, Outcome.NOT_RUN):
            print(f"the tests fail without any mutant: {verdict.by} {verdict.failed}", file=sys.stderr)
            return False
    return True


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("only", nargs="*", help="ids of mutants; all without any")
    parser.add_argument("--seeds", help="also run the simulator on these seeds, such as 1..2000")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    parser.add_argument("--evidence", type=Path, help="write the page with the results to this file")
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without any mutant first")
    parser.add_argument("--page", action="store_true", help="write docs/defects.md anew and end")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
