"""``kframe spark report`` and the table of ``sweep``, from a fleet on disk to rows, tables and plots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kframe.pages.render import document
from kframe.snapshot.generate import Health, generate
from kframe.spark.play import BROKER_COUNTS, CHANGES, CONDITIONS, IMPACTS, REQUESTS
from kframe.spark.report import REPORTS, page_of, write_plot
from kframe.spark.row_types import LeftOutCluster
from kframe.whatif import WhatIf
from tests.cli.running import kframe
from tests.schemas import assert_valid
from tests.spark.fleets import snapshot_directory
from tests.spark.outcomes import Rows, reference_rows, scenario

pytestmark = pytest.mark.usefixtures("spark")
EAST = generate(
    60, 4, racks=2, seed=3, health=Health(under_replicated=0.4, preferred_replica_imbalance=0.2, unclean=0.3)
)
WEST = generate(40, 3, racks=2, seed=4)


def table_lines(output: str) -> list[str]:
    """The lines of a printed table, without the last ones, about left-out columns."""
    return output.partition("(-o wide")[0].splitlines()


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Clusters east and west."""
    exports = tmp_path / "fleet"
    exports.mkdir()
    snapshot_directory(exports / "east", EAST)
    snapshot_directory(exports / "west", WEST)
    return exports


