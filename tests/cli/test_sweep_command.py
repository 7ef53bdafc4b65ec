"""``kframe whatif sweep``: exit codes, files, and equal content in every output format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kframe.cli.sweep import SORT_BY
from kframe.snapshot import write_snapshot
from kframe.whatif import SortBy
from tests.cli.running import document, whatif
from tests.whatif.samples import small


def rows(snapshot: Path, *arguments: str) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = document("sweep", snapshot, *arguments)["rows"]
    return result


def test_json_has_schema_summary_and_every_failure(snapshot: Path) -> None:
    parsed = document("sweep", snapshot)
    assert parsed["schema"] == "kframe.sweep/v1"
    assert (parsed["registered_brokers"], parsed["failures"]) == (3, {"broker": 3, "pair": 3, "rack": 3})
    assert parsed["findings"] == {"offline": 7, "under-min-isr": 5, "data-loss": 0, "possible-data-loss": 3}
    assert (parsed["before"]["offline"], parsed["before"]["leader_skew"]["max"]) == (1, 2)
    assert [row["brokers"] for row in parsed["rows"]][:3] == [[1, 3], [1, 2], [2, 3]]
    assert len(parsed["rows"]) == 9


def test_long_table_is_truncated_with_note(snapshot: Path) -> None:
    table = whatif("sweep", snapshot, "--limit", "1").stdout
    assert table.count("and 2 more (--limit N; data has them all)\n") == 3
    assert "fail every broker, every pair, every rack: 5 partitions" in table


def test_sweep_fails_only_requested_kinds(snapshot: Path) -> None:
    assert {row["kind"] for row in rows(snapshot, "--depth", "1")} == {"broker", "rack"}
    assert {row["kind"] for row in rows(snapshot, "--no-racks")} == {"broker", "pair"}


def test_sorting(snapshot: Path) -> None:
    assert tuple(SortBy) == SORT_BY
    assert rows(snapshot, "--sort-by", "unclean")[0]["brokers"] == [2, 3]
    skews = [row["leader_skew"] for row in rows(snapshot, "--sort-by", "skew")]
    assert skews == sorted(skews, reverse=True)


#: (arguments, exit code, text on stderr).
FAIL_ONS = [
    (("--fail-on", "offline"), 3, "--fail-on offline: 7 failures\n"),
    (("--fail-on", "data-loss"), 0, ""),
    (("--fail-on", "possible-data-loss"), 3, "--fail-on possible-data-loss: 3 failures\n"),
    (
        ("--fail-on", "under-min-isr", "--fail-on", "offline", "--depth", "1", "--no-racks"),
        3,
        "--fail-on under-min-isr: 1 failure\n--fail-on offline: 2 failures\n",
    ),
]


@pytest.mark.parametrize("arguments, code, message", FAIL_ONS)
def test_fail_on(snapshot: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = whatif("sweep", snapshot, *arguments)
    assert (result.exit_code, result.stderr) == (code, message)


def test_settings_reach_sweep(tmp_path: Path) -> None:
    write_snapshot(small(unclean=-1), tmp_path / "small")
    result = whatif(
        "sweep", tmp_path / "small", "--config", "unclean.leader.election.enable=true", "--fail-on", "data-loss"
    )
    assert (result.exit_code, result.stderr) == (3, "--fail-on data-loss: 3 failures\n")


def test_existing_output_files_are_refused(snapshot: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "all.parquet", tmp_path / "pairs.svg"
    assert whatif("sweep", snapshot, "--out", out, "--plot", plot).exit_code == 0
    assert parquet.read_table(out)["brokers"].to_pylist() == [row["brokers"] for row in rows(snapshot)]
    assert "<svg" in plot.read_text()
    second = whatif("sweep", snapshot, "--out", out)
    assert (second.exit_code, second.stdout) == (2, "")
    assert whatif("sweep", snapshot, "--out", out, "--plot", plot, "--force").exit_code == 0
