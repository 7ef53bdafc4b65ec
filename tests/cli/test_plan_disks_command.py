"""``kframe plan disks``: its tables, documents, plan files, exit codes and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kframe.plans.file.read import load_plan
from tests.architecture.source import ROOT
from tests.cli.printing import CLUSTER, DESCRIBED
from tests.cli.running import kframe
from tests.schemas import problems

DATA = ROOT / "tests" / "plans" / "disks" / "data"
TOPICS, LOG_DIRS = DATA / "topics.txt", DATA / "log-dirs.txt"
SOURCE = (TOPICS, "--log-dirs", LOG_DIRS)
RELIEF = ("--relieve", "1:/var/lib/kafka/d0", "--until", "80%", "--disk-capacity", "1TB")


def document(*options: object, code: int = 0) -> dict[str, Any]:
    result = kframe("plan", "disks", *options, "-o", "json")
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    assert problems(parsed, parsed["schema"]) == []
    return parsed


def test_relief_of_a_full_directory() -> None:
    result = kframe("plan", "disks", *SOURCE, *RELIEF, "--rate", "50MB/s")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0] == "1 move of 120,000,000,000 bytes; no plan copies less"
    assert "expected duration: 40 min" in lines
    parsed = document(*SOURCE, *RELIEF, "--rate", "50MB/s")
    move = parsed["moves"][0]
    assert (move["topic"], move["partition"], move["source"]) == ("clicks", 1, "/var/lib/kafka/d0")
    assert (move["source_percent"], move["seconds"]) == (79.0, 2400.0)


def test_plan_file_names_directories_and_keeps_replicas(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    parsed = document(*SOURCE, "--brokers", "1", "--out", path)
    written = json.loads(path.read_text())
    assert len(written["partitions"]) == len(parsed["moves"])
    for move in parsed["moves"]:
        entry = next(
            item
            for item in written["partitions"]
            if item["partition"] == move["partition"] and item["topic"] == move["topic"]
        )
        position = entry["replicas"].index(1)
        assert sorted(entry["replicas"]) == [1, 2]
        assert entry["log_dirs"][position] == move["target"]
        assert entry["log_dirs"][1 - position] == "any"
    stamped = kframe("plan", "stamp", TOPICS, path).stdout
    assert json.loads(stamped)["partitions"] == written["partitions"]
    assert load_plan(path).log_dirs is not None


def test_plan_of_directories_is_checked_and_has_no_stages(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert kframe("plan", "disks", *SOURCE, *RELIEF, "--out", path).exit_code == 0
    checked = json.loads(kframe("plan", "check", TOPICS, path, "-o", "json").stdout)
    assert [row["check"] for row in checked["findings"]] == ["partial-topic", "log-directory"]
    expected = "field log_dirs: found a log directory of partition clicks-1, expected a plan without"
    for line in (
        ("plan", "stage", TOPICS, path),
        ("reassign", "cancel", "--plan", path, "--bootstrap-server", "embedded:9092", *CLUSTER[1:]),
    ):
        result = kframe(*line)
        assert result.exit_code == 2
        assert expected in result.stderr


def test_plan_on_standard_output_has_the_report_on_standard_error() -> None:
    result = kframe("plan", "disks", *SOURCE, *RELIEF, "--out", "-")
    assert json.loads(result.stdout)["partitions"][0]["log_dirs"][1].startswith("/var/lib/kafka/d")
    assert result.stderr.splitlines()[0] == "1 move of 120,000,000,000 bytes; no plan copies less"


def test_unmet_relief_is_named_in_the_first_line() -> None:
    options = (*SOURCE, "--relieve", "1:/var/lib/kafka/d0", "--until", "30%", "--disk-capacity", "1=1TB")
    result = kframe("plan", "disks", *options)
    assert result.exit_code == 1
    assert "1 log directory is outside of the limits: 1:/var/lib/kafka/d0" in " ".join(result.stdout.split())
    parsed = document(*options, code=1)
    assert not parsed["complete"]
    assert "have room for 60,000,000,000 within their limits" in parsed["unmet"][0]["reason"]


def test_leadership_leaves_a_log_directory() -> None:
    result = kframe("plan", "generate", *SOURCE, "--demote-directory", "1:/var/lib/kafka/d0", "--out", "-")
    assert result.exit_code == 0
    assert [(row["topic"], row["partition"], row["replicas"]) for row in json.loads(result.stdout)["partitions"]] == [
        ("audit", 0, [2, 1]),
        ("clicks", 0, [2, 1]),
        ("orders", 0, [2, 1]),
    ]
    unneeded = kframe("plan", "generate", *SOURCE, "--rebalance")
    assert (unneeded.exit_code, unneeded.stdout) == (2, "")
    assert "--log-dirs: found no --demote-directory, expected one with it" in unneeded.stderr


def test_live_cluster_lists_its_directories() -> None:
    parsed = document(*CLUSTER, "--tolerance", "40")
    assert {row["log_dir"] for row in parsed["directories"]} == {"/data", "/empty"}
    assert {move["target"] for move in parsed["moves"]} == {"/empty"}


def test_captured_directories_give_the_plan_of_the_live_cluster(tmp_path: Path) -> None:
    captured, listed = tmp_path / "captured", tmp_path / "log-dirs.json"
    for file in (listed, tmp_path / "sizes.csv"):
        options = ("--log-dirs", file, "--force", *CLUSTER[1:], "-o", "json")
        result = kframe("snapshot", "capture", CLUSTER[0], captured, *options)
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["sizes"] == str(file)
    live, saved = document(*CLUSTER, "--tolerance", "40"), document(captured, "--log-dirs", listed, "--tolerance", "40")
    assert saved["moves"] == live["moves"]
    assert saved["directories"] == live["directories"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ((TOPICS,), "--log-dirs: found none, expected the output of kafka-log-dirs --describe, or a kafka:// URL"),
        ((TOPICS, "--log-dirs", DESCRIBED), "topics-describe.txt.gz: found no log directories, expected the output of"),
        ((*SOURCE, "--relieve", "1:/x", "--until", "5GB"), "--relieve: found /x, expected a log directory of broker 1"),
        ((*SOURCE, "--relieve", "d0", "--until", "5GB"), "found 'd0', expected a broker id and a path, such as 1:/var"),
        ((*SOURCE, "--relieve", "1:/var/lib/kafka/d0", "--until", "5%%"), "found '5%%', expected percent of the disk"),
        (
            (*SOURCE, "--relieve", "1:/var/lib/kafka/d0", "--until", "80%"),
            "--until: found no size of the disk of 1:/var/lib/kafka/d0, expected the capacity of the disk with it",
        ),
        ((*SOURCE, "--until", "80%"), "--until: found no directory to relieve, expected relieve with it"),
        ((*SOURCE, "--disk-capacity", "1=big"), "found '1=big', expected a size in bytes such as 500GB"),
        ((*SOURCE, "--disk-capacity", "7=1TB"), "--disk-capacity: found broker 7, expected a broker whose log"),
        ((*SOURCE, "--exclude", "1:/x"), "--exclude: found /x"),
        ((*SOURCE, "--brokers", "3"), "--brokers: found broker 3, expected a broker whose log directories are listed"),
        ((*SOURCE, "--command-config", "x"), "--command-config: found a file as SNAPSHOT"),
        ((*SOURCE, "--out", LOG_DIRS), "--out: found"),
    ],
)
def test_refused_options(options: tuple[object, ...], error: str) -> None:
    result = kframe("plan", "disks", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in " ".join(result.stderr.split())
