"""``kframe plan generate``: every goal, output formats, and a plan that other commands read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kframe import plan, read_snapshot
from kframe.cli.app import cli
from tests.cli.printing import EMBEDDED
from tests.cli.running import HEALTHY, kframe, size_lines, size_rows
from tests.whatif.samples import small


def report(*arguments: object, code: int = 0) -> dict[str, Any]:
    """The JSON report of a plan for the healthy cluster."""
    result = kframe("plan", "generate", HEALTHY, *arguments, "-o", "json")
    assert result.exit_code == code, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.mark.parametrize(
    ("arguments", "moves", "bound"),
    [
        (("--rebalance",), 4, 4),
        (("--remove-brokers", "3"), 307, 307),
        (("--replace", "3=7"), 307, 307),
        (("--evacuate-rack", "rack-2"), 620, 620),
        (("--add-brokers", "7:rack-0,8:rack-1,9:rack-2"), 621, 621),
        (("--fix-racks",), 0, 0),
        (("--one-rack", "*.dlq.v1"), 10, 10),
        (("--replication-factor", "__consumer_offsets=2"), 0, 0),
        (("--leaders-only",), 0, 0),
        (("--rebalance", "--topics", "__consumer_*"), 2, 2),
    ],
)
def test_every_goal_reaches_its_bound(arguments: tuple[str, ...], moves: int, bound: int) -> None:
    document = report(*arguments)
    assert (document["moves"]["replicas"], document["moves"]["bound"]) == (moves, bound)
    assert document["targets_met"]


def test_written_plan_is_valid_and_stamped(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    document = report("--remove-brokers", "3", "--out", path)
    checked = json.loads(kframe("plan", "check", HEALTHY, path, "-o", "json").stdout)
    assert checked["counts"]["error"] == checked["counts"]["warning"] == 0
    assert checked["moves"]["replicas_copied"] == document["moves"]["replicas"]
    assert set(json.loads(path.read_text())) == {"version", "partitions", "kframe"}
    after = {row["broker_id"]: row["replicas_after"] for row in checked["moves"]["brokers"]}
    assert after == {row["broker_id"]: row["replicas_after"] for row in document["brokers"]}
    assert after[3] == 0


def test_page_and_check_of_one_rack_name_no_partition_that_shares_a_rack(tmp_path: Path) -> None:
    plan_file, page = tmp_path / "plan.json", tmp_path / "plan.html"
    report("--one-rack", "*.dlq.v1", "--out", plan_file, "--report", page)
    assert "spread less evenly" not in page.read_text()
    for arguments, warnings in (((), 10), (("--one-rack", "*.dlq.v1"), 0)):
        checked = json.loads(kframe("plan", "check", HEALTHY, plan_file, *arguments, "-o", "json").stdout)
        assert (checked["counts"]["warning"], checked["valid"]) == (warnings, True)


def test_out_on_stdout_prints_plan_and_summary_on_stderr() -> None:
    result = kframe("plan", "generate", HEALTHY, "--rebalance", "--out", "-")
    assert len(json.loads(result.stdout)["partitions"]) == 6
    assert result.stderr.strip() == "4 moves; every plan needs at least 4"


def test_table_shows_brokers_as_bars() -> None:
    result = kframe("plan", "generate", HEALTHY, "--remove-brokers", "3", "--limit", "4")
    lines = result.stdout.splitlines()
    assert lines[0] == "307 moves; every plan needs at least 307"
    (removed,) = [line for line in lines if line.split()[:2] == ["3", "rack-2"]]
    assert removed.split()[4:6] == ["0", "-" * 12]
    assert lines[-1] == "and 2 more (--limit N; data has them all)"


def test_partitions_beyond_broker_cap_are_unassignable() -> None:
    document = report("--remove-brokers", "3", "--broker-cap", "320", code=1)
    # What the solver proves to be the least, with --exact: partitions that stay, then moves.
    assert (document["partitions"]["unassignable"], document["moves"]["cost"]) == (265, 54)
    assert sum("no allowed broker" in note for note in document["notes"]) == 1
    assert all(row["replicas_after"] <= 320 for row in document["brokers"])


def test_weights_of_every_format_make_bound_a_byte_count(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = size_rows(lambda row: 1000 + 7 * row)
    (tmp_path / "sizes.json").write_text(json.dumps(rows))
    (tmp_path / "sizes.csv").write_text(size_lines(rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "sizes.parquet")
    documents = [
        report("--rebalance", "--tolerance", "0.1", "--weights", tmp_path / f"sizes.{kind}")
        for kind in ("json", "csv", "parquet")
    ]
    assert documents[0] == documents[1] == documents[2]
    moves = documents[0]["moves"]
    assert moves["unit"] == "bytes"
    assert moves["bound"] <= moves["cost"]
    assert documents[0]["targets_met"]
    assert documents[0]["skew"]["bytes_after"]["deviation"] < documents[0]["skew"]["bytes_before"]["deviation"]


def test_api_returns_proposal() -> None:
    proposal = plan(read_snapshot(HEALTHY), remove_brokers=(3,))
    assert (proposal.moves, proposal.bound, len(proposal.plan)) == (307, 307, 307)


def test_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text("mine")
    refused = kframe("plan", "generate", HEALTHY, "--rebalance", "--out", path)
    assert (refused.exit_code, path.read_text()) == (2, "mine")
    assert "already exists (use --force" in refused.stderr
    report("--rebalance", "--out", path, "--force")
    assert len(json.loads(path.read_text())["partitions"]) == 6
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_snapshot_comes_from_standard_input() -> None:
    content = gzip.decompress(HEALTHY.read_bytes())
    result = CliRunner().invoke(cli, ["plan", "generate", "-", "--rebalance", "-o", "json"], input=content)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["moves"]["replicas"] == 4


def test_snapshot_is_captured_from_live_cluster() -> None:
    result = kframe("plan", "generate", "zookeeper://a", "--rebalance", "-o", "json", *EMBEDDED)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["snapshot"]["partitions"] == len(small())


CASES = Path(__file__).parent / "plans"
RACKS = "broker,rack\n1,rack-0\n2,rack-1\n3,rack-2\n4,rack-0\n5,rack-1\n6,rack-2\n"


def generated(name: str, *arguments: object) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a plan for a file of ``plans``."""
    result = kframe("plan", "generate", CASES / name, *arguments)
    return result.exit_code, result.stdout, result.stderr