def test_report_sums_written_tables(tmp_path: Path) -> None:
    """One pass through all reports, since each Spark query takes time."""
    out, plot = tmp_path / "out", tmp_path / "worst.svg"
    tables = {
        name: reference_rows(snapshot, scenario(brokers=[2], name="fail-2"), cluster=name)
        for name, snapshot in (("east", EAST), ("west", WEST))
    }
    for cluster, rows in tables.items():
        _write(out, cluster, rows)

    rows_ = _rows("report", out, "--plot", plot, "--report", tmp_path / "worst.html")
    assert "<td>fail-2</td>" in (tmp_path / "worst.html").read_text()
    expected: Rows = []
    for name, snapshot in (("east", EAST), ("west", WEST)):
        outcome = WhatIf(snapshot).fail(brokers=[2])
        last, impact = tables[name]["conditions"][-1], tables[name]["impacts"][0]
        columns = {key: (last | impact)[key] for key in rows_[0] if not key.startswith("leader_skew")}
        leader_skews = {
            f"leader_skew_{when}": health.leader_skew.max_mean_ratio
            for when, health in (("before", outcome.before), ("after", outcome.after))
        }
        expected.append(columns | leader_skews)
    rounded = [row | {name: round(row[name], 3) for name in row if name.startswith("leader_skew")} for row in rows_]
    assert rounded == sorted(expected, key=lambda row: (-row["offline"], -row["under_min_isr"], row["cluster"]))
    assert "east  fail-2" in plot.read_text()

    rows_ = _rows("report", out, "--by", "broker")
    sent = {
        key: sum(row[key] for row in tables["east"]["requests"] if row["broker_id"] == 3)
        for key in ("requests", "entries", "bytes")
    }
    (third,) = (row for row in rows_ if (row["cluster"], row["broker_id"]) == ("east", 3))
    (counts,) = (row for row in tables["east"]["broker_counts"] if row["broker_id"] == 3)
    assert third == counts | sent
    (failed,) = (row for row in rows_ if (row["cluster"], row["broker_id"]) == ("east", 2))
    assert (failed["registered_after"], failed["requests"], failed["bytes"]) == (False, 0, 0)

    racks = _rows("report", out, "--by", "rack")
    assert {row["brokers_before"] - row["brokers_after"] for row in racks if row["rack"] == third["rack"]} <= {0, 1}
    for name in ("leaders_after", "replicas_before", "bytes"):
        assert sum(row[name] for row in racks) == sum(row[name] for row in rows_)

    (topic,) = {row["topic"] for row in tables["east"]["changes"][:1]}
    changed = [row for row in tables["east"]["changes"] if row["topic"] == topic]
    elected = [
        row
        for row in changed
        if row["leader_before"] != row["leader_after"] and min(row["leader_before"], row["leader_after"]) >= 0
    ]
    by_topic = {(row["cluster"], row["topic"]): row for row in _rows("report", out, "--by", "topic")}
    assert by_topic["east", topic] == {
        "cluster": "east",
        "scenario": "fail-2",
        "topic": topic,
        "changed": len(changed),
        "leaders_moved": len(elected),
        **{name: sum(row[name] for row in changed) for name in ("went_offline", "came_online", "unclean")},
    }
    assert sum(row["changed"] for row in by_topic.values()) == sum(
        len(snapshot["changes"]) for snapshot in tables.values()
    )

    (out / "_done" / "impacts" / "cluster=east" / "scenario=fail-2").unlink()
    assert {row["cluster"] for row in _rows("report", out)} == {"west"}
    short = kframe("spark", "report", out, "--limit", 0)
    assert (len(table_lines(short.stdout)), short.stderr) == (1, "and more: --limit shows them\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere"], "nowhere: no such directory, expected a directory that kframe spark failover --out wrote"),
        (["fleet"], "fleet: found nothing played"),
        (["fleet", "--plot", "worst.pdf"], "worst.pdf: found a name that ends in '.pdf', expected .svg or .png"),
    ],
)
def test_report_refuses_invalid_input(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(fleet.parent)
    result = kframe("spark", "report", *options)
    assert result.exit_code == 2
    assert message in result.stderr


def test_sweep_table_has_the_worst_of_each_kind(fleet: Path) -> None:
    short = kframe("spark", "sweep", fleet, "--depth", 1, "--limit", 1, "--sort-by", "under-min-isr")
    assert sorted(line.split()[:3:2] for line in table_lines(short.stdout)[1:]) == [
        ["east", "broker"],
        ["east", "rack"],
        ["west", "broker"],
        ["west", "rack"],
    ]


def test_plot_contains_numbers(tmp_path: Path) -> None:
    row = {"cluster": "east-" + "x" * 40 + "-2026", "scenario": "fail-2", "offline": 12345, "under_min_isr": None}
    for rows, texts in (([row], ["east-xxxxxxxxx…xxxxxxxx-2026  fail-2", "12,345", "not known"]), ([], ["offline"])):
        picture = tmp_path / f"{len(rows)}.svg"
        write_plot(rows, picture)
        drawn = picture.read_text()
        assert [text for text in texts if text not in drawn] == []


def test_page_has_the_worst_rows_and_what_is_left_out() -> None:
    names = REPORTS["rack"].table.schema.names
    row = dict.fromkeys(names, 0) | {"cluster": "east", "scenario": "fail-2", "rack": None, "leaders_before": 7}
    text = document(page_of("rack", "out", [row], 9, [LeftOutCluster("west", None, "it has no brokers")]))
    assert "results in out, by rack" in text
    assert "east fail-2 no rack: 7 before, 0 after" in text
    assert "1 of 9 rows" in text
    assert "it has no brokers" in text


def _rows(name: str, *options: Any) -> Rows:
    result = kframe("spark", name, *options, "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert_valid(document, document["schema"])
    rows: Rows = document["rows"]
    return rows


def _write(out: Path, cluster: str, tables: Mapping[str, Rows]) -> None:
    """Write the tables of scenario ``fail-2`` as stages do."""
    part = Path(f"cluster={cluster}", "scenario=fail-2")
    for table in (CHANGES, BROKER_COUNTS, CONDITIONS, IMPACTS, REQUESTS):
        directory = out / table.name / part
        directory.mkdir(parents=True)
        rows = pa.Table.from_pylist(tables[table.name], table.schema).drop_columns(["cluster", "scenario"])
        parquet.write_table(rows, directory / "part-0.parquet")
    for summary in (IMPACTS, REQUESTS):
        mark = out / "_done" / summary.name / part
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
