"""``kframe explain``."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import Result

from tests.cli.running import kframe


def run(*arguments: object) -> Result:
    return kframe("explain", *arguments)


def test_in_words(snapshot: Path) -> None:
    result = run(snapshot, "t-2", "--fail", "3")
    assert result.exit_code == 0
    assert result.stdout.startswith("mode: ZooKeeper (Kafka 3.9)\nt-2: replicas 3,1\n")
    assert "rule: clean election of an offline partition" in result.stdout
    assert (
        "no replica can lead: no live replica is in the ISR; unclean.leader.election.enable is false" in result.stdout
    )
    assert "final state: no leader, ISR 3\n" in result.stdout


def test_explain_reports_absent_election(snapshot: Path) -> None:
    assert "after broker 3 failed: no election was needed" in run(snapshot, "t-0", "--fail", "3").stdout


def test_in_json(snapshot: Path) -> None:
    parsed = json.loads(run(snapshot, "t-0", "--fail", "1", "-o", "json").stdout)
    assert parsed["schema"] == "kframe.explanation/v1"
    assert (parsed["before"]["leader"], parsed["leader"], parsed["isr"]) == (1, 2, [2, 3])
    (election,) = parsed["elections"]
    assert [candidate["outcome"] for candidate in election["candidates"]] == [
        "dead",
        "chosen",
        "later in the assignment",
    ]
