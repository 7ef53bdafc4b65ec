"""Malformed files of all kinds, and options that contradict them: an error that names the location, and no output."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.cli import malformed_logs as logs
from tests.cli import malformed_texts as texts
from tests.cli.malformed_texts import MalformedFile, make
from tests.cli.printing import words
from tests.cli.running import HEALTHY, PLAN, kframe

FILES: Final = [
    *texts.LISTINGS,
    *texts.METADATA,
    *texts.DUMPS,
    *texts.DIRECTORIES,
    *texts.PLANS,
    *texts.MAPS,
    *texts.WEIGHTS,
    *texts.RUNS,
    *texts.SCENARIOS,
    *texts.PROPERTIES,
    *logs.LOGS,
    *logs.DUMPS,
    *logs.COMMANDS,
]


@pytest.mark.parametrize("row", FILES, ids=lambda row: f"{row.name} {row.line}".replace("/", "|"))
def test_malformed_file_is_refused_by_its_location(row: MalformedFile, tmp_path: Path) -> None:
    file = tmp_path / row.name
    make(row, file)
    before = {path: path.lstat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    healthy = HEALTHY.stat()
    files = {"SNAPSHOT": HEALTHY, "PLAN": PLAN, "NEW": tmp_path / "new", "F": file}
    result = kframe(*words(row.line, {name: str(path) for name, path in files.items()}))
    assert result.exit_code == 2, result.output
    assert (result.stdout, result.stderr[:7], result.stderr.count("\n")) == ("", "error: ", 1), result.output
    assert "an error in kframe" not in result.stderr
    assert row.message.replace(" F:", f" {file}:") in result.stderr
    assert {path: path.lstat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before
    assert HEALTHY.stat() == healthy
