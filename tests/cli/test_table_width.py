"""Tables fit in 100 characters; columns that do not fit are named, and ``-o wide`` has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kframe.cli.app import cli
from tests.cli.running import CLUSTER, HEALTHY, kframe

CLUSTERS = (HEALTHY, CLUSTER.parent / "kafka-4-kraft-three-brokers" / "topics-describe.txt")
LISTINGS = (
    ("snapshot", "show", "SNAPSHOT", "--list", "brokers"),
    ("snapshot", "show", "SNAPSHOT", "--list", "topics"),
    ("snapshot", "show", "SNAPSHOT", "--list", "partitions"),
    ("whatif", "fail", "SNAPSHOT", "--brokers", "2"),
    ("whatif", "sweep", "SNAPSHOT"),
)


@pytest.mark.parametrize("snapshot", CLUSTERS, ids=["zookeeper", "kraft"])
@pytest.mark.parametrize("command", LISTINGS, ids=" ".join)
def test_tables_fit_or_name_the_columns_of_wide_output(command: tuple[str, ...], snapshot: Path) -> None:
    arguments = [str(snapshot) if argument == "SNAPSHOT" else argument for argument in command]
    lines = kframe(*arguments).stdout.splitlines()
    wide = kframe(*arguments, "-o", "wide").stdout
    too_wide = [line for line in lines if len(line) > 100 and "-o wide" not in line]
    omitted = {title for line in lines if line.startswith("(-o wide adds ") for title in line[14:-1].split(", ")}
    assert too_wide == []
    assert omitted <= set(wide.split())


@pytest.mark.parametrize("no_color, red", [(None, True), ("1", False)])
def test_brokers_and_partitions_that_are_offline_are_red_on_terminals(no_color: str | None, red: bool) -> None:
    arguments = ["whatif", "fail", str(HEALTHY), "--brokers", "4", "--limit", "5"]
    table = CliRunner(env={"NO_COLOR": no_color}).invoke(cli, arguments, color=True, prog_name="kframe").stdout
    lines = [line for line in table.splitlines() if line.startswith("\x1b[31m")]
    brokers = {line.split()[1] for line in lines if " down " in line}
    assert (bool(lines), brokers) == ((True, {"4"}) if red else (False, set()))
