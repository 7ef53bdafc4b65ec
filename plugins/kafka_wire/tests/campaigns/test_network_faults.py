"""Faults of the network under a producer: no acknowledged record is lost, and one controller acts at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verification.kafka_wire.campaigns.fault_cluster import Fault, FaultCluster, fault_cluster
from verification.kafka_wire.campaigns.network_faults import CONTROLLER_ZOOKEEPER, impaired
from verification.zookeeper import network


@pytest.fixture(scope="module")
def cluster(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    if reason := network.missing():
        pytest.skip(reason)
    with fault_cluster(tmp_path_factory.mktemp("faults")) as cluster:
        yield cluster


@pytest.mark.extended
@pytest.mark.parametrize("fault", [impaired(CONTROLLER_ZOOKEEPER, "blocked both ways", until_elected=True)], ids=str)
def test_no_acknowledged_record_is_lost(cluster: FaultCluster, fault: Fault) -> None:
    """The instance without ZooKeeper still reaches the brokers, until its successor is elected and after that."""
    report = cluster.observe(fault)
    assert report.violations == []
    assert report.controller_epochs > 0
