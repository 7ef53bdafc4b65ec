"""Run LinkedIn's kafka-tools on a cluster in files. The interpreter is that of an environment with kafka-tools.

Arguments: a folder with brokers.tsv and partitions.tsv, the file for the result, and either ``remove ID`` or
``balance MODULE...``. Prints the processor time of the action in seconds. Imports nothing of kframe.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def read_cluster(folder: Path) -> Any:
    """The cluster as objects of kafka-tools."""
    models = {name: import_module(f"kafka.tools.models.{name.lower()}") for name in ("Broker", "Cluster", "Topic")}
    broker_class, cluster_class, topic_class = (getattr(module, name) for name, module in models.items())

    cluster = cluster_class()
    for line in (folder / "brokers.tsv").read_text().splitlines():
        broker_id, rack = line.split("\t")
        broker = broker_class(f"broker-{broker_id}", id=int(broker_id))
        broker.rack = rack or None
        cluster.add_broker(broker)
    rows: dict[str, list[tuple[list[int], int]]] = {}
    for line in (folder / "partitions.tsv").read_text().splitlines():
        name, _, listed, size = line.split("\t")
        rows.setdefault(name, []).append(([int(broker_id) for broker_id in listed.split(",")], int(size)))
    for name, partitions in rows.items():
        topic = topic_class(name, len(partitions))
        cluster.add_topic(topic)
        for partition, (replicas, partition_size) in zip(topic.partitions, partitions, strict=True):
            partition.size = partition_size
            for position, replica in enumerate(replicas):
                partition.add_replica(cluster.brokers[replica], position)
    return cluster


def action_of(cluster: Any, words: list[str]) -> Any:
    """The action that the words name."""
    actions = import_module(f"kafka.tools.assigner.actions.{words[0]}")
    if words[0] == "remove":
        arguments = argparse.Namespace(exclude_topics=[], brokers=[int(words[1])], to_brokers=[])
        return actions.ActionRemove(arguments, cluster)
    return actions.ActionBalance(argparse.Namespace(exclude_topics=[], types=words[1:]), cluster)


def main() -> None:
    """Read, act, write."""
    folder, out, *words = sys.argv[1:]
    random.seed(0)
    logging.disable(logging.CRITICAL)
    cluster = read_cluster(Path(folder))
    action = action_of(cluster, words)
    start = time.process_time()
    action.process_cluster()
    seconds = time.process_time() - start
    with Path(out).open("w") as file:
        for partition in cluster.partitions():
            replicas = ",".join(str(broker.id) for broker in partition.replicas)
            file.write(f"{partition.topic.name}\t{partition.num}\t{replicas}\n")
    print(seconds)


if __name__ == "__main__":
    main()
