"""Tables fit in 100 characters; columns that do not fit are named, and ``-o wide`` has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import CLUSTER, HEALTHY, kframe

CLUSTERS = (HEALTHY, CLUSTER.parent / "kafka-4-kraft-three-brokers" / "topics-describe.txt")
LISTINGS = (
    ("snapshot", "show", "SNAPSHOT", "--brokers"),
    ("snapshot", "show", "SNAPSHOT", "--topics"),
    ("snapshot", "show", "SNAPSHOT", "--partitions"),
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
