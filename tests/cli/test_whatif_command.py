"""``kframe whatif``: exit codes, and equal content in every output format."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kframe.cli.findings import FAIL_ON
from kframe.snapshot import Health, generate, write_snapshot
from kframe.whatif import FailOn
from tests.cli.running import HEALTHY, document, whatif
from tests.whatif.samples import small


def test_json_has_schema_and_all_parts(snapshot: Path) -> None:
    parsed = document("fail", snapshot, "--brokers", "1")
    assert parsed["schema"] == "kframe.whatif/v1"
    assert parsed["operation"]["text"] == "fail broker 1"
    assert parsed["impact"]["leaders_moved"] == 1
    assert parsed["findings"] == {"offline": 1, "under-min-isr": 1, "data-loss": 0, "possible-data-loss": 0}
    assert [partition["partition"] for partition in parsed["partitions"]] == [0, 1, 3]
    assert [broker["broker_id"] for broker in parsed["brokers"]] == [1, 2, 3, 4]


def test_table_has_every_part(snapshot: Path) -> None:
    arguments = ("fail", snapshot, "--brokers", "1,2", "--one-by-one")
    table, parsed = whatif(*arguments).stdout, document(*arguments)
    texts = [name.replace("_", " ") for name, value in parsed["impact"].items() if value]
    texts += [f"{step['name']}  {event['text']}" for step in parsed["steps"] for event in step["timeline"]]
    texts += [*(f"note: {note}" for note in parsed["notes"]), "needs unclean election", "leaders after", "BROKER-ID"]
    assert [text for text in texts if text not in table] == []


def test_long_table_is_truncated_with_note(snapshot: Path) -> None:
    table = whatif("fail", snapshot, "--brokers", "1", "--limit", "1").stdout
    assert "and 2 more" in table
    # Partitions that went offline come first.
    assert ["t", "3", "1", "none", "1", "1", "yes"] in [line.split() for line in table.splitlines()]


#: (arguments, exit code, text on stderr).
FAIL_ONS = [
    (("fail", "--brokers", "1", "--fail-on", "offline"), 3, "--fail-on offline: 1 partition\n"),
    (("fail", "--brokers", "1,2", "--fail-on", "under-min-isr"), 3, "--fail-on under-min-isr: 3 partitions\n"),
    (("fail", "--brokers", "3", "--fail-on", "possible-data-loss"), 3, "--fail-on possible-data-loss: 1 partition\n"),
    (
        ("fail", "--brokers", "3", "--fail-on", "data-loss", "--fail-on", "offline"),
        3,
        "--fail-on offline: 1 partition\n",
    ),
    (("restart", "--brokers", "4", "--fail-on", "offline"), 0, ""),
    (("elect", "--type", "unclean", "--fail-on", "data-loss"), 0, ""),
]


@pytest.mark.parametrize("arguments, code, message", FAIL_ONS)
def test_fail_on(snapshot: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    verb, *options = arguments
    result = whatif(verb, snapshot, *options)
    assert (result.exit_code, result.stderr) == (code, message)
    assert result.stdout


def test_loss_is_reported_when_unclean_elections_are_allowed(tmp_path: Path) -> None:
    write_snapshot(small(unclean=1), tmp_path / "small")
    result = whatif("fail", tmp_path / "small", "--brokers", "3", "--fail-on", "data-loss")
    assert (result.exit_code, result.stderr) == (3, "--fail-on data-loss: 1 partition\n")


def test_fail_on_choices_equal_library() -> None:
    assert tuple(FailOn) == FAIL_ON


def test_config_reaches_engine(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    write_snapshot(generate(30, 3, 2, health=Health(under_replicated=1.0)), path)
    strict = document("fail", path, "--brokers", "0")
    loose = document("fail", path, "--brokers", "0", "--config", "unclean.leader.election.enable=true")
    assert (strict["impact"]["unclean_elections"], loose["impact"]["newly_offline"]) == (0, 0)
    assert strict["impact"]["newly_offline"] == loose["impact"]["unclean_elections"] > 0


def test_elections_by_name(snapshot: Path) -> None:
    parsed = document("elect", snapshot, "--type", "preferred", "--partition", "t-0", "--partition", "t-4", code=1)
    assert parsed["steps"][0]["response"] == {
        "error": "NONE",
        "partitions": {"PREFERRED_LEADER_NOT_AVAILABLE": 1, "ELECTION_NOT_NEEDED": 1},
        "named": ["t-0", "t-4 (its preferred replica, broker 4, is not registered)"],
    }


def test_selectors_by_name(snapshot: Path) -> None:
    default, configured = (
        document("fail", snapshot, "--brokers", "1", *options) for options in ((), ("--selector", "first-in-sync"))
    )
    assert default["partitions"] == configured["partitions"]


def test_known_plugins_can_be_disabled(snapshot: Path, tmp_path: Path) -> None:
    result = whatif("fail", snapshot, "--brokers", "1", "--no-plugin", "rack-spread", "--plugins-dir", tmp_path)
    assert result.exit_code == 0, result.output


def test_out_directory_has_outcome(snapshot: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = whatif("fail", snapshot, "--brokers", "1", "--out", out)
    assert result.exit_code == 0
    assert json.loads((out / "outcome.json").read_text())["impact"]["leaders_moved"] == 1
    second = whatif("fail", snapshot, "--brokers", "1", "--out", out)
    assert (second.exit_code, second.stdout) == (2, "")
    assert whatif("fail", snapshot, "--brokers", "2", "--out", out, "--force").exit_code == 0


def test_outcome_is_written_despite_findings(snapshot: Path, tmp_path: Path) -> None:
    assert whatif("fail", snapshot, "--brokers", "1", "--fail-on", "offline", "--out", tmp_path / "out").exit_code == 3
    assert (tmp_path / "out" / "outcome.json").exists()


def test_real_cluster_is_printed_as_table() -> None:
    table = whatif("fail", HEALTHY, "--brokers", "4").stdout
    assert table.startswith(
        "mode: ZooKeeper (Kafka 3.9)\nfail broker 4: 645 partitions of healthy.zookeeper.jsonl.gz\n"
    )
    assert re.search(r"^leaders moved +105$", table, re.MULTILINE)
    assert "and 292 more" in table
