"""Runs mutants, each with its tests in a new process, in copies of a tree that share what they learn."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from verification.mutants.measurement import Measurement
from verification.mutants.mutant import Mutant, Result, ResultLog
from verification.mutants.tree import MEMORY_BYTES, Tree

#: A first process runs those of few files: the ones with the largest share of tests of the mutant, up to these seconds.
FIRST_FILES: Final = 3
FIRST_S: Final = 5.0
#: A mutant that does not end counts as noticed. Its limit in seconds of CPU is the first number, for imports, plus a
#: multiple of the seconds without a mutant. One that waits ends after a multiple of this limit.
IMPORT_S: Final = 20
LIMIT_FACTOR: Final = 3
WAIT_FACTOR: Final = 4


class Runner:
    """Runs mutants in trees, and logs the results."""

    def __init__(self, trees: Sequence[Tree], measurement: Measurement, log: ResultLog, limit_s: float) -> None:
        self._trees = trees
        self._measurement = measurement
        self._log = log
        #: The tests of a mutant run quickest first, up to these seconds of CPU, as measured with coverage.py.
        self._limit_s = limit_s
        self._lock = threading.Lock()
        #: By mutated file, how often a test noticed a mutant: it runs first on the next one.
        self._noticed: dict[str, Counter[str]] = defaultdict(Counter)
        for (file, *_), result in log.read().items():
            self._noticed[file][result.test] += result.test in measurement.seconds
        #: Tests that noticed a mutant and pass alone without one.
        self._confirmed: set[str] = set()

    def run(self, mutants: Iterable[Mutant], until: float) -> None:
        """Run the mutants, unless the monotonic clock passes ``until``."""
        waiting = iter(mutants)
        is_stopped = threading.Event()

        def work(tree: Tree) -> None:
            while time.monotonic() < until and not is_stopped.is_set():
                with self._lock:
                    mutant = next(waiting, None)
                if mutant is None:
                    return
                result = self._result(mutant, tree)
                with self._lock:
                    self._log.append(mutant, result)
                    if result.test:
                        self._noticed[mutant.file][result.test] += 1

        with ThreadPoolExecutor(len(self._trees)) as pool:
            try:
                list(pool.map(work, self._trees))
            finally:
                is_stopped.set()

    def _result(self, mutant: Mutant, tree: Tree) -> Result:
        while True:
            batches, left_out = self._batches(mutant)
            with tree.mutated(mutant):
                outcomes = (self._run(tree, batch) for batch in batches)
                outcome, test = next((pair for pair in outcomes if pair[0] != "passed"), ("survived", ""))
            if test not in self._measurement.seconds or self._passes_alone(tree, test):
                return Result(outcome, test, sum(map(len, batches)), left_out, self._limit_s)
            self._measurement.excluded.add(test)

    def _passes_alone(self, tree: Tree, test: str) -> bool:
        if test not in self._confirmed and self._run(tree, [test])[0] == "passed":
            self._confirmed.add(test)
        return test in self._confirmed

    def _batches(self, mutant: Mutant) -> tuple[list[list[str]], int]:
        """Return the tests of a mutant, first those that probably notice it, and the number of tests left out.

        Tests of a file run together, since they may share fixtures. Those that noticed a mutant of the module precede.
        """
        seconds = self._measurement.seconds
        with self._lock:
            noticed = Counter(self._noticed[mutant.file])
        quickest = sorted(self._measurement.tests(mutant), key=lambda test: (-noticed[test], seconds[test]))
        tests = _within(quickest, seconds, self._limit_s)
        number = Counter(map(_file, tests))
        shares = {file: count / self._measurement.tests_by_file[file] for file, count in number.items()}
        noticed_by_file = Counter(map(_file, noticed.elements()))
        files = sorted(number, key=lambda file: (-noticed_by_file[file], -shares[file], file))
        rank = {file: index for index, file in enumerate(files)}
        ordered = sorted(tests, key=lambda test: rank[_file(test)])
        first = _within([test for test in ordered if rank[_file(test)] < FIRST_FILES], seconds, FIRST_S)
        rest = set(tests).difference(first)
        batches = [first, [test for test in ordered if test in rest]]
        return [batch for batch in batches if batch], len(quickest) - len(tests)

    def _run(self, tree: Tree, tests: Sequence[str]) -> tuple[str, str]:
        chosen = tree.folder.with_suffix(".chosen")
        chosen.write_text(json.dumps(tests), encoding="utf-8")
        seconds = sum(self._measurement.seconds[test] for test in tests)
        return run_tests(tree, ["--chosen", chosen, *dict.fromkeys(map(_file, tests))], seconds)


def run_tests(tree: Tree, options: Sequence[object], seconds: float) -> tuple[str, str]:
    """Return ``passed``, ``killed`` or ``timeout``, and the test that failed or how the process ended.

    ``seconds`` is the CPU that the tests need without a mutant.
    """
    failed = tree.folder.with_suffix(".failed")
    failed.unlink(missing_ok=True)
    cpu_s = IMPORT_S + int(LIMIT_FACTOR * seconds)
    limits = ["--cpu-limit", cpu_s, "--memory-limit", MEMORY_BYTES]
    try:
        code = tree.run_tests(["-x", "--failed", failed, *limits, *options], WAIT_FACTOR * cpu_s)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    if code == -signal.SIGXCPU:
        return "timeout", ""
    # 5: the mutant changed the names of all tests.
    if code in (0, 5):
        return "passed", ""
    return "killed", failed.read_text(encoding="utf-8") if failed.exists() else f"exit code {code}"


def _within(tests: Iterable[str], seconds: dict[str, float], limit_s: float) -> list[str]:
    """Return the first test and those that follow within the seconds."""
    chosen: list[str] = []
    total = 0.0
    for test in tests:
        total += seconds[test]
        if chosen and total > limit_s:
            break
        chosen.append(test)
    return chosen


def _file(test: str) -> str:
    return test.partition("::")[0]
