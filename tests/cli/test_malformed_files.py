"""Malformed files of all kinds, and options that contradict them: an error that names the location, and no output."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli import malformed_logs as logs
from tests.cli import malformed_texts as texts
from tests.cli.malformed_texts import MalformedFile, make
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


def words(row: MalformedFile, file: Path, new: Path) -> Iterator[str]:
    names = {"SNAPSHOT": HEALTHY, "PLAN": PLAN, "NEW": new, "F": file}
    for word in shlex.split(row.line):
        name = next((name for name in names if word == name or word.startswith((f"{name}.", f"{name}/"))), None)
        yield word if name is None else f"{names[name]}{word.removeprefix(name)}"


@pytest.mark.parametrize("row", FILES, ids=lambda row: f"{row.name} {row.line}".replace("/", "|"))
def test_malformed_file_is_refused_by_its_location(row: MalformedFile, tmp_path: Path) -> None:
    file, new = tmp_path / row.name, tmp_path / "new"
    make(row, file)
    before = {path: path.lstat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    healthy = HEALTHY.stat()
    result = kframe(*words(row, file, new))
    assert result.exit_code == row.code, result.output
    assert (result.stdout, result.stderr[:7], result.stderr.count("\n")) == ("", "error: ", 1), result.output
    assert "an error in kframe" not in result.stderr
    assert row.message.replace(" F:", f" {file}:") in result.stderr
    assert {path: path.lstat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before
    assert HEALTHY.stat() == healthy
