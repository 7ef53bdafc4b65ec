"""Every benchmark on a small cluster: it does the work that it measures, and reports the expected fields."""

from __future__ import annotations

import gc
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from kframe.bench import BENCHES
from kframe.bench.clusters import whole_cluster
from kframe.bench.controller import TimedController
from kframe.bench.isrs import ALTERATIONS
from kframe.bench.run import SCHEMA, Bench, outcomes_of, result, run
from kframe.bench.texts import TEXTS
from kframe.bench.workload import EventWorkload
from kframe.bench.workloads import WORKLOADS
from kframe.cli.app import cli
from kframe.errors import InputError
from kframe.snapshot import read_snapshot

PARTITIONS, BROKERS = 300, 6


def test_every_bench_has_a_workload() -> None:
    assert tuple(WORKLOADS) == BENCHES


EVENTS = [name for name, workload in WORKLOADS.items() if isinstance(workload, EventWorkload)]


@pytest.mark.parametrize("name", ["broker-failure", "controller-failover", "reassignment-start"])
def test_event_seconds_are_reported_by_phase(name: str) -> None:
    calls: list[tuple[int, int]] = []
    result = run(Bench(name, PARTITIONS, BROKERS, runs=2), lambda done, total: calls.append((done, total)))
    assert (result["schema"], result["bench"], result["partitions"]) == (SCHEMA, name, PARTITIONS)
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
    seconds = result["seconds"]
    assert set(seconds) == {"decide", "choose", "store", "encode", "ready"}
    for spread in seconds.values():
        assert 0 <= spread["min"] <= spread["median"] <= spread["max"]
    assert seconds["decide"]["min"] > seconds["choose"]["min"]
    assert seconds["ready"]["min"] >= seconds["decide"]["min"] + seconds["encode"]["min"] > 0
    assert result["requests"] > 0
    assert 0 < result["made_bytes"] <= result["sent_bytes"]


@pytest.mark.parametrize(
    "name, requests",
    [
        # UpdateMetadata without partitions to all six, then LeaderAndIsr and UpdateMetadata.
        ("controller-failover", 18),
        # LeaderAndIsr and UpdateMetadata to all six.
        ("preferred-election", 12),
        # Each AlterPartition is sent to all six brokers.
        ("alter-partition", 6 * ALTERATIONS),
    ],
)
def test_requests_equal_recipients(name: str, requests: int) -> None:
    assert run(Bench(name, PARTITIONS, BROKERS, runs=1))["requests"] == requests


def test_function_workload_has_single_phase() -> None:
    result = run(Bench("batching", PARTITIONS, BROKERS, runs=2))
    assert set(result["seconds"]) == {"ready"}
    assert result["requests"] == 2 * BROKERS


@pytest.mark.parametrize("event", ["broker-failure", "election-of-all"])
def test_selectors_of_all_tiers_decide_like_built_in_rule(event: str) -> None:
    tiers = [name for name in EVENTS if name.startswith(event)]
    assert len(tiers) == 4
    assert len({run(Bench(name, PARTITIONS, BROKERS, runs=1))["digest"] for name in tiers}) == 1


@pytest.mark.parametrize("name", ["broker-failure", "encode-update-metadata-8", "snapshot-load-kcat"])
def test_digest_depends_on_cluster(name: str) -> None:
    sizes = [(PARTITIONS, BROKERS), (PARTITIONS + 100, BROKERS), (PARTITIONS, BROKERS + 1)]
    assert len({run(Bench(name, *size, runs=1))["digest"] for size in sizes}) == 3


def test_differing_digests_of_runs_raise() -> None:
    first, second = outcomes_of(Bench("batching", PARTITIONS, BROKERS, runs=1))
    with pytest.raises(AssertionError, match="runs of one bench differ"):
        result(Bench("batching", PARTITIONS, BROKERS), [first, replace(second, digest="another")])


@pytest.mark.parametrize("name", TEXTS)
def test_generated_text_is_read_as_same_cluster(name: str) -> None:
    workload = WORKLOADS[f"snapshot-load-{name}"]
    fixture = workload.fixture(PARTITIONS, BROKERS)
    read, original = read_snapshot(fixture.content.path), fixture.content.snapshot
    assert read.source.format == name
    assert read.topics.names == original.topics.names
    assert read.partitions.replicas.values.tolist() == original.partitions.replicas.values.tolist()


def test_snapshot_files_are_deleted() -> None:
    fixture = WORKLOADS["snapshot-load-kcat"].fixture(PARTITIONS, BROKERS)
    folder = fixture.content.path.parent
    assert folder.is_dir()
    del fixture
    gc.collect()
    assert not folder.exists()


def test_seconds_are_reported_per_event() -> None:
    assert run(Bench("alter-partition", PARTITIONS, BROKERS, runs=1))["events"] == ALTERATIONS
    assert run(Bench("topic-creation", PARTITIONS, BROKERS, runs=1))["events"] == 1


@pytest.mark.parametrize(
    "name, partitions, brokers, runs",
    [
        ("nonsense", 100, 6, 1),
        ("broker-failure", 0, 6, 1),
        ("broker-failure", 100, 3, 1),
        ("broker-failure", 100, 6, 0),
    ],
)
def test_invalid_bench_raises_input_error(name: str, partitions: int, brokers: int, runs: int) -> None:
    with pytest.raises(InputError, match="bench"):
        Bench(name, partitions, brokers, runs)


@pytest.mark.parametrize("name", [name for name in EVENTS if name not in ("alter-partition", "controller-failover")])
def test_incomplete_work_raises(name: str) -> None:
    workload = WORKLOADS[name]
    new_run = workload.new_run(workload.fixture(PARTITIONS, BROKERS), with_answer=False)
    with pytest.raises(AssertionError, match="expected: "):
        new_run.finish()


def test_missing_leader_raises() -> None:
    controller = TimedController(whole_cluster(PARTITIONS, BROKERS))
    controller.adopt()
    controller.cluster.partitions.leader[7] = -1
    with pytest.raises(AssertionError, match="expected: 300 partitions with live leaders"):
        controller.expect_led(PARTITIONS)


def test_bench_command_prints_result() -> None:
    arguments = ["bench", "topic-deletion", "--partitions", "200", "--brokers", "5", "--runs", "1"]
    result = CliRunner().invoke(cli, [*arguments, "-o", "json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["bench"] == "topic-deletion"
    assert "ready ms" in CliRunner().invoke(cli, arguments).stdout
