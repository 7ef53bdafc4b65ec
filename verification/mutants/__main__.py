"""Draw mutants of each area, run its tests on them, and write ``docs/evidence/mutants.json`` and ``mutants.md``.

The draw depends on the commit alone. A run that was interrupted continues with the mutants that have not run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.source import ROOT
from tests.tools import ToolMissing
from verification.mutants.areas import AREAS
from verification.mutants.report import Mutant, mutants, page, record
from verification.mutants.session import Session


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 if tests noticed all mutants but equivalent ones, 1 if not, and 2 if the run is impossible."""
    arguments = _arguments(words)
    changed = _git("status", "--porcelain", "--", *(path for area in AREAS for path in (area.package, *area.tests)))
    if changed:
        print(f"mutants are drawn of a commit: found changed files, expected none:\n{changed}", file=sys.stderr)
        return 2
    commit = _git("rev-parse", "HEAD")
    results: list[tuple[Session, list[Mutant]]] = []
    try:
        for area in AREAS:
            if not arguments.area or area.name in arguments.area:
                session = Session(area, commit, arguments.draw)
                results.append((session, mutants(session.run())))
    except (ToolMissing, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 2
    options = [f"--draw {arguments.draw}", *(f"--area {name}" for name in arguments.area)]
    document = record(results, " ".join(("python -m verification.mutants", *options)))
    arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(page(document), encoding="utf-8")
    return int(any(mutant.outcome == "survived" for _, selected in results for mutant in selected))


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m verification.mutants", description=__doc__)
    parser.add_argument("--draw", type=int, default=500, help="mutants of each area")
    parser.add_argument("--area", action="append", default=[], choices=[area.name for area in AREAS], help="repeatable")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "evidence" / "mutants.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
