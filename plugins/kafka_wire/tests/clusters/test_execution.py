"""``kframe plan execute`` on real clusters under a producer with ``acks=all``: kills, a broker's death, rollbacks.

The tests of a cluster run in order and share it. The last one compares all records.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Iterator
from typing import Final

import pytest

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.executed_plans import (
    KRAFT,
    RECORDS_PER_SECOND,
    REPLICAS,
    ZOOKEEPER,
    ExecutedCluster,
    executed_cluster,
)

#: Broker 4 has its share; broker 3 has nothing; two replicas each.
SPREAD: Final = [[1, 2, 4], [2, 3, 4], [3, 4, 1], [4, 3, 2], [2, 1, 3], [3, 4, 1]]
WITHOUT_3: Final = [[1, 2, 4], [2, 4, 1], [4, 1, 2], [1, 4, 2], [2, 1, 4], [4, 2, 1]]
PAIRS: Final = [[1, 2], [2, 4], [4, 1], [1, 4], [2, 1], [4, 2]]
FAST: Final = ("--throttle", 50_000_000, "--concurrency", 3)
#: Less than the producer writes: a throttled replica never catches up.
SLOW: Final = ("--throttle", 200, "--concurrency", 6)
#: Entries of the journal at which the executor is killed, with ZooKeeper and with KRaft, and the command that follows.
KILLS: Final = [
    pytest.param(1, 6, "resume", marks=pytest.mark.extended),
    (3, 8, "rollback"),
    (10, 12, "resume"),
]
_numbers = itertools.count()


@pytest.fixture(scope="module", params=[pytest.param(ZOOKEEPER, marks=pytest.mark.extended), KRAFT])
def cluster(
    request: pytest.FixtureRequest, needs_java: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ExecutedCluster]:
    with executed_cluster(request.param, tmp_path_factory.mktemp("executed")) as cluster:
        yield cluster


def test_a_broker_is_added_and_another_decommissioned(cluster: ExecutedCluster) -> None:
    cluster.execute("add", SPREAD, *FAST)
    cluster.execute("decommission", WITHOUT_3, *FAST)
    code, document, err = cluster.run("rollback", "decommission")
    assert (code, document.get("result")) == (0, "rolled back"), err
    cluster.await_settled(SPREAD)


def test_replication_factors_fall_and_rise(cluster: ExecutedCluster) -> None:
    cluster.execute("fewer", PAIRS, *FAST)
    cluster.execute("more", REPLICAS, *FAST)


def test_a_generated_plan_is_staged_and_executed(cluster: ExecutedCluster) -> None:
    folder, replicas = cluster.generate_stages("leave", "--remove-brokers", 3)
    assert not any(3 in each for each in replicas)
    cluster.execute("leave", replicas, *FAST, plan=folder)
    stages = cluster.run("status", "leave")[1]["stages"]
    assert len(stages) == len(list(folder.glob("stage-*.json"))) > 1
    assert {stage["partitions"] - stage["settled"] for stage in stages} == {0}


@pytest.mark.parametrize("with_zookeeper, with_kraft, verb", KILLS)
def test_a_killed_executor_is_resumed_or_rolled_back(
    cluster: ExecutedCluster, with_zookeeper: int, with_kraft: int, verb: str
) -> None:
    before = cluster.assignment()
    after = WITHOUT_3 if before == REPLICAS else REPLICAS
    name = f"killed-{next(_numbers)}"
    command = cluster.start(name, cluster.plan(name, after), *FAST)
    cluster.await_lines(name, with_zookeeper if cluster.kind == ZOOKEEPER else with_kraft, command)
    command.kill()
    code, document, err = cluster.run(verb, name)
    assert (code, document.get("result")) == (0, "completed" if verb == "resume" else "rolled back"), err
    cluster.await_settled(after if verb == "resume" else before)


def test_an_execution_is_paused_and_aborted(cluster: ExecutedCluster) -> None:
    before = cluster.assignment()
    after = SPREAD if before == REPLICAS else REPLICAS
    command = cluster.start("slow", cluster.plan("slow", after), *SLOW)
    cluster.await_lines("slow", 6, command)
    code, document, err = cluster.run("abort", "slow")
    assert (code, document["result"], document["not_restored"]) == (0, "aborted", []), err
    assert until(lambda: command.pid is None)
    assert not cluster.admin.reassignments()
    code, document, err = cluster.run("rollback", "slow", *FAST)
    assert (code, document["throttle"]) == (0, FAST[1]), err
    cluster.await_settled(before)
    command = cluster.start("signal", cluster.plan("signal", after), *FAST)
    cluster.await_lines("signal", 5, command)
    assert command.stop(PATIENCE_S, signal.SIGINT) in (0, 1), command.log
    assert not cluster.admin.reassignments()
    code, document, err = cluster.run("resume", "signal")
    assert (code, document["result"]) == (0, "completed"), err
    cluster.await_settled(after)


def test_broker_failure_pauses_execution(cluster: ExecutedCluster) -> None:
    """All copies go to the dead broker. Others would have to complete, at the rate of the throttle."""
    if cluster.assignment() != REPLICAS:
        cluster.execute("before", REPLICAS, *FAST)
    command = cluster.start("death", cluster.plan("death", SPREAD), *SLOW)
    cluster.await_lines("death", 6, command)
    cluster.brokers[4].kill()
    assert until(lambda: command.pid is None), command.log
    assert "kframe plan resume" in command.log
    cluster.restart(4)
    assert until(lambda: all(sorted(p.isr) == sorted(p.replicas) for p in cluster.admin.describe().partitions))
    code, document, err = cluster.run("resume", "death", *FAST)
    assert (code, document.get("result")) == (0, "completed"), err
    cluster.await_settled(SPREAD)


def test_no_acknowledged_record_is_lost(cluster: ExecutedCluster) -> None:
    cluster.load.await_more(RECORDS_PER_SECOND)
    assert cluster.load.violations() == []
