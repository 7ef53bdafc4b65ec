"""What a ZooKeeper server needs for a cluster's bulk reads and writes alone, without anybody who makes use of them.

    python bench_raw.py HOST:PORT [--broker 0] [--rounds 5]

Reads every topic and every state by multiReads, and writes the states of one broker's partitions back as they stand,
by multis that check the controller epoch: the requests that a failover and a broker's failure cannot do without, made
ready before the clock starts, their answers left lying. Prints one JSON object: the median of the rounds in seconds.

The server is warmed up first. Its compiler goes through several versions of this code during the first million reads:
at 100,000 partitions rounds of 150 ms were followed by some of 650, and only from the twelfth on were all of 130. A
server at work has long been through that; on one that has not, the figures tell of the moment they were taken in.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Final

from kazoo.client import KazooClient
from kframe_zookeeper import paths
from kframe_zookeeper.multiread import read_nodes
from kframe_zookeeper.multiwrite import Writes, require, write_once
from kframe_zookeeper.requests import MultiRead, check, get_data, set_data
from kframe_zookeeper.session import Session
from kframe_zookeeper.znodes import decode_topic

#: Reads that share a request.
STATES, TOPICS = 3000, 100
#: Operations after which a server answers evenly.
WARM_READS, WARM_WRITES = 2_000_000, 300_000
ANY_VERSION: Final = -1


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="The raw reads and writes of a failover and of a broker's failure")
    parser.add_argument("hosts", help="a running ZooKeeper 3.6 or later with a cluster")
    parser.add_argument("--broker", type=int, default=0, help="whose partitions are written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="do not warm the server up")
    chosen = parser.parse_args()
    session = Session(KazooClient(chosen.hosts, timeout=60.0))
    session.begin(60.0)
    names = session.client.get_children(paths.TOPICS)
    topic_paths = [paths.topic_path(name) for name in names]
    nodes = read_nodes(session, topic_paths)
    topics = [decode_topic(name, node.data) for name, node in zip(names, nodes, strict=True) if node is not None]
    state_paths = [paths.state_path(one.name, number) for one in topics for number in range(len(one.replicas))]
    hit = [
        paths.state_path(one.name, number)
        for one in topics
        for number, replicas in enumerate(one.replicas)
        if chosen.broker in replicas
    ]
    guard = check(paths.CONTROLLER_EPOCH, session.client.get(paths.CONTROLLER_EPOCH)[1].version)
    states = (node for node in read_nodes(session, hit) if node is not None)
    writes = Writes.of(
        [[set_data(path, node.data or b"", ANY_VERSION)] for path, node in zip(hit, states, strict=True)]
    )

    reads = _reads(session, topic_paths, TOPICS) + _reads(session, state_paths, STATES)

    def read() -> None:
        for _ in session.ask(reads):
            pass

    def write() -> None:
        require(write_once(session, guard, writes))

    read_s, write_s = (
        _median(action, chosen.rounds, 1 if chosen.cold else math.ceil(warm / operations))
        for action, warm, operations in ((read, WARM_READS, len(state_paths)), (write, WARM_WRITES, len(hit)))
    )
    figures = {"partitions": len(state_paths), "read_seconds": read_s, "written": len(hit), "write_seconds": write_s}
    session.close()
    print(json.dumps({"bench": "raw", **figures}))


def _reads(session: Session, where: Sequence[str], most: int) -> list[MultiRead]:
    parts = [where[first : first + most] for first in range(0, len(where), most)]
    return [MultiRead(b"".join(map(get_data, part)), len(part), session.fence) for part in parts]


def _median(action: Callable[[], None], rounds: int, before: int) -> float:
    """Seconds, of the rounds behind the first ``before``."""
    seconds = []
    for _ in range(before + rounds):
        begun = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begun)
    return round(statistics.median(seconds[before:]), 4)


if __name__ == "__main__":
    main()
