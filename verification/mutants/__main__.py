"""Draw mutants of each area, run their tests, and write ``docs/evidence/mutants.md`` and, beside it, ``mutants.json``.

The draw depends on the commit alone. A run that was interrupted continues with the mutants that have not run.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.architecture.source import ROOT
from tests.tools import ToolMissing
from verification.mutants.areas import AREAS
from verification.mutants.report import page, record
from verification.mutants.session import Session


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 if tests noticed all mutants but equivalent ones, 1 if not, and 2 if the run is impossible."""
    arguments = _arguments(words)
    areas = [area for area in AREAS if not arguments.area or area.name in arguments.area]
    try:
        commit = _git("rev-parse", "--verify", f"{arguments.commit}^{{commit}}")
        session = Session(areas, commit, arguments.draw, arguments.seconds)
        if arguments.recheck:
            session.recheck(arguments.recheck)
        results = session.run(time.monotonic() + 60 * arguments.minutes)
    except (ToolMissing, subprocess.CalledProcessError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    options = [f"--draw {arguments.draw}", *(f"--area {name}" for name in arguments.area)]
    document = record(session, results, " ".join(("python -m verification.mutants", *options)))
    arguments.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    arguments.out.with_suffix(".md").write_text(page(document), encoding="utf-8")
    missed = any(row["outcome"] in ("survived", "not run") for area in document["areas"] for row in area["mutants"])
    return int(missed)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m verification.mutants", description=__doc__)
    parser.add_argument("--draw", type=int, default=500, help="mutants of each area")
    parser.add_argument("--area", action="append", default=[], choices=[area.name for area in AREAS], help="repeatable")
    parser.add_argument("--commit", default="HEAD", help="the mutated commit")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU of the tests of a mutant, the quickest first")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no mutant after this time")
    parser.add_argument(
        "--recheck",
        action="append",
        default=[],
        metavar="FILE",
        help="run a new test file on missed mutants; repeatable",
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "evidence" / "mutants.json")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
