"""The record of ``make test-all``: the result of each file at one commit, continued after an interruption."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.all_tests import page
from tests.architecture.source import ROOT
from tests.recording import FileResult, read_record

EVIDENCE = ROOT / "docs" / "evidence"
FILES = {
    "test_passes.py": "def test_a(): pass\ndef test_b(): pass\n",
    "test_fails.py": (
        "import pytest\ndef test_a(): pass\ndef test_b(): assert False\n@pytest.mark.skip\ndef test_c(): pass\n"
        "@pytest.fixture\ndef server(): raise OSError\ndef test_d(server): pass\n"
        "@pytest.fixture\ndef broker():\n    yield\n    assert False\ndef test_e(broker): pass\n"
    ),
    "test_cannot_be_imported.py": "import no_module_of_this_name\n",
}
PASSED = FileResult("test_passes.py", "abc", passed=2)
FAILED = FileResult(
    "test_fails.py", "abc", passed=1, failed=3, skipped=1,
    failures=["test_fails.py::test_b", "test_fails.py::test_d", "test_fails.py::test_e"],
)  # fmt: skip
UNREADABLE = FileResult("test_cannot_be_imported.py", "abc", failed=1, failures=["test_cannot_be_imported.py"])


def run_pytest(folder: Path, commit: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a folder with the recorder, outside of the tree's settings."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-c", f"{folder}/pytest.ini", "-p", "tests.recording", "-q"]
    command += ["-p", "no:cacheprovider", "--record", f"{folder}/record.jsonl", "--record-commit", commit, *options]
    return subprocess.run([*command, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False)


def recorded(folder: Path, commit: str) -> dict[str, FileResult]:
    """The record without durations."""
    results = read_record(folder / "record.jsonl", commit)
    for result in results.values():
        result.seconds = 0.0
    return results


@pytest.fixture
def test_files(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="one process"),
        pytest.param(("-n", "2", "--dist", "worksteal"), id="workers", marks=pytest.mark.extended),
    ],
)
def test_each_file_has_its_result(test_files: Path, options: tuple[str, ...]) -> None:
    completed = run_pytest(test_files, "abc", "--continue-on-collection-errors", *options)
    assert completed.returncode == 1, completed.stdout
    results = recorded(test_files, "abc")
    results["test_fails.py"].failures.sort()
    assert results == {result.file: result for result in (PASSED, FAILED, UNREADABLE)}


def test_a_file_that_passed_at_the_commit_does_not_run_again(test_files: Path) -> None:
    (test_files / "test_cannot_be_imported.py").unlink()
    run_pytest(test_files, "abc")
    (test_files / "test_fails.py").write_text("def test_a(): pass\n")
    assert "1 passed" in run_pytest(test_files, "abc").stdout
    assert "3 passed" in run_pytest(test_files, "def").stdout
    assert recorded(test_files, "abc")["test_fails.py"] == FileResult("test_fails.py", "abc", passed=1)
    assert recorded(test_files, "def").keys() == {"test_passes.py", "test_fails.py"}


def test_a_line_that_an_interruption_cut_is_ignored(test_files: Path) -> None:
    (test_files / "test_fails.py").unlink()
    (test_files / "test_cannot_be_imported.py").unlink()
    line = json.dumps({"file": "test_x.py", "commit": "abc", "passed": 1})
    (test_files / "record.jsonl").write_text(f"{line}\n{line[:20]}")
    earlier = FileResult("test_x.py", "abc", passed=1)
    assert recorded(test_files, "abc") == {"test_x.py": earlier}
    run_pytest(test_files, "abc")
    assert recorded(test_files, "abc") == {"test_x.py": earlier, "test_passes.py": PASSED}


def test_a_page_has_a_row_for_each_file_and_lists_failures() -> None:
    result: dict[str, Any] = {
        "file": "tests/docs/test_all_tests.py", "passed": 1, "failed": 1, "skipped": 0, "seconds": 2.25,
        "failures": ["tests/docs/test_all_tests.py::test_b"],
    }  # fmt: skip
    facts = {"machine": "Linux", "commit": "1234567", "command": "make test-all", "target": "make test-all"}
    lines = page({**facts, "lanes": {"servers": [result]}, "durations": {"servers": 3}}).splitlines()
    assert "| `tests/docs/test_all_tests.py` | 1 | 1 | 0 | 2.2 s |" in lines
    assert "1 passed, 1 failed, 0 skipped; 3 s." in lines
    assert "- `tests/docs/test_all_tests.py::test_b`" in lines


@pytest.mark.parametrize("name", ["tests", "replication-runs"])
def test_page_matches_the_record(name: str) -> None:
    record = EVIDENCE / f"{name}.json"
    if not record.exists():
        pytest.skip("no record of this run")
    assert record.with_suffix(".md").read_text() == page(json.loads(record.read_text()))
