"""The active instance of kframe ends while standbys and brokers contend; ZooKeeper ends under kframe and under
Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kframe.testing.waiting import until
from verification.kafka_wire.failovers import (
    INSTANCES,
    FailoverCluster,
    failover_cluster,
)

KILLS = 3


@pytest.fixture(scope="module")
def cluster(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailoverCluster]:
    with failover_cluster(tmp_path_factory.mktemp("failovers")) as cluster:
        yield cluster


@pytest.mark.smoke
def test_standby_takes_role_of_killed_instance_at_next_epoch(cluster: FailoverCluster) -> None:
    before = cluster.epochs_of_elected_brokers()
    failovers = [cluster.kill() for _ in range(KILLS)]
    assert [failover.controller_epochs for failover in failovers] == [1] * KILLS
    assert cluster.epochs_of_elected_brokers() == before


def test_standby_takes_role_of_frozen_instance(cluster: FailoverCluster) -> None:
    """Brokers are notified at the same time. A broker may be elected first, until an instance takes the role."""
    failover = cluster.freeze()
    assert failover.winner in INSTANCES
    assert failover.controller_epochs <= 2


@pytest.mark.parametrize("controller", ["kframe", pytest.param("kafka", marks=pytest.mark.extended)])
def test_controller_keeps_role_and_epoch_after_zookeeper_restart(cluster: FailoverCluster, controller: str) -> None:
    """The server is down until the fence of an instance would be closed. Kafka's controller is the reference."""
    if controller == "kafka":
        cluster.stop_instances()
    before = cluster.controller()
    assert (before[0] in INSTANCES) is (controller == "kframe")
    cluster.outage()
    assert cluster.controller() == before
    # The controller still handles events.
    broker = next(broker for broker in cluster.cluster.brokers.values() if broker.id != before[0])
    cluster.lose(broker.id)

    assert until(lambda: not {broker.id, -1} & set(cluster.leaders())), cluster.log()
    assert cluster.controller() == before
    broker.start()
    broker.await_started()
