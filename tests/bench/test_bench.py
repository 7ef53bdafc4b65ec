"""Every bench, on a cluster small enough for a test: it does the work that it times, and says what it should."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kframe.bench import BENCHES
from kframe.bench.life import Life
from kframe.bench.run import SCHEMA, Bench, run
from kframe.bench.works import ALTERATIONS, WORKS, whole_cluster
from kframe.cli.app import cli
from kframe.errors import InputError

PARTITIONS, BROKERS = 300, 6


def test_all_that_can_be_asked_for_is_there() -> None:
    assert tuple(WORKS) == BENCHES


@pytest.mark.parametrize("name", BENCHES)
def test_the_work_is_done_and_timed(name: str) -> None:
    calls: list[tuple[int, int]] = []
    result = run(Bench(name, PARTITIONS, BROKERS, runs=2), lambda done, total: calls.append((done, total)))
    assert (result["schema"], result["bench"], result["partitions"]) == (SCHEMA, name, PARTITIONS)
    assert calls == [(0, 3), (1, 3), (2, 3), (3, 3)]
    seconds = result["seconds"]
    assert set(seconds) == {"decide", "store", "encode", "ready"}
    for spread in seconds.values():
        assert 0 < spread["min"] <= spread["median"] <= spread["max"]
    assert result["requests"] > 0
    assert 0 < result["made_bytes"] <= result["sent_bytes"]


@pytest.mark.parametrize(
    "name, requests",
    [
        # UpdateMetadata without partitions to all six, then LeaderAndIsr and UpdateMetadata.
        ("controller-failover", 18),
        # LeaderAndIsr and UpdateMetadata to all six.
        ("preferred-election", 12),
        # Each AlterPartition is told to all six.
        ("alter-partition", 6 * ALTERATIONS),
    ],
)
def test_as_many_requests_as_brokers_have_to_hear(name: str, requests: int) -> None:
    assert run(Bench(name, PARTITIONS, BROKERS, runs=1))["requests"] == requests


def test_time_of_many_events_is_told_for_one() -> None:
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
def test_bad_input(name: str, partitions: int, brokers: int, runs: int) -> None:
    with pytest.raises(InputError, match="bench"):
        Bench(name, partitions, brokers, runs)


@pytest.mark.parametrize(
    "name", ["preferred-election", "topic-creation", "reassignment-start", "reassignment-completion", "topic-deletion"]
)
def test_work_that_was_not_done_is_noticed(name: str) -> None:
    life = Life(WORKS[name].cluster(PARTITIONS, BROKERS))
    WORKS[name].prepare(life, PARTITIONS)
    with pytest.raises(AssertionError, match="expected: "):
        WORKS[name].check(life, PARTITIONS)


def test_a_lost_leader_is_noticed() -> None:
    life = Life(whole_cluster(PARTITIONS, BROKERS))
    life.adopt()
    life.cluster.partitions.leader[7] = -1
    with pytest.raises(AssertionError, match="expected: 300 partitions with live leaders"):
        life.expect_led(PARTITIONS)


def test_the_command() -> None:
    arguments = ["bench", "topic-deletion", "--partitions", "200", "--brokers", "5", "--runs", "1"]
    done = CliRunner().invoke(cli, [*arguments, "-o", "json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["bench"] == "topic-deletion"
    assert "ready ms" in CliRunner().invoke(cli, arguments).stdout
