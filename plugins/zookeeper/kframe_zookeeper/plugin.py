"""What this distribution offers to kframe: the store and the live cluster for ``zookeeper://`` URLs."""

from __future__ import annotations

from kframe.plugin import ClusterSpec, StoreSpec, hookimpl


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """The store; its module, and kazoo with it, is imported when it is chosen."""
    return [
        StoreSpec(
            "zookeeper",
            "kframe_zookeeper.store:open_store",
            "Kafka's own layout in ZooKeeper 3.5 or later.",
            "kframe_zookeeper.testing.zookeeper_fixture:open_trials",
        )
    ]


@hookimpl
def kframe_clusters() -> list[ClusterSpec]:
    """Live clusters, for ``kframe snapshot capture`` and ``kframe controller``."""
    return [ClusterSpec("zookeeper", "kframe_zookeeper.live:open_cluster", "Clusters of Kafka 2.4 to 3.9.")]
