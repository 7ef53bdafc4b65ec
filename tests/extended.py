"""Run the tests that ``make test`` leaves out, and write their record and its page: ``make test-extended``.

They are marked ``extended``: they check on further releases, sessions or faults what another test checks. The
record is written after each file of tests, so an ended run keeps what it has seen. It has the newest run of each file.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from kframe_kafka_wire.testing.evidence import facts_lines, run_facts

from tests.architecture.source import ROOT

_PYTEST: Final = (
    sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "-m",
    "extended",
)  # fmt: skip
_FOLDERS: Final = ("tests", "simulator", "plugins")
_OUTCOMES: Final = ("passed", "failed", "skipped")
#: pytest's exit codes for no test, and for passed tests.
_NONE_SELECTED, _PASSED = 5, 0
_INTRODUCTION: Final = """\
# Extended tests

`make test-extended` runs the tests with the mark `extended`, which `make test` leaves out. They check with further
releases, protocols, security settings and faults what another test checks. [campaigns.md](../howto/campaigns.md) has
the command.
"""


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The page of a record: for each run its facts, a row for each file of tests, and the tests that failed."""
    lines = [_INTRODUCTION]
    for run in runs:
        files: Mapping[str, Any] = run["files"]
        failures = [f"- `{test}`" for file in files.values() for test in file["failures"]]
        lines += [
            *facts_lines(run),
            "",
            "| file | passed | failed | skipped | duration |\n|---|---|---|---|---|",
            *(
                f"| `{name}` | {' | '.join(str(file[outcome]) for outcome in _OUTCOMES)} | {file['seconds']:.0f} s |"
                for name, file in files.items()
            ),
            "",
            *(["Failed:", "", *failures, ""] if failures else []),
        ]
    return "\n".join(lines)


def with_result(runs: Sequence[dict[str, Any]], name: str, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The runs with the result of a file in the last one, and without earlier results of this file."""
    earlier = [{**run, "files": {file: old for file, old in run["files"].items() if file != name}} for run in runs[:-1]]
    latest = {**runs[-1], "files": {**runs[-1]["files"], name: result}}
    return [*(run for run in earlier if run["files"]), latest]


def file_result(report: Path) -> dict[str, Any]:
    """The counts, the seconds and the failed tests in a JUnit report of pytest."""
    counts, failures, seconds = Counter[str](), [], 0.0
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        outcomes = {child.tag for child in case}
        outcome = "failed" if outcomes & {"failure", "error"} else "skipped" if "skipped" in outcomes else "passed"
        counts[outcome] += 1
        seconds += float(case.get("time", 0))
        if outcome == "failed":
            failures.append(f"{case.get('classname')}::{case.get('name')}")
    return {**{outcome: counts[outcome] for outcome in _OUTCOMES}, "seconds": round(seconds, 1), "failures": failures}


def files_of(arguments: Sequence[str]) -> list[str]:
    """The files with selected tests. ``arguments`` are those of pytest."""
    command = [*_PYTEST, "--collect-only", "-qq", *_FOLDERS, *arguments]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if collected.returncode not in (_PASSED, _NONE_SELECTED):
        sys.exit(collected.stdout + collected.stderr)
    return [line.rpartition(":")[0] for line in collected.stdout.splitlines() if ".py: " in line]


def main() -> int:
    """Run the tests. Exit code 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, required=True, help="the record to write, a .json file")
    arguments, selection = parser.parse_known_args()
    chosen = f" ARGS={shlex.quote(shlex.join(selection))}" if selection else ""
    path: Path = arguments.record
    runs: list[dict[str, Any]] = json.loads(path.read_text())["runs"] if path.exists() else []
    runs.append({**run_facts(f"make test-extended{chosen}"), "files": {}})
    files = files_of(selection)
    if not files:
        parser.error("no extended test is selected")
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(files):
            report = Path(folder) / f"{number}.xml"
            ended = subprocess.run([*_PYTEST, f"--junitxml={report}", name, *selection], cwd=ROOT, check=False)
            if not report.exists():
                sys.exit(f"{name}: pytest has ended with {ended.returncode} and without a report")
            runs = with_result(runs, name, file_result(report))
            path.write_text(json.dumps({"runs": runs}, indent=1) + "\n")
            path.with_suffix(".md").write_text(page(runs))
    return int(any(file["failed"] for file in runs[-1]["files"].values()))


if __name__ == "__main__":
    sys.exit(main())
