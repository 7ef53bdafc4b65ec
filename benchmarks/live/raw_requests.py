"""Time the bulk reads and writes of a cluster on a ZooKeeper server, without a controller.

    python -m benchmarks.live.raw_requests HOST:PORT [--broker 0] [--rounds 5]

Reads every topic and state by multiRead requests, and rewrites the states of one broker's partitions by multi requests
that check the controller epoch. A failover and a broker failure cannot do with less. Requests are encoded before the
clock starts and responses are not decoded. Prints one JSON object with the median of the rounds in seconds.

Each round follows a pause, as a real event does: after a pause other data has replaced the server's in the CPU caches.
Rounds without a pause are timed as well; at 20,000 partitions they took a fifth to a third less.

The server is warmed up by all requests that a controller sends, in several sessions, because its JIT compiler replaces
this code several times during the first million reads. At 100,000 partitions rounds of 150 ms were followed by some of
650 ms, and only from the twelfth round on all took 130 ms.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kazoo.client import KazooClient
from kazoo.protocol.serialization import Sync
from kframe_zookeeper.bulk.nodes import read_nodes
from kframe_zookeeper.bulk.writes import Writes, require, write_once
from kframe_zookeeper.session.requests import MultiRead, check, get_data, set_data
from kframe_zookeeper.session.session import Session
from kframe_zookeeper.session.watches import Watched, Watches
from kframe_zookeeper.znodes import paths
from kframe_zookeeper.znodes.topics import decode_topic

#: Reads that share a request.
STATES, TOPICS = 3000, 100
#: Reads after which a server responds evenly, the sessions that they come in, and the most rounds that they take.
WARM_READS, WARM_SESSIONS, WARM_ROUNDS = 2_000_000, 10, 200
#: Seconds that the server has nothing to do before a round. Four were not slower.
PAUSE_S: Final = 1.0
#: Lists that every controller watches.
LISTS: Final = (paths.BROKER_IDS, paths.TOPICS, paths.CONFIG_CHANGES, paths.ISR_CHANGES, paths.LOG_DIR_EVENTS)
ANY_VERSION: Final = -1


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="The raw reads and writes of a failover and of a broker's failure")
    parser.add_argument("hosts", help="a running ZooKeeper 3.6 or later with a cluster")
    parser.add_argument("--broker", type=int, default=0, help="whose partitions are written")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", action="store_true", help="do not warm the server up")
    chosen = parser.parse_args()
    session = open_session(chosen.hosts)
    raw = Raw.of(session, chosen.broker)
    session.close()
    rounds = min(WARM_READS // raw.partitions, WARM_ROUNDS) // WARM_SESSIONS + 1
    for _ in range(0 if chosen.cold else WARM_SESSIONS):
        session = open_session(chosen.hosts)
        raw.warm_up(session, rounds)
        session.close()
    session = open_session(chosen.hosts)
    figures = {
        "partitions": raw.partitions,
        "read_seconds": _median(lambda: raw.read(session), chosen.rounds, PAUSE_S),
        "read_seconds_at_once": _median(lambda: raw.read(session), chosen.rounds),
        "written": len(raw.writes),
        "write_seconds": _median(lambda: raw.write(session), chosen.rounds, PAUSE_S),
        "write_seconds_at_once": _median(lambda: raw.write(session), chosen.rounds),
    }
    session.close()
    print(json.dumps({"bench": "raw", **figures}))


@dataclass(frozen=True)
class Raw:
    """The requests, ready to be sent. Reads as (operations, how many)."""

    partitions: int
    topic_paths: Sequence[str]
    reads: Sequence[tuple[bytes, int]]
    guard: bytes
    writes: Writes

    @staticmethod
    def of(session: Session, broker: int) -> Raw:
        """For the present cluster. Uses the partitions of one of its brokers."""
        names = session.client.get_children(paths.TOPICS)
        topic_paths = [paths.topic_path(name) for name in names]
        nodes = read_nodes(session, topic_paths)
        topics = [decode_topic(name, node.data) for name, node in zip(names, nodes, strict=True) if node is not None]
        state_paths = [
            paths.state_path(topic.name, number) for topic in topics for number in range(len(topic.replicas))
        ]
        broker_paths = [
            paths.state_path(topic.name, number)
            for topic in topics
            for number, replicas in enumerate(topic.replicas)
            if broker in replicas
        ]
        guard = check(paths.CONTROLLER_EPOCH, session.client.get(paths.CONTROLLER_EPOCH)[1].version)
        states = (node for node in read_nodes(session, broker_paths) if node is not None)
        writes = [
            [set_data(path, node.data or b"", ANY_VERSION)] for path, node in zip(broker_paths, states, strict=True)
        ]
        reads = [*_reads(topic_paths, TOPICS), *_reads(state_paths, STATES)]
        return Raw(len(state_paths), topic_paths, reads, guard, Writes.of(writes))

    def read(self, session: Session) -> None:
        """Read everything."""
        for _ in session.ask([MultiRead(*read, session.fence) for read in self.reads]):
            pass

    def write(self, session: Session) -> None:
        """Write the broker's partitions."""
        require(write_once(session, self.guard, self.writes))

    def warm_up(self, session: Session, rounds: int) -> None:
        """Read and write everything, and look and watch as controllers do."""
        for _ in range(rounds):
            watches = Watches(session, lambda event, path: None)
            session.call(Sync(paths.CONTROLLER_EPOCH))
            watches.exists(paths.CONTROLLER)
            watches.await_lists(watches.begin_lists(LISTS))
            self.read(session)
            watches.arm(self.topic_paths, Watched.DATA, watches.last_zxid())
            self.write(session)


def open_session(hosts: str) -> Session:
    """A session of the store's own client, with a timeout of 60 s."""
    session = Session(KazooClient(hosts, timeout=60.0))
    session.begin(60.0)
    return session


def _reads(paths_: Sequence[str], batch_size: int) -> Iterator[tuple[bytes, int]]:
    parts = (paths_[first : first + batch_size] for first in range(0, len(paths_), batch_size))
    return ((b"".join(map(get_data, part)), len(part)) for part in parts)


def _median(action: Callable[[], None], rounds: int, pause_s: float = 0.0) -> float:
    """Seconds, the first round left out. ``pause_s`` before each."""
    seconds = []
    for _ in range(rounds + 1):
        time.sleep(pause_s)
        begun = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begun)
    return round(statistics.median(seconds[1:]), 4)


if __name__ == "__main__":
    main()
