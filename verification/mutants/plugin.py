"""A plugin of pytest: which lines each test executes and how long it takes, or a run of chosen tests in a given order.

``--measure FILE`` writes what the tests execute, with coverage.py of ``--measure-with``, a folder of packages.
``--chosen FILE`` runs the tests of a list, and ``--failed FILE`` writes the test that failed last.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from verification.mutants.areas import AREAS, MEASURED


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this plugin."""
    group = parser.getgroup("mutants")
    group.addoption("--measure", type=Path, help="write the lines that each test executes")
    group.addoption("--measure-with", help="the folder with coverage.py")
    group.addoption("--chosen", type=Path, help="run the tests of this list in its order")
    group.addoption("--failed", type=Path, help="write the name of the test that failed last")
    group.addoption("--cpu-limit", type=int, help="end the run after these seconds of CPU")
    group.addoption("--memory-limit", type=int, help="let allocations fail beyond these bytes")


def pytest_configure(config: pytest.Config) -> None:
    """Register what the options require, and set the limits."""
    for limit, kind in (("cpu_limit", resource.RLIMIT_CPU), ("memory_limit", resource.RLIMIT_AS)):
        if config.getoption(limit):
            resource.setrlimit(kind, (config.getoption(limit), resource.getrlimit(kind)[1]))
    if config.option.measure:
        config.pluginmanager.register(Measurement(config))
    if config.option.chosen:
        config.pluginmanager.register(ChosenTests(config.option.chosen))
    if config.option.failed:
        config.pluginmanager.register(FailedTest(config.option.failed))


class ChosenTests:
    """Runs the tests of a list in JSON, in its order."""

    def __init__(self, path: Path) -> None:
        tests: list[str] = json.loads(path.read_text(encoding="utf-8"))
        self.order = {test: index for index, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the tests that are not chosen."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )


class FailedTest:
    """Writes the name of a test that fails, or of a file that cannot be imported."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the test."""
        if report.failed:
            self.path.write_text(report.nodeid, encoding="utf-8")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Write the file."""
        if report.failed:
            self.path.write_text(report.nodeid, encoding="utf-8")


class Measurement:
    """Measures each test: the lines that it executes, and its seconds of CPU, which coverage.py multiplies."""

    def __init__(self, config: pytest.Config) -> None:
        # The packages of the folder must not replace those that the tests use.
        sys.path.append(config.option.measure_with)
        from coverage import Coverage

        self.path: Path = config.option.measure
        self.data = self.path.with_suffix(".coverage")
        self.root = config.rootpath
        include = [str(self.root / folder / "*") for folder in MEASURED]
        self.coverage = Coverage(data_file=str(self.data), include=include, config_file=False, messages=False)
        self.coverage.start()
        self.seconds: dict[str, float] = {}
        self.not_passed: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        """Attribute the lines to the test."""
        self.coverage.switch_context(item.nodeid)
        started = _cpu_seconds()
        result = yield
        self.seconds[item.nodeid] = _cpu_seconds() - started
        self.coverage.switch_context("")
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the tests that do not pass: they notice no mutant."""
        if not report.passed:
            self.not_passed[report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Write the tests that pass, and which of them execute each file and each line of an area."""
        self.coverage.stop()
        self.coverage.save()
        tests = [test for test in self.seconds if test not in self.not_passed]
        files, lines, imported = self._executions({test: index for index, test in enumerate(tests)})
        document = {
            "seconds": {test: round(self.seconds[test], 4) for test in tests},
            "not_passed": self.not_passed,
            "imported": imported,
            "files": {file: numbers.hex() for file, numbers in files.items()},
            "lines": {
                file: {line: numbers.hex() for line, numbers in by_line.items()} for file, by_line in lines.items()
            },
        }
        self.path.write_text(json.dumps(document), encoding="utf-8")
        self.data.unlink()

    def _executions(
        self, indexes: dict[str, int]
    ) -> tuple[dict[str, bytearray], dict[str, dict[int, bytearray]], dict[str, list[int]]]:
        """Return the tests of each file, those of each line of an area, and the lines that run between tests.

        A set of tests has a bit for each; bit 0 of byte 0 is the first test.
        """
        from coverage.numbits import numbits_to_nums

        size = len(indexes) // 8 + 1
        files: dict[str, bytearray] = defaultdict(lambda: bytearray(size))
        lines: dict[str, dict[int, bytearray]] = defaultdict(lambda: defaultdict(lambda: bytearray(size)))
        imported: dict[str, list[int]] = {}
        areas = tuple(f"{area.package}/" for area in AREAS)
        # The schema is part of coverage.py's documentation.
        query = (
            "select path, context, numbits from line_bits"
            " join file on file_id = file.id join context on context_id = context.id"
        )
        with closing(sqlite3.connect(self.data)) as database:
            for path, context, numbits in database.execute(query):
                file = os.path.relpath(path, self.root)
                if not context and file.startswith(areas):
                    imported[file] = numbits_to_nums(numbits)
                if context not in indexes:
                    continue
                byte, bit = indexes[context] // 8, 1 << indexes[context] % 8
                files[file][byte] |= bit
                if file.startswith(areas):
                    for line in numbits_to_nums(numbits):
                        lines[file][line][byte] |= bit
        return files, lines, imported


def _cpu_seconds() -> float:
    """Return the seconds of this process and of the processes that it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
