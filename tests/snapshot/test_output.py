"""Rows and records in every output format, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from kframe.cli.layout import cell
from kframe.cli.output import (
    OUTPUTS,
    OutputTable,
    ReportingGroup,
    emit_heading,
    emit_record,
    emit_rows,
)
from kframe.errors import InputError

ROWS: list[dict[str, Any]] = [
    {"topic": "a", "count": 1, "live": True, "isr": [1, 2], "rack": None, "configs": {"k": "v"}},
    {"topic": "long-name", "count": 100, "live": False, "isr": [], "rack": "r, 1", "configs": {}},
]
TABLE = OutputTable("test.rows/v1", tuple(ROWS[0]), ROWS, frozenset({"configs"}))


def printed(action: Callable[[], None], *, color: bool = False) -> str:
    @click.command()
    def command() -> None:
        action()

    result = CliRunner().invoke(command, color=color)
    assert result.exit_code == 0, result.exception
    return result.stdout


RENDERED = {
    "table": """\
TOPIC      COUNT  LIVE  ISR  RACK
a              1  yes   1,2  -
long-name    100  no    -    r, 1
""",
    "wide": """\
TOPIC      COUNT  LIVE  ISR  RACK  CONFIGS
a              1  yes   1,2  -     k=v
long-name    100  no    -    r, 1  -
""",
    "csv": """\
topic,count,live,isr,rack,configs
a,1,true,"1,2",,k=v
long-name,100,false,,"r, 1",
""",
}


@pytest.mark.parametrize("output, expected", RENDERED.items(), ids=RENDERED)
def test_rows(output: str, expected: str) -> None:
    assert printed(lambda: emit_rows(TABLE, output)) == expected


@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []], ids=["two", "one", "none"])
def test_rows_as_data(rows: list[dict[str, Any]]) -> None:
    table = OutputTable("test.rows/v1", tuple(ROWS[0]), rows)
    document = {"schema": "test.rows/v1", "rows": rows}
    assert json.loads(printed(lambda: emit_rows(table, "json"))) == document
    assert yaml.safe_load(printed(lambda: emit_rows(table, "yaml"))) == document
    lines = printed(lambda: emit_rows(table, "jsonl")).splitlines()
    assert [json.loads(line) for line in lines] == [{"schema": "test.rows/v1", **row} for row in rows]


@pytest.mark.parametrize("output", OUTPUTS)
def test_rows_are_printed_incrementally(output: str) -> None:
    calls = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal calls
        while True:
            calls += 1
            if calls > 5_000:
                raise InputError("row 5001", "no end", "an end")
            yield ROWS[0]

    @click.group(cls=ReportingGroup)
    def group() -> None:
        pass

    @group.command()
    def rows() -> None:
        emit_rows(OutputTable("test.rows/v1", tuple(ROWS[0]), endless()), output)

    result = CliRunner().invoke(group, ["rows"])
    assert result.exit_code == 2
    assert result.stderr == "Error: row 5001: found no end, expected an end\n"
    assert len(result.stdout) > 5_000 * 10


def test_column_widths_fit_first_rows() -> None:
    rows = [{"name": "x"}] * 1_000 + [{"name": "longer"}, {"name": "y"}]
    lines = printed(lambda: emit_rows(OutputTable("t/v1", ("name",), rows), "table")).splitlines()
    assert lines[0] == "NAME"
    assert lines[-2:] == ["longer", "y"]


@pytest.mark.parametrize(
    "output, expected",
    [
        ("table", "name       x\nlong name  -\nlines      one\n           two\nmapping    k: v\n"),
        ("wide", "name       x\nlong name  -\nlines      one\n           two\nmapping    k: v\nhidden     7\n"),
        ("csv", 'name,long_name,lines,mapping,hidden\nx,,"one,two",k=v,7\n'),
    ],
)
def test_record(output: str, expected: str) -> None:
    record = {"name": "x", "long_name": None, "lines": ["one", "two"], "mapping": {"k": "v"}, "hidden": 7}
    assert printed(lambda: emit_record("t/v1", record, output, wide=("hidden",))) == expected


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (1.5, "1.5"),
        ("", ""),
        ([], "-"),
        ([1, None], "1,-"),
        ({}, "-"),
        ({"a": 1, "b": [2, 3]}, "a=1,b=2,3"),
        ("\x1b[31mred\n", "\\x1b[31mred\\n"),
        ("ärger", "ärger"),
    ],
)
def test_cell(value: Any, expected: str) -> None:
    assert cell(value) == expected


@pytest.mark.parametrize(
    "terminal, no_color, expected",
    [(True, None, "\x1b[1mH\x1b[0m\n"), (True, "1", "H\n"), (True, "", "\x1b[1mH\x1b[0m\n"), (False, None, "H\n")],
)
def test_color(terminal: bool, no_color: str | None, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert printed(lambda: emit_heading("H"), color=terminal) == expected
