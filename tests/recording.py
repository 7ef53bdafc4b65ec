"""A pytest plugin that appends the result of each test file to a record as soon as its last test has ended.

``-p tests.recording --record FILE --record-commit ID`` enables it. Files that the record already lists as passed at
this commit are not collected, so an interrupted run continues where it ended. Under pytest-xdist the main process
writes the record.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

OUTCOMES: Final = ("passed", "failed", "skipped")


@dataclass(slots=True)
class FileResult:
    """The result of one test file. ``seconds`` is the sum of its tests, ``failures`` are the ids of failed tests."""

    file: str
    commit: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


class RecordReader:
    """Reads a record that another process extends. A cut last line, which an interruption leaves, is ignored."""

    def __init__(self, path: Path, commit: str) -> None:
        self._path, self._commit, self._offset = path, commit, 0

    def read_new(self) -> Iterator[FileResult]:
        """The results of this commit that were appended since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as record:
            record.seek(self._offset)
            for line in record:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                result = FileResult(**json.loads(line))
                if result.commit == self._commit:
                    yield result


def read_record(path: Path, commit: str) -> dict[str, FileResult]:
    """The newest result of each file at ``commit``."""
    return {result.file: result for result in RecordReader(path, commit).read_new()}


class Recorder:
    """Counts reports by file, and appends a line when all tests of a file have ended. Removes a cut last line."""

    def __init__(self, path: Path, commit: str) -> None:
        self._path, self._commit = path, commit
        if path.exists():
            os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        self._remaining: Counter[str] = Counter()
        self._results: dict[str, FileResult] = {}
        self._outcomes: dict[str, str] = {}

    def expect(self, ids: Iterable[str]) -> None:
        """Note the tests that will run. Each worker of pytest-xdist collects the same ones."""
        self._remaining = Counter(test.partition("::")[0] for test in ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the tests of a run without workers."""
        if session.items:
            self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Note the tests that a worker collected."""
        if not self._results:
            self.expect(ids)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a file that cannot be imported as failed."""
        if report.failed:
            file = report.nodeid.partition("::")[0]
            self._append(FileResult(file, self._commit, failed=1, failures=[report.nodeid]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase of a test to the result of its file."""
        file = report.nodeid.partition("::")[0]
        result = self._results.setdefault(file, FileResult(file, self._commit))
        result.seconds += report.duration
        if report.when == "call" or not report.passed:
            worse = {report.outcome, self._outcomes.get(report.nodeid, "")}
            self._outcomes[report.nodeid] = next(name for name in ("failed", "skipped", "passed") if name in worse)
        if report.when != "teardown":
            return
        outcome = self._outcomes.pop(report.nodeid)
        setattr(result, outcome, getattr(result, outcome) + 1)
        if outcome == "failed":
            result.failures.append(report.nodeid)
        self._remaining[file] -= 1
        if not self._remaining[file]:
            self._append(result)

    def _append(self, result: FileResult) -> None:
        result.seconds = round(result.seconds, 1)
        with self._path.open("a") as record:
            record.write(json.dumps(asdict(result)) + "\n")


class PassedFiles:
    """Files that passed at this commit, which are not collected again."""

    def __init__(self, root: Path, results: dict[str, FileResult]) -> None:
        self._paths = {root / file for file, result in results.items() if not result.failed}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out a file that passed; other plugins decide about the rest."""
        return True if collection_path in self._paths else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the record."""
    group = parser.getgroup("record of test files")
    group.addoption("--record", type=Path, help="the record to extend, a file with a JSON line for each test file")
    group.addoption("--record-commit", default="", help="the commit that is tested")


def pytest_configure(config: pytest.Config) -> None:
    """Register the recorder in the main process, and the filter in each."""
    path: Path | None = config.getoption("--record")
    if path is None:
        return
    commit: str = config.getoption("--record-commit")
    options: Any = config
    config.pluginmanager.register(PassedFiles(config.rootpath, read_record(path, commit)))
    if not hasattr(options, "workerinput"):
        config.pluginmanager.register(Recorder(path, commit))