def test_plan_of_the_other_partitions_is_written() -> None:
    code, plan_text, messages = generated("replication-factor-above-brokers.txt", "--remove-brokers", "4", "--out", "-")
    assert code == 1
    assert [(row["topic"], row["partition"]) for row in json.loads(plan_text)["partitions"]] == [("a", 0), ("a", 1)]
    assert messages.startswith("2 moves; the request is not met: broker 4 retains 1 replica: everywhere-0 (replication")
    assert "everywhere-0 stays on 4,1,2,3: replication factor 4, but 3 brokers would remain" in messages


def test_caps_without_room_claim_no_bound() -> None:
    caps = [text for broker in (1, 2, 3) for text in ("--broker-cap", f"{broker}=2")]
    code, table, _ = generated(
        "replication-factor-above-brokers.txt", "--remove-brokers", "4", "--exclude-topics", "everywhere", *caps
    )
    assert code == 1
    assert table.startswith(
        "0 moves; the request is not met: broker 4 retains 2 replicas: a-0 (too few brokers have room"
    )
    assert "gap" not in table
    assert "no plan" not in table


def test_replica_that_cannot_go_to_the_replacement_is_listed() -> None:
    code, _, messages = generated("replace.txt", "--replace", "4=3", "--out", "-")
    assert code == 0
    assert "a-4 goes to 1 instead of 3: broker 3 has a replica already" in messages
    assert "a-5" not in messages
    _, table, _ = generated("replace.txt", "--replace", "4=3")
    assert "a              4         4            3  1          broker 3 has a replica already" in table


@pytest.mark.parametrize("out", [(), ("--out", "-")])
def test_partitions_without_leaders_are_a_warning(out: tuple[str, ...]) -> None:
    code, output, messages = generated("all-leaderless.txt", "--replace", "1001=1002", *out)
    assert code == 0
    assert "2 partitions without a leader: nothing can be copied" in (messages if out else output)


@pytest.mark.parametrize("out", [(), ("--out", "-")])
def test_broker_that_a_reassignment_retains_is_reported(out: tuple[str, ...]) -> None:
    code, output, messages = generated("remove-during-reassignment.txt", "--remove-brokers", "1", *out)
    assert code == 1
    summary = "0 moves; the request is not met: broker 1 retains 1 replica: xxx-0 (a reassignment to 4,2,1 is in"
    assert (messages if out else output).startswith(summary)
    assert "limits reached" not in output


