"""Tables fit in 100 characters; columns that do not fit are named, and ``-o wide`` has them. Offline rows are red."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from kframe.cli.app import cli
from kframe.cli.layout import help_width
from tests.cli.printing import DEGRADED, KRAFT, LINES, LOG, TABLES, words
from tests.cli.running import CLUSTER, HEALTHY, kframe
from tests.cli.test_exits import leaves

WIDTH: Final = 100
#: Commands that need a journal, Spark or a run that breaks an invariant; their tables are printed by the same function.
ELSEWHERE: Final = {
    "plan abort",
    "plan pause",
    "plan resume",
    "plan rollback",
    "plan status",
    "sim shrink",
    "sim total",
    "spark failover",
    "spark ingest",
    "spark plan",
    "spark report",
    "spark requests",
    "spark sweep",
    "spark validate",
}


@pytest.mark.parametrize("columns", [None, "0", "40", "60", "79", "80", "200", "wide"])
def test_help_is_as_wide_as_that_of_click(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert help_width() == click.HelpFormatter().width


def test_every_command_with_tables_is_listed() -> None:
    with_output = {
        " ".join(path) for path, command in leaves(cli) if any("--output" in option.opts for option in command.params)
    }
    assert TABLES.keys() | ELSEWHERE == with_output


@pytest.mark.parametrize("line", LINES)
def test_tables_fit_or_name_the_columns_of_wide_output(line: str, files: dict[str, str]) -> None:
    result = kframe(*words(line, files), "-o", "table")
    assert result.exit_code in (0, 1, 2, 3)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.stdout
    new_files = [files[name] for name in ("NEW", "MOVE", "ORDERS")]
    lines = [row for row in result.stdout.splitlines() if not any(path in row for path in new_files)]
    assert [row for row in lines if len(row) > WIDTH] == []


@pytest.mark.parametrize("snapshot", [HEALTHY, KRAFT, LOG], ids=["zookeeper", "describe", "kraft"])
@pytest.mark.parametrize("words", ["snapshot show --list brokers", "snapshot show --list partitions", "whatif sweep"])
def test_columns_that_do_not_fit_are_named(words: str, snapshot: Path) -> None:
    group, name, *options = words.split()
    table, wide = (kframe(group, name, snapshot, *options, "-o", output).stdout for output in ("table", "wide"))
    omitted = [text for text in table.replace(",\n", ", ").splitlines() if text.startswith("(-o wide adds ")]
    titles = {title for text in omitted for title in text[14:-1].split(", ")}
    assert titles <= set(wide.split())


#: Commands that show what is offline, and the words with which each red line begins.
OFFLINE: Final = (
    (f"whatif fail {HEALTHY} --brokers 4 --limit 5", {"offline 0 5", "4 rack-0 down"}),
    (f"snapshot show {DEGRADED}", {"offline 5"}),
    (f"snapshot show {DEGRADED} --list brokers", {"4 no -"}),
    (f"snapshot show {DEGRADED} --list topics", {"clickstream.snapshots.v1 6 1"}),
    (f"snapshot show {DEGRADED} --topics clickstream.snapshots.v1", {"clickstream.snapshots.v1 3 -1"}),
    (f"whatif sweep {DEGRADED} --depth 1 --no-racks --limit 1", {"broker 5 12"}),
    (f"log at {LOG} --offset 700", {"offline 14"}),
)


@pytest.mark.parametrize("line, expected", OFFLINE, ids=[line.replace(str(CLUSTER), "") for line, _ in OFFLINE])
@pytest.mark.parametrize("no_color", [None, "1"])
def test_what_is_offline_is_red_on_terminals(line: str, expected: set[str], no_color: str | None) -> None:
    runner = CliRunner(env={"NO_COLOR": no_color})
    colored, plain = (
        runner.invoke(cli, line.split(), color=color, prog_name="kframe").stdout for color in (True, False)
    )
    assert "\x1b" not in plain
    assert click.unstyle(colored) == plain
    red = [click.unstyle(text).split() for text in colored.splitlines() if text.startswith("\x1b[31m")]
    starts = {start for start in expected if any(words[: len(start.split())] == start.split() for words in red)}
    assert starts == (set() if no_color else expected)
    assert bool(red) == (no_color is None)
