"""``kframe snapshot``: output, written files and exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kframe.cli.snapshot import group
from kframe.snapshot import generate, read_snapshot, summarize
from tests.snapshot.samples import ROOT, example

DEAD = str(example("broker-4-dead", "zookeeper"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(group, list(arguments))


def test_convert(tmp_path: Path) -> None:
    out = tmp_path / "kept"
    result = run("convert", DEAD, str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"{out}: 645 partitions, 51 topics, 6 brokers\n"
    assert read_snapshot(out).digest() == read_snapshot(DEAD).digest()


def test_convert_counts_one_topic_in_the_singular(tmp_path: Path) -> None:
    text = tmp_path / "c.txt"
    text.write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    )
    result = run("convert", str(text), str(tmp_path / "out"))
    assert result.stderr.splitlines()[0] == f"{tmp_path / 'out'}: 1 partition, 1 topic, 2 brokers"


def test_convert_lists_unknown_columns(tmp_path: Path) -> None:
    result = run("convert", str(example("healthy", "kcat")), str(tmp_path / "kept"))
    assert result.exit_code == 0
    assert "unknown: topics.topic_id, topics.deleting, topics.configs, partitions.leader_epoch" in result.stderr


def test_convert_does_not_overwrite_unasked(tmp_path: Path) -> None:
    out = str(tmp_path / "kept")
    assert run("convert", DEAD, out).exit_code == 0
    refused = run("convert", str(example("healthy", "zookeeper")), out)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--force" in refused.stderr
    assert read_snapshot(out).source.name.startswith("broker-4-dead")
    assert run("convert", str(example("healthy", "zookeeper")), out, "--force").exit_code == 0
    assert read_snapshot(out).source.name.startswith("healthy")


def test_format_can_be_forced(tmp_path: Path) -> None:
    result = run("convert", DEAD, str(tmp_path / "kept"), "--from", "kcat")
    assert result.exit_code == 2
    assert 'missing field "brokers"' in result.stderr


def test_generate(tmp_path: Path) -> None:
    out = tmp_path / "made"
    arguments = "--partitions 500 --brokers 12 --rf 2 --racks 3 --seed 7 --topics 5 --under-replicated 0.5"
    others = "--preferred-replica-imbalance 0.1 --unclean 1 --min-insync 1"
    result = run("generate", str(out), *arguments.split(), *others.split())
    assert (result.exit_code, result.stdout) == (0, "")
    summary = summarize(read_snapshot(out))
    assert (summary.partitions, summary.brokers, summary.racks, summary.topics, summary.replicas) == (
        500,
        12,
        3,
        5,
        1_000,
    )
    assert summary.under_replicated
    assert read_snapshot(out).topics.unclean(0) is True


def test_benchmark_layout_is_generated(tmp_path: Path) -> None:
    out = tmp_path / "made"
    assert run("generate", str(out), "--partitions", "1000", "--brokers", "10", "--layout", "peerbench").exit_code == 0
    assert read_snapshot(out).digest() == generate(1_000, 10, layout="peerbench").digest()


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "OUT", "--partitions", "5", "--brokers", "2"],
        ["generate", "OUT", "--brokers", "2"],
        ["generate", "OUT", "--partitions", "many", "--brokers", "2"],
        ["generate", "OUT", "--partitions", "5", "--brokers", "3", "--unclean", "nan"],
        ["generate", "OUT", "--partitions", "5", "--brokers", "3", "--layout", "spiral"],
        ["convert", "missing", "OUT"],
        ["convert", DEAD],
        ["convert", DEAD, "OUT", "--frm", "kcat"],
        ["show", "missing"],
        ["show", DEAD, "--list", "replicas"],
        ["show", DEAD, "--list", "brokers", "--topics", "t"],
        ["show", DEAD, "--topics", "no-such-topic"],
        ["show", DEAD, "-o", "xml"],
        ["sow", DEAD],
    ],
    ids=" ".join,
)
def test_usage_and_bad_input_end_with_2(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert list(tmp_path.iterdir()) == []


# show


def show(*arguments: str) -> list[dict[str, Any]]:
    document = json.loads(run("show", DEAD, *arguments, "--json").stdout)
    rows: list[dict[str, Any]] = document["rows"]
    return rows


def test_summary_as_text() -> None:
    text = run("show", DEAD).stdout
    lines = dict(line.split("  ", 1) for line in text.splitlines() if not line.startswith(" "))
    expected = {
        "brokers": "6",
        "unregistered brokers": "1",
        "offline": "5",
        "reassigning": "21",
        "racks": "3",
    }
    assert {name: lines[name].strip() for name in expected} == expected
    assert "provenance" not in text
    assert "provenance" in run("show", DEAD, "-o", "wide").stdout


def test_summary_as_data() -> None:
    by_format = {
        "json": json.loads(run("show", DEAD, "-o", "json").stdout),
        "jsonl": json.loads(run("show", DEAD, "-o", "jsonl").stdout),
        "yaml": yaml.safe_load(run("show", DEAD, "-o", "yaml").stdout),
    }
    assert by_format["json"] == by_format["jsonl"] == by_format["yaml"]
    assert by_format["json"]["schema"] == "kframe.snapshot-summary/v1"
    assert by_format["json"]["offline"] == 5


@pytest.mark.parametrize(
    "view, schema, count",
    [
        ("brokers", "kframe.snapshot-brokers/v1", 6),
        ("topics", "kframe.snapshot-topics/v1", 51),
        ("partitions", "kframe.snapshot-partitions/v1", 645),
    ],
)
def test_listings_are_equal_in_every_format(view: str, schema: str, count: int) -> None:
    document = json.loads(run("show", DEAD, "--list", view, "-o", "json").stdout)
    assert document["schema"] == schema
    assert len(document["rows"]) == count
    lines = [json.loads(line) for line in run("show", DEAD, "--list", view, "-o", "jsonl").stdout.splitlines()]
    assert lines == [{"schema": schema, **row} for row in document["rows"]]
    assert yaml.safe_load(run("show", DEAD, "--list", view, "-o", "yaml").stdout) == document
    cells = list(csv.DictReader(io.StringIO(run("show", DEAD, "--list", view, "-o", "csv").stdout)))
    assert len(cells) == count
    assert set(cells[0]) == set(document["rows"][0])
    wide = run("show", DEAD, "--list", view, "-o", "wide").stdout.splitlines()
    assert len(wide) == count + 1
    assert {title.lower().replace("-", "_") for title in wide[0].split()} == set(document["rows"][0])
    assert len(run("show", DEAD, "--list", view).stdout.splitlines()[0].split()) < len(document["rows"][0])


def test_topics_by_name() -> None:
    rows = show("--topics", "orders.dlq.v1", "--topics", "clickstream.events.v1")
    assert {row["topic"] for row in rows} == {"orders.dlq.v1", "clickstream.events.v1"}
    assert len(rows) == 25
    assert [row["topic"] for row in show("--list", "topics", "--topics", "orders.dlq.v1")] == ["orders.dlq.v1"]


def test_control_characters_in_names_are_escaped(tmp_path: Path) -> None:
    from tests.snapshot.samples import dump, dump_text, registration

    path = tmp_path / "c.zookeeper.jsonl"
    path.write_text(dump_text(dump(registration(1, rack="\x1b[2Jr"))))
    text = run("show", str(path), "--list", "brokers").stdout
    assert "\x1b" not in text
    assert "\\x1b[2Jr" in text
    path.write_text("\x1b[2J\n")
    assert "\x1b" not in run("show", str(path)).stderr


def test_help_imports_no_heavy_modules() -> None:
    code = "import sys; from kframe.cli.snapshot import group\ntry: group(['--help'])\nfinally: print(*sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "convert" in completed.stdout
    heavy = {"numpy", "pyarrow", "rich", "yaml", "msgspec", "kframe.snapshot"}
    assert set(completed.stdout.split()) & heavy == set()
