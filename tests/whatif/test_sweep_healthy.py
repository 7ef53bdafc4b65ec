"""Leaders after a failure of a healthy cluster: counted, and elected partition by partition."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.model.arrays import Int32
from kframe.snapshot import Health, generate
from kframe.whatif.engines.settings import config_of
from kframe.whatif.engines.zookeeper.sweep_counts import count_failures

BROKERS = 9


def led(lists: list[list[int]], failed: set[int]) -> Int32:
    """Return the number of leaders by broker: the first remaining replica of each partition leads."""
    counts = np.zeros(BROKERS, np.int32)
    for replicas in lists:
        remaining = [broker for broker in replicas if broker not in failed]
        if remaining:
            counts[remaining[0]] += 1
    return counts


@pytest.mark.parametrize("racks", [1, 2, 4])
@pytest.mark.parametrize("replicas", [1, 2, 3, 5])
def test_leaders_after_each_failure(replicas: int, racks: int) -> None:
    snapshot = generate(700, BROKERS, replicas, racks=racks, health=Health(min_insync=2))
    cluster = snapshot.to_cluster()
    counts = count_failures(cluster, config_of(snapshot))
    p = cluster.partitions
    lists = p.replica[: replicas * len(p)].reshape(-1, replicas).tolist()
    before = led(lists, set())
    assert counts.leads.tolist() == [before.tolist()] * 2
    for broker in range(BROKERS):
        assert (before + counts.broker_leads[broker]).tolist() == led(lists, {broker}).tolist()
    assert len(counts.rack_leads) == racks
    for rack in range(racks):
        failed = set(np.flatnonzero(counts.rack == rack).tolist())
        assert (before + counts.rack_leads[rack]).tolist() == led(lists, failed).tolist()
