"""Runs mutants: each in a copy of the tree, against its tests and against the simulator."""

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

#: What a run needs of the tree; the compiled kernels stand in it.
COPIED: Final = ("kframe", "simulator", "plugins", "tests", "examples", "docs", "pyproject.toml", "CHANGELOG.md")
#: A mutant may wait for ever for what never comes, test after test.
TEST_TIMEOUT_S: Final = 60
TESTS_TIMEOUT_S: Final = 900
SEEDS_TIMEOUT_S: Final = 3600
#: By seed, and whether on naive kernels: whether it breaks nothing without a mutant.
Clean: TypeAlias = dict[tuple[int, bool], bool]
#: pytest's exit codes: all passed; some failed; no test was collected.
_PASSED, _FAILED = 0, 1


class Outcome(StrEnum):
    """What became of a mutant under one kind of test."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOT_RUN = "not run"
    BROKEN = "broken"
    """It is no mutant: its tests do not even start."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An outcome, and by whom: the first test that failed, the seed and the invariant, or what kept it from running.

    ``failed`` has those of the node ids asked for at which something failed.
    """

    outcome: Outcome
    by: str = ""
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """One mutant's evaluations; its tests have taken ``took_s`` seconds."""

    mutant: Mutant
    tests: Evaluation
    simulator: Evaluation
    took_s: float = 0.0


@contextlib.contextmanager
def tree(folder: Path) -> Iterator[Path]:
    """A copy of what runs, in ``folder``; it goes again."""
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
    """The mutant in the tree at ``root``, which is as it was afterwards. Python tells sources apart by size and second:
    what was compiled of this file goes each time."""
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
    """That of a process that runs the tree at ``root``: its packages come first."""
    path = os.pathsep.join(
        map(str, [root, root / "simulator", *sorted(item.parent for item in root.glob("plugins/*/pyproject.toml"))])
    )
    kernels = {"KFRAME_KERNELS": "reference"} if naive else {}
    return os.environ | {"PYTHONPATH": path} | kernels


def _run(
    command: Sequence[str], root: Path, naive: bool, timeout_s: float
) -> subprocess.CompletedProcess[str] | Evaluation:
    """What a process said in the tree at ``root``, or that it did not end."""
    try:
        return subprocess.run(
            command, cwd=root, env=environment(root, naive), capture_output=True, text=True, check=False,
            timeout=timeout_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Evaluation(Outcome.BROKEN, f"no end within {timeout_s} s")


def run_tests(root: Path, nodes: tuple[str, ...], naive: bool) -> Evaluation:
    """Pytest on ``nodes``, all of them: which tests notice is notified of each."""
    report, settings = root / "report.xml", root / "pyproject.toml"
    report.unlink(missing_ok=True)
    # Else the settings, and the names in the report, would be those of the one plugin that all nodes are of.
    rooted = ["-c", str(settings)] if settings.exists() else []
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_TIMEOUT_S}",
        f"--junitxml={report}", *rooted, *nodes,
    ]  # fmt: skip
    done = _run(command, root, naive, TESTS_TIMEOUT_S)
    if isinstance(done, Evaluation):
        return done
    if done.returncode not in (_PASSED, _FAILED):
        return Evaluation(Outcome.BROKEN, (done.stdout + done.stderr).strip()[-400:])
    return read_report(report.read_text(), nodes)


def read_report(report: str, nodes: Sequence[str]) -> Evaluation:
    """What pytest's XML says of a run of ``nodes`` in which tests passed or failed."""
    cases = list(ElementTree.fromstring(report).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    if failed:
        names = [_node(case) for case in failed]
        noticed = tuple(node for node in nodes if any(_is_of(name, node) for name in names))
        return Evaluation(Outcome.KILLED, str(failed[0].get("name")), noticed)
    if all(case.find("skipped") is not None for case in cases):
        return Evaluation(Outcome.NOT_RUN, "all its tests were skipped")
    return Evaluation(Outcome.SURVIVED, f"{len(cases)} tests passed")


def run_simulator(root: Path, mutant: Mutant, seeds: str, clean: Clean | None = None) -> Evaluation:
    """The simulator on a mutant, seed after seed, until one breaks an invariant that keeps all of them without it.

    ``clean`` has seeds that were played without any mutant, and whether they break nothing; others are added.
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
    return Evaluation(Outcome.SURVIVED, f"{seeds} passed, but for what fails without it, too")


def play_seeds(root: Path, seeds: str, naive: bool) -> tuple[Evaluation, int | None]:
    """What seeds come to in the tree at ``root`` as it is, and the first that broke an invariant."""
    command = [sys.executable, "-m", "kframe_simulator.mutants.seeds", seeds]
    done = _run(command, root, naive, SEEDS_TIMEOUT_S)
    if isinstance(done, Evaluation):
        return done, None
    if done.returncode != 0:
        return Evaluation(Outcome.BROKEN, done.stderr.strip()[-400:]), None
    return read_seeds(done.stdout, seeds)


def read_seeds(notified: str, seeds: str) -> tuple[Evaluation, int | None]:
    """The output of ``kframe_simulator.mutants.seeds``. An exception in the simulation itself is no violation."""
    result = json.loads(notified.splitlines()[-1])
    if "seed" in result:
        return Evaluation(Outcome.KILLED, f"seed {result['seed']}, {result['invariant']}"), int(result["seed"])
    if "raised" in result:
        return Evaluation(Outcome.BROKEN, result["raised"]), None
    return Evaluation(Outcome.SURVIVED, f"{seeds} passed"), None


def nodes_of(mutant: Mutant, history: tuple[Defect, ...]) -> tuple[str, ...]:
    """The tests that a mutant names, and those of the defects that it belongs to that need no real servers."""
    theirs = {node for defect in history if defect.number in mutant.rules for node in defect.tests if not is_real(node)}
    return tuple(sorted(theirs | set(mutant.tests)))


def evaluate(
    root: Path, mutant: Mutant, history: tuple[Defect, ...], seeds: str | None, tests: bool = True,
    clean: Clean | None = None,
) -> Result:  # fmt: skip
    """Both evaluations on one mutant, in the tree at ``root``, as far as they are asked for."""
    by_tests = by_simulator = Evaluation(Outcome.NOT_RUN, "not asked for")
    started = time.monotonic()
    if tests:
        with mutated(root, mutant):
            by_tests = run_tests(root, nodes_of(mutant, history), mutant.naive)
    took_s = time.monotonic() - started
    if seeds is not None and not mutant.simulated:
        by_simulator = Evaluation(Outcome.NOT_RUN, "the simulator does not run this code")
    elif seeds is not None:
        by_simulator = run_simulator(root, mutant, seeds, clean)
    return Result(mutant, by_tests, by_simulator, took_s)


def _node(case: ElementTree.Element) -> str:
    """The node id of a reported test."""
    return f"{str(case.get('classname')).replace('.', '/')}.py::{case.get('name')}"


def _is_of(name: str, node: str) -> bool:
    """Whether a test is the one asked for, or one of its parameters, or one of that file."""
    return name == node or name.startswith((f"{node}[", f"{node}::"))
