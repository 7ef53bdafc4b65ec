"""Run all tests but those of matrices, and record the result of each test file with the commit: ``make test-all``.

Three lanes run beside each other: tests without servers on release kernels, tests with servers, and tests of kernels on
debug kernels. A file that passed at the tested commit does not run again, so an interrupted run continues. With
``--matrix NAME`` the runner plays the cases of one matrix instead, which have a record of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.architecture.source import ROOT
from tests.recording import OUTCOMES, FileResult, RecordReader
from verification.support.evidence import facts_lines, run_facts

_FOLDERS: Final = ("tests", "simulator", "plugins", "benchmarks/suite")
_DEBUG_LIBRARY: Final = ROOT / "build" / "debug" / "lib"
#: Records of lanes that can be continued.
_RECORDS: Final = ROOT / "build" / "tests"
#: pytest's exit codes for passed tests, and for no test.
_NOTHING_FAILED: Final = {0, 5}
_INTRODUCTIONS: Final = {
    "make test-all": """\
# All tests

`make test-all` runs every test but those of matrices, which have commands and records of their own
([campaigns.md](../howto/campaigns.md)). Each row is a test file; its duration is the sum of its tests.
""",
    "python -m tests.all_tests --matrix replication": """\
# Runs of the replication matrix

`python -m tests.all_tests --matrix replication` plays every case of `test_replication.py` on each set-up of brokers.
[replication.md](replication.md) describes the cases.
""",
}


@dataclass(frozen=True, slots=True)
class Lane:
    """Tests that one process of pytest runs with its workers. ``environment`` extends that of this process."""

    name: str
    marks: str
    workers: int
    niceness: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)


LANES: Final = (
    # Servers mostly wait, and depend on timeouts: two workers at the usual priority.
    Lane("servers", "real and not matrix", 2),
    Lane("release kernels", "not real", 2, 10),
    Lane(
        "debug kernels",
        "kernel and not real",
        1,
        10,
        {
            "KFRAME_DEBUG": "1",
            "PYTHONSAFEPATH": "1",
            "HYPOTHESIS_PROFILE": "brief",
            "PYTHONPATH": f"{_DEBUG_LIBRARY}{os.pathsep}{ROOT}",
        },
    ),
)
MATRICES: Final = {"replication": (Lane("replication", "matrix", 1),)}


def tested_commit() -> tuple[str, bool]:
    """The commit of the tree, and whether the tree has no other change than in its records."""
    command = ["git", "status", "--porcelain", "--", ".", ":!docs/evidence"]
    changes = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return head.strip(), not changes


def page(run: Mapping[str, Any]) -> str:
    """The page of a record: the facts of the run, a row for each test file of each lane, and the tests that failed."""
    lines = [_INTRODUCTIONS[run["target"]], *facts_lines(run)]
    for lane, results in run["lanes"].items():
        totals = [sum(result[outcome] for result in results) for outcome in OUTCOMES]
        lines += [
            "",
            f"## {lane.capitalize()}",
            "",
            f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped; {run['durations'][lane]:.0f} s.",
            "",
            "| file | passed | failed | skipped | duration |",
            "|---|---|---|---|---|",
            *(
                f"| `{result['file']}` | {' | '.join(str(result[outcome]) for outcome in OUTCOMES)}"
                f" | {result['seconds']:.1f} s |"
                for result in results
            ),
        ]
        failures = [test for result in results for test in result["failures"]]
        lines += ["", "Failed:", "", *(f"- `{test}`" for test in failures)] if failures else []
    return "\n".join(lines) + "\n"


class LaneRun:
    """A lane that runs, its log, and its record."""

    def __init__(self, lane: Lane, commit: str, arguments: Sequence[str]) -> None:
        self.lane, self._commit, self._started = lane, commit, time.monotonic()
        self.log = _RECORDS / f"{lane.name.replace(' ', '-')}.log"
        self._record = self.log.with_suffix(".jsonl")
        self._duration_path = self.log.with_suffix(".seconds")
        self._reader = RecordReader(self._record, commit)
        self._results = {result.file: result for result in self._reader.read_new()}
        command = [
            "nice",
            "-n",
            str(lane.niceness),
            sys.executable,
            "-m",
            "pytest",
            "-c",
            "pyproject.toml",
            "-p",
            "no:cacheprovider",
            "--benchmark-disable",
            "-m",
            lane.marks,
            "-n",
            str(lane.workers),
            "--dist",
            "worksteal",
            "-p",
            "tests.recording",
            "--record",
            str(self._record),
            "--record-commit",
            commit,
            *(arguments or _FOLDERS),
        ]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **lane.environment}, stdout=log, stderr=subprocess.STDOUT
            )

    def report_new(self) -> None:
        """Print the files that ended since the last call, on stderr."""
        for result in self._reader.read_new():
            self._results[result.file] = result
            counts = ", ".join(f"{getattr(result, outcome)} {outcome}" for outcome in OUTCOMES)
            print(f"[{self.lane.name}] {result.file}: {counts}; {result.seconds:.1f} s", file=sys.stderr, flush=True)

    def results(self) -> dict[str, FileResult]:
        """The newest result of each file at this commit, as far as ``report_new`` has read it."""
        return dict(sorted(self._results.items()))

    def total_seconds(self) -> float:
        """The duration of all runs of this lane at this commit. Call it once, after the end."""
        earlier = json.loads(self._duration_path.read_text()) if self._duration_path.exists() else {}
        total: float = earlier.get(self._commit, 0.0) + time.monotonic() - self._started
        self._duration_path.write_text(json.dumps({self._commit: total}))
        return total


def run_lanes(lanes: Sequence[Lane], commit: str, arguments: Sequence[str]) -> tuple[dict[str, Any], list[LaneRun]]:
    """The results and durations of the lanes, and those lanes whose pytest reported a failure."""
    _RECORDS.mkdir(parents=True, exist_ok=True)
    running = [LaneRun(lane, commit, arguments) for lane in lanes]
    results: dict[str, Any] = {"lanes": {lane.name: [] for lane in lanes}, "durations": {}}
    failed = []
    try:
        while running:
            time.sleep(1)
            for run in list(running):
                ended = run.process.poll() is not None
                run.report_new()
                if ended:
                    running.remove(run)
                    results["durations"][run.lane.name] = round(run.total_seconds())
                    results["lanes"][run.lane.name] = [asdict(result) for result in run.results().values()]
                    if run.process.returncode not in _NOTHING_FAILED or any(x.failed for x in run.results().values()):
                        failed.append(run)
    finally:
        for run in running:
            run.process.terminate()
            run.process.wait()
            run.total_seconds()
    return results, failed


def main() -> int:
    """Run the tests, and write the record and its page. Exit code 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the record to write, a .json file")
    parser.add_argument("--matrix", choices=MATRICES, help="the matrix to play")
    options, arguments = parser.parse_known_args()
    target = f"python -m tests.all_tests --matrix {options.matrix}" if options.matrix else "make test-all"
    commit, unchanged = tested_commit()
    facts = run_facts(target + (f" ARGS={shlex.quote(shlex.join(arguments))}" if arguments else ""))
    if not unchanged:
        # A changed tree has no commit that a later run could continue.
        commit = f"{commit}-changed-{os.getpid()}"
        facts["notes"] = ["The tree had further changes."]
    results, failed = run_lanes(MATRICES[options.matrix] if options.matrix else LANES, commit, arguments)
    run = {**facts, "target": target, **results}
    options.out.write_text(json.dumps(run, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(page(run))
    totals = Counter[str]()
    for lane in run["lanes"].values():
        for result in lane:
            totals.update({outcome: result[outcome] for outcome in OUTCOMES})
    for lane_run in failed:
        print(f"{lane_run.lane.name}: see {lane_run.log}\n{''.join(_last_lines(lane_run.log))}", file=sys.stderr)
    print(", ".join(f"{totals[outcome]} {outcome}" for outcome in OUTCOMES))
    return int(bool(failed))


def _last_lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines(keepends=True)[-100:]


if __name__ == "__main__":
    sys.exit(main())
