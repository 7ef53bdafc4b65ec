"""``--limit`` of every listing: tables have so many rows and name the rest; data has all rows."""

from __future__ import annotations

from typing import Final

import pytest

from kframe.cli.app import cli
from tests.cli.running import CLUSTER, HEALTHY, kframe
from tests.cli.test_exits import leaves

#: Commands with ``--output`` that print one record, or the few rows of one.
RECORDS: Final = {
    "bench",
    "controller resign",
    "controller shadow",
    "controller status",
    "explain",
    "kraft format",
    "kraft recover",
    "log at",
    "log why",
    "plan abort",
    "plan pause",
    "plan resume",
    "plan rollback",
    "plan status",
    "plugins show",
    "sim replay",
    "sim shrink",
    "sim total",
    "snapshot capture",
}
#: Listings that need no cluster.
LISTINGS: Final = (
    *(f"snapshot show {HEALTHY} --list {name}" for name in ("brokers", "topics", "partitions")),
    "states",
    "schema",
    "plugins list",
    f"scenario check {CLUSTER}/a {CLUSTER}/b",
)


def test_every_listing_has_a_limit() -> None:
    without = {
        " ".join(path)
        for path, command in leaves(cli)
        if any("--output" in option.opts for option in command.params)
        and not any("--limit" in option.opts for option in command.params)
    }
    assert without == RECORDS


@pytest.mark.parametrize("line", LISTINGS, ids=[line.replace(str(CLUSTER), "") for line in LISTINGS])
def test_table_has_as_many_rows_and_counts_the_rest(line: str) -> None:
    words = [*line.split(), "-o", "wide"]
    complete = kframe(*words).stdout.splitlines()
    count = len(complete) - 1
    limited = kframe(*words, "--limit", "1").stdout.splitlines()
    assert [text.split()[0] for text in limited[1:-1]] == [complete[1].split()[0]]
    assert limited[-1] == f"and {count - 1:,} more (--limit N; data has them all)"
    assert kframe(*words, "--limit", count).stdout.splitlines() == complete
    data = kframe(*line.split(), "-o", "jsonl").stdout
    assert (kframe(*line.split(), "--limit", "1", "-o", "jsonl").stdout, len(data.splitlines())) == (data, count)


PLAN: Final = CLUSTER / "reassignment.json"


@pytest.mark.parametrize(
    "line, rests",
    [
        (f"snapshot show {HEALTHY} --list topics", [51]),
        (f"whatif fail {HEALTHY} --brokers 2", [312]),
        (f"whatif sweep {HEALTHY}", [6, 15, 3]),
        (f"whatif reassign {HEALTHY} {PLAN}", [1, 24]),
        (f"plan check {HEALTHY} {PLAN}", [1]),
        (f"plan generate {HEALTHY} --remove-brokers 1,2,3,4", [599, 6]),
    ],
)
def test_limit_of_zero_counts_all_rows(line: str, rests: list[int]) -> None:
    result = kframe(*line.split(), "--limit", "0").stdout
    assert [text.split()[1] for text in result.splitlines() if " more (--limit N; " in text] == list(map(str, rests))


def test_limit_of_a_listing_without_rows() -> None:
    assert "more" not in kframe("snapshot", "show", HEALTHY, "--list", "brokers", "--limit", "6").stdout
