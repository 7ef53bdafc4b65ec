"""A small cluster for examples."""

from __future__ import annotations

from kframe.embedded import Api
from kframe.model.cluster import ClusterState
from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import Outcome, WhatIf


def small_cluster(unclean: int = 0) -> ClusterState:
    """Return brokers 1, 2, 3 in racks a, b, c, and an unregistered broker 4. Topic t has min.insync.replicas 2.

    t-0 and t-1 are healthy. t-2 lacks a follower whose broker is registered. t-3 has one replica. t-4 waits for broker
    4.
    """
    cluster = cluster_of(
        {
            "t": [
                healthy(1, 2, 3, leader_epoch=5),
                healthy(2, 3, 1),
                PartitionSpec((3, 1), leader=3, isr=(3,)),
                healthy(1),
                PartitionSpec((4,), leader=None, isr=(4,)),
            ]
        },
        [registration(1, "a", 11), registration(2, "b", 12), registration(3, "c", 13)],
    )
    cluster.topics.min_insync[0] = 2
    cluster.topics.unclean[0] = unclean
    return cluster


def small(unclean: int = 0) -> Snapshot:
    """Return the small cluster as a snapshot of controller 1, epoch 7."""
    return Snapshot.from_cluster(small_cluster(unclean), controller_id=1, controller_epoch=7)


def leaders(whatif: WhatIf) -> list[int | None]:
    """Return the leaders of t-0, t-1 and so on. -1 is none."""
    return [view.leader for view in whatif.cluster]


def isrs(whatif: WhatIf) -> list[tuple[int, ...]]:
    """Return the ISRs of t-0, t-1 and so on."""
    return [view.isr for view in whatif.cluster]


def requests_by_broker(outcome: Outcome, api: Api) -> dict[int, tuple[int, int]]:
    """Return requests of one kind and their partitions by broker id, for brokers with any."""
    traffic = outcome.traffic[api]
    counts = zip(outcome.broker_ids.tolist(), traffic.requests.tolist(), traffic.entries.tolist(), strict=True)
    return {broker: (requests, entries) for broker, requests, entries in counts if requests}
