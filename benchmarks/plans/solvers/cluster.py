"""The files of a case, and the rules that each solver gets.

A partition has as many replicas as before, on distinct brokers, and at most its share of them in one rack. The load of
each broker is within its limits, those of kframe's plan. What is copied is to be the least.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cluster:
    """``replicas`` are indexes of brokers, ``racks`` indexes of racks: each broker without a rack is its own.

    ``lower`` and ``upper`` limit the sum of ``weights`` of a broker's replicas. A copy costs its weight.
    """

    brokers: list[int]
    racks: list[int]
    lower: list[int]
    upper: list[int]
    names: list[tuple[str, str]]
    replicas: list[list[int]]
    weights: list[int]

    @property
    def members(self) -> list[list[int]]:
        """The brokers of each rack."""
        racks: list[list[int]] = [[] for _ in range(max(self.racks) + 1)]
        for broker, rack in enumerate(self.racks):
            racks[rack].append(broker)
        return racks

    @property
    def shares(self) -> list[int]:
        """The greatest number of replicas of each partition in one rack that can hold any."""
        usable = len({rack for rack, upper in zip(self.racks, self.upper, strict=True) if upper})
        return [-(-len(replicas) // usable) for replicas in self.replicas]


def read_cluster(folder: Path) -> Cluster:
    """Read brokers.tsv, partitions.tsv and limits.tsv."""
    brokers, racks, lower, upper = [], [], [], []
    labels: dict[str, int] = {}
    for line in (folder / "brokers.tsv").read_text().splitlines():
        broker_id, rack = line.split("\t")
        brokers.append(int(broker_id))
        racks.append(labels.setdefault(rack or f"broker {broker_id}", len(labels)))
    for line in (folder / "limits.tsv").read_text().splitlines():
        low, high = line.split("\t")
        lower.append(int(low))
        upper.append(int(high))
    index = {broker_id: number for number, broker_id in enumerate(brokers)}
    names, replicas, weights = [], [], []
    by_size = (folder / "by-size").exists()
    for line in (folder / "partitions.tsv").read_text().splitlines():
        topic, partition, listed, size = line.split("\t")
        names.append((topic, partition))
        replicas.append([index[int(broker_id)] for broker_id in listed.split(",")])
        weights.append(int(size) if by_size else 1)
    return Cluster(brokers, racks, lower, upper, names, replicas, weights)


def arguments() -> tuple[Cluster, Path, float]:
    """The cluster, the file for the result, and the time (``time.monotonic``) at which a solver must end."""
    folder, out, seconds = sys.argv[1:]
    end = time.monotonic() + 0.9 * float(seconds)
    return read_cluster(Path(folder)), Path(out), end


def write_result(cluster: Cluster, placed: Sequence[Sequence[int]], out: Path, bound: float | None) -> None:
    """Write the replicas of each partition, those that stay first, and print the lower bound and the time used."""
    with out.open("w") as file:
        for name, before, after in zip(cluster.names, cluster.replicas, placed, strict=True):
            chosen = set(after)
            ordered = [broker for broker in before if broker in chosen]
            ordered += [broker for broker in after if broker not in before]
            listed = ",".join(str(cluster.brokers[broker]) for broker in ordered)
            file.write("\t".join((*name, listed)) + "\n")
    print("-" if bound is None else bound, time.process_time())
