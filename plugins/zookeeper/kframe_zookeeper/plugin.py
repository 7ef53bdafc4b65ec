"""The extension points of kframe that this distribution implements: the store and the live cluster of ``zookeeper://``
URLs."""

from __future__ import annotations

from kframe.plugin import ClusterSpec, StoreSpec, hookimpl


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """The store. Its module, and with it kazoo, is imported on first use."""
    return [
        StoreSpec(
            "zookeeper",
            "kframe_zookeeper.store.store:open_store",
            "Kafka's own layout in ZooKeeper 3.5 or later.",
            "kframe_zookeeper.sandbox.fixture:open_temporary_fixture",
        )
    ]


@hookimpl
def kframe_clusters() -> list[ClusterSpec]:
    """Live clusters, for ``kframe snapshot capture`` and ``kframe controller``."""
    return [ClusterSpec("zookeeper", "kframe_zookeeper.live.cluster:open_cluster", "Clusters of Kafka 2.4 to 3.9.")]
