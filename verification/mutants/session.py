"""The mutants that are drawn of a commit, what its tests execute, and the results. A session continues."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.architecture.source import ROOT
from tests.tools import group_bin
from verification.mutants.areas import Area
from verification.mutants.measurement import Measurement, measure_part, test_parts
from verification.mutants.mutant import Mutant, Result, ResultLog
from verification.mutants.runner import Runner, run_tests
from verification.mutants.tree import Tree

FOLDER: Final = ROOT / "build" / "mutants"
#: One for each core of a small machine.
WORKERS: Final = 2
#: Seconds of CPU for the tests that run again.
RECHECK_S: Final = 60


@dataclass(frozen=True, slots=True)
class Session:
    """``count`` mutants of each area at a commit. Files are kept below ``build/mutants``."""

    areas: Sequence[Area]
    commit: str
    count: int
    #: The tests of a mutant run quickest first, up to these seconds of CPU, as measured with coverage.py.
    limit_s: float

    def seed(self, area: Area) -> str:
        """Return the seed of the draw of an area."""
        return f"{self.commit} {area.name}"

    @property
    def folder(self) -> Path:
        """The folder of all sessions of the commit."""
        return FOLDER / self.commit[:12]

    @property
    def trees(self) -> list[Tree]:
        """The trees of the commit, one for each worker."""
        return [Tree(self.folder / f"tree-{index}") for index in range(WORKERS)]

    def run(self, until: float) -> dict[Area, list[tuple[Mutant, Result]]]:
        """Run what has not run yet, unless the monotonic clock passes ``until``, and return all mutants.

        Raises ``ToolMissing`` without cosmic-ray, ``CalledProcessError`` if it fails, and ``RuntimeError`` if the tests
        do not run.
        """
        trees = self.trees
        for tree in trees:
            tree.write(self.commit)
        drawn = {area: self.draw(area) for area in self.areas}
        log = ResultLog(self.folder / "results.jsonl")
        # Areas alternate, so that an early end leaves a draw of each.
        alternating = [mutant for mutant in chain.from_iterable(zip_longest(*drawn.values())) if mutant]
        results = log.read()
        waiting = [mutant for mutant in alternating if self._is_waiting(results.get(mutant.key))]
        if waiting:
            Runner(trees, _measure(trees, self.folder), log, self.limit_s).run(waiting, until)
        results = log.read()
        return {
            area: [(mutant, results.get(mutant.key, Result("not run"))) for mutant in mutants]
            for area, mutants in drawn.items()
        }

    def _is_waiting(self, result: Result | None) -> bool:
        """Whether a mutant has not run, or was missed by its quickest tests within a lower limit."""
        if result is None:
            return True
        return result.outcome == "survived" and result.left_out > 0 and result.limit_s < self.limit_s

    def recheck(self, files: Sequence[str]) -> None:
        """Run test files of the last commit on each missed mutant.

        Raises ``RuntimeError`` if an area has changed since the commit of the session, or tests fail without a mutant.
        """
        packages = [area.package for area in self.areas]
        diff = ["git", "diff", "--quiet", self.commit, "HEAD", "--", *packages]
        if subprocess.run(diff, cwd=ROOT, check=False).returncode:
            raise RuntimeError(f"found changes of {' or '.join(packages)} since {self.commit[:8]}, expected none")
        log = ResultLog(self.folder / "results.jsonl")
        results = log.read()
        tree = Tree(self.folder / "tree-head")
        tree.write("HEAD")
        if run_tests(tree, files, RECHECK_S)[0] != "passed":
            raise RuntimeError(f"found tests of {' or '.join(files)} that fail without a mutant, expected none")
        for mutant in chain.from_iterable(map(self.draw, self.areas)):
            result = results.get(mutant.key)
            if result is None or result.outcome != "survived":
                continue
            with tree.mutated(mutant):
                outcome, test = run_tests(tree, files, RECHECK_S)
            if outcome == "killed":
                log.append(mutant, replace(result, outcome="killed since", test=test))

    def draw(self, area: Area) -> list[Mutant]:
        """Return the mutants of an area. The trees must be written."""
        path = self.folder / f"{area.name}-{self.count}.jsonl"
        if not path.exists():
            script = Path(__file__).with_name("draw.py")
            command = [
                str(group_bin("mutants") / "python"),
                str(script),
                area.package,
                self.seed(area),
                str(self.count),
            ]
            drawn = subprocess.run(
                command, cwd=self.trees[0].folder, check=True, stdout=subprocess.PIPE, text=True
            ).stdout
            path.write_text(drawn, encoding="utf-8")
        return [Mutant(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _measure(trees: Sequence[Tree], folder: Path) -> Measurement:
    coverage = next((group_bin("mutants").parent / "lib").glob("python*/site-packages"))
    parts = test_parts(trees[0])
    paths = [folder / "measured" / f"{index}.json" for index in range(len(parts))]
    paths[0].parent.mkdir(exist_ok=True)
    idle: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        idle.put(tree)

    def measure(files: list[str], path: Path) -> None:
        tree = idle.get()
        try:
            measure_part(tree, files, path, coverage)
        finally:
            idle.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        list(pool.map(measure, parts, paths))
    return Measurement.read(trees[0], paths)
