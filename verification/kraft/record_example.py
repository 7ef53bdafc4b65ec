"""Records the bundled metadata log again: ``python -m verification.kraft.record_example OUT``.

Three brokers and a controller of Kafka 4.4 run on this machine. Broker 2 is stopped, broker 3 is killed, broker 2
returns, then broker 3. OUT gets the segment and the snapshots of the controller; it may not have a log yet. The script
needs JDK 17 and Maven.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from kframe_kraft.replay.image import MetadataImage
from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.sources.paths import read_image

from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import CONTROLLER_ID, KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools

_RACKS: Final = {1: "rack-a", 2: "rack-b", 3: "rack-c"}
_SETTINGS: Final = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    # The controller writes one snapshot while the brokers fail.
    "metadata.log.max.record.bytes.between.snapshots": "60000",
}
#: Topic to partitions, replicas and settings.
_TOPICS: Final = {
    "orders": (48, 3, ()),
    "payments": (24, 3, ()),
    "clicks": (60, 2, ()),
    "invoices": (36, 2, ()),
    "page-views": (40, 2, ("min.insync.replicas=1",)),
    "sessions": (12, 3, ("cleanup.policy=compact",)),
    "scratch": (18, 1, ("min.insync.replicas=1",)),
}


def main(out: Path) -> None:
    """Record a cluster into the folder ``out``. Raises FileExistsError if it has a log."""
    (out / LOG_DIRECTORY).mkdir(parents=True)
    options = KraftOptions(brokers=3, combined=False, dynamic_quorum=True, release="4.3", elr=True, settings=_SETTINGS)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        cluster = KraftCluster(folder / "cluster", options)
        for node_id, rack in _RACKS.items():
            with cluster.nodes[node_id].config_path.open("a") as config:
                config.write(f"broker.rack={rack}\n")
        with KafkaTools(folder / "tools") as tools, cluster:
            _play(cluster, tools)
            # The log ends with three running brokers: the controller does not see that they stop.
            cluster.controllers[CONTROLLER_ID].stop()
        _copy(cluster.controllers[CONTROLLER_ID].log_dirs[0], out)


def _play(cluster: KraftCluster, tools: KafkaTools) -> None:
    """Create the topics, then let two brokers fail and return."""
    for topic, (partitions, replicas, settings) in _TOPICS.items():
        arguments = [argument for setting in settings for argument in ("--config", setting)]
        cluster.admin(
            tools,
            "kafka-topics",
            "--create",
            "--topic",
            topic,
            "--partitions",
            partitions,
            "--replication-factor",
            replicas,
            *arguments,
        )
    cluster.nodes[2].stop()
    wait_until(lambda: not _image(cluster).metadata.brokers.is_active(2))
    cluster.nodes[3].kill()
    wait_until(lambda: not _image(cluster).metadata.brokers.is_active(3))
    for node_id in (2, 3):
        cluster.nodes[node_id].start()
        cluster.nodes[node_id].await_started()
        wait_until(partial(_is_in_sync, cluster, node_id))
    wait_until(partial(_is_in_sync, cluster, 2))
    cluster.admin(tools, "kafka-leader-election", "--election-type", "preferred", "--all-topic-partitions")


def _image(cluster: KraftCluster) -> MetadataImage:
    return read_image(cluster.controllers[CONTROLLER_ID].log_dirs[0])


def _is_in_sync(cluster: KraftCluster, broker_id: int) -> bool:
    """Whether a broker is in the ISR of all its partitions that have a leader."""
    metadata = _image(cluster).metadata
    brokers, partitions = metadata.brokers, metadata.partitions
    return all(
        broker_id in brokers.ids_of(partitions.list_of("isr", row))
        for row in np.flatnonzero(partitions.leader >= 0).tolist()
        if broker_id in brokers.ids_of(partitions.list_of("replica", row))
    )


def _copy(source: Path, out: Path) -> None:
    """Copy what a reader of the log needs."""
    log = out / LOG_DIRECTORY
    for path in (source / LOG_DIRECTORY).iterdir():
        if path.suffix in {".log", ".checkpoint"} or path.name == "quorum-state":
            shutil.copyfile(path, log / path.name)
    shutil.copyfile(source / "meta.properties", out / "meta.properties")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
