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
#: Options that contradict one another or their files.
OPTIONS: Final = [
    MalformedFile("plan", "{}", line, message)
    for line, message in (
        ("plan generate SNAPSHOT --add-brokers 7:", "found '7:' without a rack"),
        ("plan generate SNAPSHOT --rebalance --report -", "found -, expected a path"),
        ("plan generate SNAPSHOT --rebalance --out ''", "--out: found an empty name"),
        ("plan generate SNAPSHOT --rebalance --out NEW --report NEW", "the file of --out, expected another"),
        ("plan generate SNAPSHOT --rebalance --out SNAPSHOT --force", "the file of SNAPSHOT, expected another"),
        ("plan generate SNAPSHOT --rebalance --broker-cap 1==2", "--broker-cap: found '1=', expected a broker id"),
        ("plan generate SNAPSHOT --rebalance --capacity 1=1e400", "found '1=1e400', expected ID=NUMBER"),
        ("plan generate SNAPSHOT --rebalance --tolerance 5%", "found '5%', expected a number such as 2.5"),
        ("plan generate SNAPSHOT --replace 1=2=3", "--replace: found '1=2', expected a broker id"),
        ("plan stage SNAPSHOT PLAN --window 22:60-23:00", "window: found '22:60-23:00'"),
        ("plan stage SNAPSHOT PLAN --rate '5 MB/h'", "found '5 MB/h', expected a rate in bytes"),
        ("plan stage SNAPSHOT PLAN --disk-capacity 1=5GB --disk-capacity 1=6GB", "found 1 twice"),
        ("plan check PLAN --controllers 9", "found options of a SNAPSHOT without one"),
        ("plan check PLAN --rack-map F", "found options of a SNAPSHOT without one"),
        ("whatif sweep SNAPSHOT --plot NEW.svg --out NEW.svg", "the file of --out, expected another"),
        ("whatif sweep SNAPSHOT --plot NEW", "found a name without an ending, expected .svg or .png"),
        ("whatif elect SNAPSHOT --type preferred --partition a-0 --partition a-0", "found a-0 twice"),
        ("snapshot show ''", "found an empty name, expected a file"),
        ("snapshot show kafka://a:1", "found the URL kafka://a:1, expected a file"),
    )
]


def words(row: MalformedFile, file: Path, new: Path) -> Iterator[str]:
    names = {"SNAPSHOT": HEALTHY, "PLAN": PLAN, "NEW": new, "F": file}
    for word in shlex.split(row.line):
        name = next((name for name in names if word == name or word.startswith((f"{name}.", f"{name}/"))), None)
        yield word if name is None else f"{names[name]}{word.removeprefix(name)}"


@pytest.mark.parametrize("row", [*FILES, *OPTIONS], ids=lambda row: f"{row.name} {row.line}".replace("/", "|"))
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


def test_table_has_a_hundred_rows() -> None:
    assert len({(row.name, row.line) for row in [*FILES, *OPTIONS]}) >= 100
