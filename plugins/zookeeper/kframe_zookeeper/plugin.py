"""What this distribution offers to kframe: the store for ``zookeeper://`` URLs."""

from __future__ import annotations

from kframe.hookspecs import StoreSpec, hookimpl


@hookimpl
def kframe_stores() -> list[StoreSpec]:
    """The store; its module, and kazoo with it, is imported when it is chosen."""
    return [
        StoreSpec("zookeeper", "kframe_zookeeper.store:open_store", "Kafka's own layout in ZooKeeper 3.5 or later.")
    ]
