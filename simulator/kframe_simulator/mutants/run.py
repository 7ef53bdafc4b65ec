"""Runs mutants, each in a copy of the tree, against its tests and against the simulator."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias
from xml.etree import ElementTree

from kframe_simulator.mutants.seeds import span
from kframe_simulator.mutants.table import ROOT, Defect, Mutant, is_real

#: The paths that a run needs, compiled kernels included.
COPIED: Final = ("kframe", "simulator", "plugins", "tests", "examples", "docs", "pyproject.toml", "CHANGELOG.md")
#: A mutant may block a test; this limits the time of each test.
TEST_TIMEOUT_S: Final = 60
TESTS_TIMEOUT_S: Final = 900
SEEDS_TIMEOUT_S: Final = 3600
#: By seed and kernel (reference or not): whether the seed passes without a mutant.
Clean: TypeAlias = dict[tuple[int, bool], bool]
#: pytest's exit codes for success and for failed tests.
_PASSED, _FAILED = 0, 1


class MutantOutcome(StrEnum):
    """The outcome of a mutant under one kind of test."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOT_RUN = "not run"
    BROKEN = "broken"
    """Invalid mutant: its tests do not start."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An outcome with its cause. This is the first failed test, the seed and the invariant, or the error.

    ``failed`` has the requested node ids with a failure.
    """

    outcome: MutantOutcome
    by: str = ""
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MutantResult:
    """The evaluations of one mutant. Its tests took ``took_s`` seconds."""

    mutant: Mutant
    tests: Evaluation
    simulator: Evaluation
    took_s: float = 0.0


@contextlib.contextmanager
def tree(folder: Path) -> Iterator[Path]:
    """A temporary copy of the needed paths in ``folder``."""
    try:
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "build", "*.c"))
            elif source.exists():
                shutil.copy2(source, folder / name)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def mutated(root: Path, mutant: Mutant) -> Iterator[None]:
    """Apply the mutant to the tree at ``root``, and restore the file afterwards. Deletes the compiled file each time,
    because Python compares source files only by size and by time in seconds."""
    path = root / mutant.file
    before = path.read_text()
    try:
        mutant.apply(root)
        _forget_compiled(path)
        yield
    finally:
        path.write_text(before)
        _forget_compiled(path)


def _forget_compiled(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def environment(root: Path, naive: bool) -> dict[str, str]:
    """The environment of a process that imports packages from the tree at ``root`` first."""
    path = os.pathsep.join(
        map(str, [root, root / "simulator", *sorted(item.parent for item in root.glob("plugins/*/pyproject.toml"))])
    )
    kernels = {"KFRAME_KERNELS": "reference"} if naive else {}
    return os.environ | {"PYTHONPATH": path} | kernels


def _run(
    command: Sequence[str], root: Path, naive: bool, timeout_s: float
) -> subprocess.CompletedProcess[str] | Evaluation:
    """The output of a process in the tree at ``root``, or a timeout."""
    try:
        return subprocess.run(
            command, cwd=root, env=environment(root, naive), capture_output=True, text=True, check=False,
            timeout=timeout_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Evaluation(MutantOutcome.BROKEN, f"no end within {timeout_s} s")


def run_tests(root: Path, nodes: tuple[str, ...], naive: bool) -> Evaluation:
    """Run pytest on all ``nodes`` and report each node that failed."""
    report, settings = root / "report.xml", root / "pyproject.toml"
    report.unlink(missing_ok=True)
    # Otherwise pytest would use the settings and the root folder of the plugin that contains all nodes.
    rooted = ["-c", str(settings)] if settings.exists() else []
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_TIMEOUT_S}",
        f"--junitxml={report}", *rooted, *nodes,
    ]  # fmt: skip
    done = _run(command, root, naive, TESTS_TIMEOUT_S)
    if isinstance(done, Evaluation):
        return done
    if done.returncode not in (_PASSED, _FAILED):
        return Evaluation(MutantOutcome.BROKEN, (done.stdout + done.stderr).strip()[-400:])
    return read_report(report.read_text(), nodes)


