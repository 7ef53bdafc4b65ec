"""``kframe whatif`` without any change: every output reports it, and none ends in a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from kframe.cli.output import OUTPUTS
from tests.cli.running import HEALTHY, PLAN, document, whatif

TOO_MANY_REPLICAS = "new (replication factor 9, and 6 registered: brokers 1, 2, 3, 4, 5, 6)"
#: (verb, arguments, the rest of the line that reports no change).
CASES = [
    ("elect", ("--type", "preferred"), ""),
    ("elect", ("--type", "unclean"), ""),
    (
        "elect",
        ("--type", "preferred", "--partition", "__consumer_offsets-0"),
        "; response: NONE; 1 ELECTION_NOT_NEEDED; __consumer_offsets-0",
    ),
    (
        "create",
        ("__consumer_offsets",),
        "; response: NONE; 1 TOPIC_ALREADY_EXISTS; __consumer_offsets (topic __consumer_offsets exists)",
    ),
    ("create", ("new", "--rf", "9"), f"; response: NONE; 1 INVALID_REPLICATION_FACTOR; {TOO_MANY_REPLICAS}"),
    ("delete", ("nosuch",), "; response: NONE; 1 UNKNOWN_TOPIC_OR_PARTITION; nosuch (no such topic)"),
]
#: Errors with which Kafka refuses a request.
REFUSED = ("TOPIC_ALREADY_EXISTS", "INVALID_REPLICATION_FACTOR", "UNKNOWN_TOPIC_OR_PARTITION")
IDS = [f"{verb} {' '.join(arguments)}" for verb, arguments, _ in CASES]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("verb, arguments, reason", CASES, ids=IDS)
def test_operation_without_effect_is_reported(verb: str, arguments: tuple[str, ...], reason: str, output: str) -> None:
    result = whatif(verb, HEALTHY, *arguments, "-o", output)
    assert result.exit_code == (1 if any(error in reason for error in REFUSED) else 0), result.output
    assert_says_so(result, output, f"nothing changes{reason}")


@pytest.mark.parametrize("output", OUTPUTS)
def test_refused_reassignment_is_reported(tmp_path: Path, output: str) -> None:
    plan = {"version": 1, "partitions": [{"topic": "nosuch", "partition": 0, "replicas": [1, 2, 3]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    result = whatif("reassign", HEALTHY, tmp_path / "plan.json", "-o", output)
    assert result.exit_code == 1, result.output
    assert_says_so(result, output, "nothing changes; response: NONE; 1 UNKNOWN_TOPIC_OR_PARTITION; nosuch-0")


def test_effective_operation_prints_no_nothing_changes() -> None:
    assert "nothing changes" not in whatif("reassign", HEALTHY, PLAN).output
    assert "nothing changes" not in whatif("fail", HEALTHY, "--brokers", "4", "-o", "csv").output
    assert document("fail", HEALTHY, "--brokers", "4")["changed"] is True


def joined_lines(text: str) -> str:
    """The words of a table whose long lines are broken."""
    return " ".join(text.split())


def assert_says_so(result: Result, output: str, line: str) -> None:
    match output:
        case "table" | "wide":
            assert line in (result.stdout.splitlines() if output == "wide" else joined_lines(result.stdout))
        case "csv":
            lines = result.stderr.splitlines()
            assert (result.stdout.count("\n"), lines[:2]) == (1, ["mode: ZooKeeper (Kafka 3.9)", line])
        case "jsonl":
            assert (result.stdout, result.stderr.splitlines()[:2]) == ("", ["mode: ZooKeeper (Kafka 3.9)", line])
        case _:
            data = json.loads(result.stdout) if output == "json" else yaml.safe_load(result.stdout)
            assert (data["changed"], data["partitions"]) == (False, [])


@pytest.mark.parametrize("output", OUTPUTS)
def test_refusal_is_in_headline_or_on_stderr(output: str) -> None:
    result = whatif("create", HEALTHY, "new", "--rf", "9", "-o", output)
    text = "create topic new with 1 partition{} refused by Kafka's rules (1 INVALID_REPLICATION_FACTOR)"
    if output in ("table", "wide"):
        assert f"{text.format(',')}: 645 partitions of " in joined_lines(result.stdout)
    else:
        assert f"error: {text.format(':')}: {TOO_MANY_REPLICAS}" in result.stderr.splitlines()
