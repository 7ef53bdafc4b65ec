"""The cluster of ``--demo`` in a mode, of a size."""

from __future__ import annotations

from kframe_console.sources.demo.cluster import DIRECTORIES, PARTITIONS_WITH_DIRECTORIES_MAX, DemoCluster
from kframe_console.sources.demo.kraft import KraftDemo
from kframe_console.sources.demo.source import DemoSource
from kframe_console.sources.demo.zookeeper import ZookeeperDemo


def demo_source(mode: str, partitions: int, brokers: int) -> DemoSource:
    """The source of a cluster that begins with so many partitions. Its brokers have one directory if there are many."""
    directories = DIRECTORIES if partitions <= PARTITIONS_WITH_DIRECTORIES_MAX else 1
    cluster: DemoCluster
    if mode == "kraft":
        cluster = KraftDemo(brokers, directories)
    else:
        cluster = ZookeeperDemo(brokers, directories)
    return DemoSource(cluster, partitions)