def read_report(report: str, nodes: Sequence[str]) -> Evaluation:
    """Parse pytest's XML report of a run of ``nodes``."""
    cases = list(ElementTree.fromstring(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    if failed:
        names = [_node(case) for case in failed]
        failed_nodes = tuple(node for node in nodes if any(_is_of(name, node) for name in names))
        return Evaluation(MutantOutcome.KILLED, str(failed[0].get("name")), failed_nodes)
    if all(case.find("skipped") is not None for case in cases):
        return Evaluation(MutantOutcome.NOT_RUN, "all its tests were skipped")
    return Evaluation(MutantOutcome.SURVIVED, f"{len(cases)} tests passed")


def run_simulator(root: Path, mutant: Mutant, seeds: str, clean: Clean | None = None) -> Evaluation:
    """Play seeds with a mutant until one breaks an invariant that holds without the mutant.

    ``clean`` caches the result of each seed without a mutant; this function adds to it.
    """
    clean = {} if clean is None else clean
    first, last = span(seeds)
    while first <= last:
        with mutated(root, mutant):
            evaluation, seed = play_seeds(root, f"{first}..{last}", mutant.naive)
        if seed is None:
            return evaluation
        if (seed, mutant.naive) not in clean:
            clean[seed, mutant.naive] = play_seeds(root, str(seed), mutant.naive)[1] is None
        if clean[seed, mutant.naive]:
            return evaluation
        first = seed + 1
    return Evaluation(MutantOutcome.SURVIVED, f"{seeds} passed, but for what fails without it, too")


def play_seeds(root: Path, seeds: str, naive: bool) -> tuple[Evaluation, int | None]:
    """The outcome of seeds in the tree at ``root``, and the first seed that broke an invariant."""
    command = [sys.executable, "-m", "kframe_simulator.mutants.seeds", seeds]
    done = _run(command, root, naive, SEEDS_TIMEOUT_S)
    if isinstance(done, Evaluation):
        return done, None
    if done.returncode != 0:
        return Evaluation(MutantOutcome.BROKEN, done.stderr.strip()[-400:]), None
    return read_seeds(done.stdout, seeds)


def read_seeds(output: str, seeds: str) -> tuple[Evaluation, int | None]:
    """Parse the output of ``kframe_simulator.mutants.seeds``. An exception in the simulation is no violation."""
    result = json.loads(output.splitlines()[-1])
    if "seed" in result:
        return Evaluation(MutantOutcome.KILLED, f"seed {result['seed']}, {result['invariant']}"), int(result["seed"])
    if "raised" in result:
        return Evaluation(MutantOutcome.BROKEN, result["raised"]), None
    return Evaluation(MutantOutcome.SURVIVED, f"{seeds} passed"), None


def nodes_of(mutant: Mutant, history: tuple[Defect, ...]) -> tuple[str, ...]:
    """The tests that a mutant names, and the tests of its defects without real servers."""
    defect_nodes = {
        node for defect in history if defect.number in mutant.rules for node in defect.tests if not is_real(node)
    }
    return tuple(sorted(defect_nodes | set(mutant.tests)))


def evaluate(
    root: Path, mutant: Mutant, history: tuple[Defect, ...], seeds: str | None, tests: bool = True,
    clean: Clean | None = None,
) -> MutantResult:  # fmt: skip
    """The requested evaluations of one mutant, in the tree at ``root``."""
    by_tests = by_simulator = Evaluation(MutantOutcome.NOT_RUN, "not asked for")
    started = time.monotonic()
    if tests:
        with mutated(root, mutant):
            by_tests = run_tests(root, nodes_of(mutant, history), mutant.naive)
    took_s = time.monotonic() - started
    if seeds is not None and not mutant.simulated:
        by_simulator = Evaluation(MutantOutcome.NOT_RUN, "the simulator does not run this code")
    elif seeds is not None:
        by_simulator = run_simulator(root, mutant, seeds, clean)
    return MutantResult(mutant, by_tests, by_simulator, took_s)


def _node(case: ElementTree.Element) -> str:
    """The node id of a reported test."""
    return f"{str(case.get('classname')).replace('.', '/')}.py::{case.get('name')}"


def _is_of(name: str, node: str) -> bool:
    """Whether a test is the requested node, a parameter of it, or in the requested file."""
    return name == node or name.startswith((f"{node}[", f"{node}::"))