@pytest.mark.parametrize("output", ["csv", "jsonl"])
def test_rows_leave_the_reasons_to_standard_error(output: str) -> None:
    code, rows, messages = generated("remove-during-reassignment.txt", "--remove-brokers", "1", "-o", output)
    assert (code, "not met" in rows) == (1, False)
    assert "xxx-0 stays on 4,2,1,3: a reassignment to 4,2,1 is in progress" in messages


def test_added_broker_with_replicas_is_refused() -> None:
    code, _, messages = generated("add-present-broker.txt", "--add-brokers", "3")
    assert (code, "broker 3, which is in the cluster with 3 replicas" in messages) == (2, True)


def test_plan_of_a_text_says_that_racks_are_unknown_and_takes_a_map(tmp_path: Path) -> None:
    (tmp_path / "racks.csv").write_text(RACKS)
    text = HEALTHY.parent / "healthy.topics-describe.txt.gz"
    arguments = ("plan", "generate", text, "--remove-brokers", "3")
    note = "racks unknown: rack rules not checked (--rack-map FILE gives racks)"
    page = tmp_path / "plan.html"
    unknown = json.loads(kframe(*arguments, "-o", "json", "--report", page).stdout)
    assert unknown["racks"] == {"crowded_before": None, "crowded_after": None}
    assert note in unknown["warnings"]
    assert note in page.read_text()
    assert note in kframe(*arguments).stdout
    assert note in kframe(*arguments, "--out", "-").stderr
    mapped = json.loads(kframe(*arguments, "-o", "json", "--rack-map", tmp_path / "racks.csv").stdout)
    dumped = report("--remove-brokers", "3")
    assert mapped["racks"] == dumped["racks"] == {"crowded_before": 0, "crowded_after": 0}
    assert mapped["brokers"] == dumped["brokers"]
    assert mapped["warnings"] == []


def test_check_names_loads_as_generate_does_and_counts_notes(tmp_path: Path) -> None:
    text = HEALTHY.parent / "healthy.topics-describe.txt.gz"
    plan = tmp_path / "plan.json"
    made = kframe("plan", "generate", text, "--remove-brokers", "3", "--out", plan).stdout.splitlines()
    checked = kframe("plan", "check", text, plan).stdout.splitlines()
    assert checked[1] == "racks unknown: rack rules not checked (--rack-map FILE gives racks)"
    assert kframe("plan", "check", text, plan, "-o", "csv").stderr.splitlines()[:2] == checked[:2]
    assert [line.split()[0] for line in checked[3:6]] == ["errors", "warnings", "notes"]
    loads = [
        [line[:20].split("  ")[0] for line in lines if " before " in line or " after " in line]
        for lines in (made, checked)
    ]
    assert loads[1] == ["replicas before", "replicas after", "leaders before", "leaders after"]
    assert loads[1] == loads[0]


def test_rack_map_has_the_racks_of_added_brokers(tmp_path: Path) -> None:
    (tmp_path / "racks.csv").write_text(RACKS + "7,rack-1\n")
    arguments = ("--add-brokers", "7", "--rack-map", tmp_path / "racks.csv")
    assert {row["broker_id"]: row["rack"] for row in report(*arguments)["brokers"]}[7] == "rack-1"
    refused = kframe("plan", "generate", HEALTHY, "--add-brokers", "7:rack-2", *arguments[2:])
    assert (refused.exit_code, "broker 7 in rack-2, expected rack-1" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", "show", "SNAPSHOT", "--list", "brokers", "-o", "json"),
        ("whatif", "fail", "SNAPSHOT", "--racks", "rack-2"),
        ("whatif", "sweep", "SNAPSHOT", "--depth", "1"),
        ("plan", "check", "SNAPSHOT", "PLAN"),
    ],
)
def test_every_command_takes_the_racks_of_a_map(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "racks.csv").write_text(RACKS)
    text = HEALTHY.parent / "healthy.topics-describe.txt.gz"
    paths = {"SNAPSHOT": text, "PLAN": text.parent / "reassignment.json"}
    result = kframe(*(paths.get(word, word) for word in arguments), "--rack-map", tmp_path / "racks.csv")
    without = kframe(*(paths.get(word, word) for word in arguments))
    assert result.exit_code == 0, result.output
    assert result.output != without.output
