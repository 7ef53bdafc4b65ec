"""``kframe plan restarts``: its tables, documents, exit codes and refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from kframe.cli.plan_restarts import nodes_text
from kframe.plans.restarts.document import RestartBatch
from tests.architecture.source import ROOT
from tests.cli.running import CLUSTER, HEALTHY, kframe
from tests.schemas import problems

LOG = ROOT / "examples" / "clusters" / "kafka-4.4-broker-failure"


def test_table_says_that_no_order_has_fewer() -> None:
    result = kframe("plan", "restarts", HEALTHY, "--allow-unavoidable")
    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[0]) == (0, "mode: ZooKeeper (Kafka 3.9)")
    assert lines[1] == "restart 6 nodes in 3 batches; no order has fewer"
    assert lines[2] == "no two of these share a batch: 1, 2, 3"
    assert [line.split()[1] for line in lines if line[:5].strip().isdigit()] == ["1,4", "3,6", "2,5"]


def test_document_has_batches_proof_and_conflicts() -> None:
    document = json.loads(
        kframe("plan", "restarts", HEALTHY, "--allow-unavoidable", "--conflicts", "-o", "json").stdout
    )
    assert problems(document, document["schema"]) == []
    assert [batch["brokers"] for batch in document["batches"]] == [[1, 4], [3, 6], [2, 5]]
    assert (document["bound"], document["gap"], document["complete"]) == (3, 0, True)
    pairs = {(*item["nodes"], *item["other_nodes"]) for item in document["conflicts"]}
    assert pairs == {(low, high) for low in range(1, 7) for high in range(low + 1, 7) if high - low != 3}
    example = document["conflicts"][0]["example"]
    assert {1, 2} <= set(example["isr"])
    assert example["spare"] == len(example["isr"]) - example["min_isr"] == 1


def test_blocked_brokers_are_named_with_a_partition() -> None:
    result = kframe("plan", "restarts", HEALTHY, "-o", "json")
    blocked = json.loads(result.stdout)["blocked"]
    assert result.exit_code == 1
    assert [(item["nodes"], item["cause"]) for item in blocked] == [([broker], "offline") for broker in range(1, 7)]
    assert all(item["example"]["isr"] == item["nodes"] for item in blocked)


def test_stated_min_isr_prevails_where_the_input_has_none() -> None:
    lists = CLUSTER / "healthy.kcat.json.gz"
    unknown, stated = (
        json.loads(kframe("plan", "restarts", lists, "--allow-unavoidable", *options, "-o", "json").stdout)
        for options in ((), ("--config", "min.insync.replicas=3"))
    )
    assert any("min.insync.replicas is not in this input" in note for note in unknown["notes"])
    assert not any("is not in this input" in note for note in stated["notes"])
    unavoidable = "{} partitions go offline or under min ISR in any order: the restart of one node takes them there"
    assert unavoidable.format(24) in unknown["notes"]
    assert unavoidable.format(645) in stated["notes"]


def test_csv_has_a_row_for_each_batch() -> None:
    rows = csv.DictReader(io.StringIO(kframe("plan", "restarts", HEALTHY, "--allow-unavoidable", "-o", "csv").stdout))
    assert [(row["batch"], row["newly_offline"]) for row in rows] == [("1", "8"), ("2", "8"), ("3", "8")]


def test_controllers_of_a_log_are_part_of_the_plan() -> None:
    document = json.loads(kframe("plan", "restarts", LOG, "--allow-unavoidable", "-o", "json").stdout)
    assert problems(document, document["schema"]) == []
    assert document["rules"].startswith("KRaft")
    assert [node for batch in document["batches"] for node in batch["controllers"]] == [3000]


@pytest.mark.parametrize(
    ("brokers", "controllers", "text"),
    [
        ([4], [], "broker 4"),
        ([1, 4], [4], "brokers 1, 4"),
        ([1], [3000, 3001], "broker 1 and controllers 3000, 3001"),
        ([], [3000], "controller 3000"),
    ],
)
def test_announced_nodes_are_named_by_their_role(brokers: list[int], controllers: list[int], text: str) -> None:
    assert nodes_text(RestartBatch(1, brokers, controllers, [], None)) == text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--brokers", "9"), "--brokers: found broker 9, expected brokers that are up: brokers 1, 2, 3, 4, 5, 6"),
        (("--watch", "broker:9092"), "--watch broker:9092: found no URL, expected that of a live cluster"),
        (("--batch", "1"), "--batch: found no --watch, expected the URL of the cluster"),
        (("--max-batch", "0"), "'--max-batch'"),
        (("--whole-racks", "--max-batch", "2"), "--max-batch: found whole racks"),
        (
            ("--exact", "--max-at-min-isr", "300", "--allow-unavoidable"),
            "--exact: found a limit of partitions at min ISR",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_refused_options(options: tuple[str, ...], error: str, tmp_path: Path) -> None:
    result = kframe("plan", "restarts", HEALTHY, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr
