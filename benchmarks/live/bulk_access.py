"""Compare bulk reads and writes of partition states with plain kazoo, on one server.

    python -m benchmarks.live.bulk_access [--partitions 100000] [--rounds 3] [--hosts HOST:PORT]

Prints one JSON record: seconds and partitions per second of each method, their ratios, machine and versions. Kazoo
reads by ``get_async`` and writes by one multi per partition (a check of the controller epoch and a setData, as
Kafka), with 2,000 requests in flight. All methods must write and read the same states. Without ``--hosts`` a server
is started that does not sync its log to disk.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import kazoo.version
import numpy as np
from kazoo.client import KazooClient
from kframe_zookeeper.bulk.state_writes import NewStates, StateWriter
from kframe_zookeeper.bulk.states import PathNames, read_states
from kframe_zookeeper.bulk.writes import Writes, require, write_all
from kframe_zookeeper.session.requests import check, create, encode_acl
from kframe_zookeeper.session.session import Session
from kframe_zookeeper.znodes.acls import OPEN
from kframe_zookeeper.znodes.topics import decode_state, encode_state

from benchmarks.records import command_of, record_of
from benchmarks.timing import timed
from kframe.plugin.cluster import NO_STATE
from kframe.plugin.columns import Ragged, offsets_of
from kframe.plugin.store import WriteCode
from verification.zookeeper.servers import VERSION, ServerHandle, ServerOptions

#: Requests that plain kazoo has in flight.
WINDOW: Final = 2000
PARTITIONS_A_TOPIC: Final = 100
BROKERS: Final = 30
CONTROLLER_EPOCH: Final = 7
ACL: Final = encode_acl(OPEN)


class StoredStates:
    """Topics below a new chroot. Also the partition states to write."""

    def __init__(self, session: Session, partitions: int) -> None:
        self.session = session
        self.chroot = f"/bench-{time.time_ns()}"
        numbers = np.arange(partitions, dtype=np.int32)
        self.topic, self.partition = numbers // PARTITIONS_A_TOPIC, numbers % PARTITIONS_A_TOPIC
        self.topics = [f"topic-{number:06}" for number in range(int(self.topic[-1]) + 1)]
        encoded = [name.encode() for name in self.topics]
        at = offsets_of([len(name) for name in encoded])
        self.names = PathNames.of(f"{self.chroot}/", (at, b"".join(encoded)))
        self.guard = check(f"{self.chroot}/epoch", 0)
        self.writer = StateWriter(session, self.guard, ACL)
        nodes = [self.chroot, f"{self.chroot}/epoch", *(f"{self.chroot}/{name}" for name in self.topics)]
        codes, _ = write_all(session, b"", Writes.of([[create(path, b"7", ACL)] for path in nodes]))
        require(codes)

    def states(self, expected: int) -> NewStates:
        """The states to be written over version ``expected``."""
        count = len(self.topic)
        first = (np.arange(count, dtype=np.int32) + expected) % BROKERS
        isr = np.stack([first, (first + 1) % BROKERS, (first + 2) % BROKERS], axis=1).astype(np.int32)
        return NewStates(
            self.names,
            self.topic,
            self.partition,
            first.astype(np.int32),
            np.full(count, expected + 1, np.int32),
            np.zeros(count, np.uint8),
            Ragged(np.arange(count + 1, dtype=np.int32) * 3, isr.ravel()),
            np.full(count, expected, np.int32),
            CONTROLLER_EPOCH,
        )

    def write(self, expected: int) -> None:
        """In bulk."""
        result = self.writer.write(self.states(expected))
        assert (result.codes == WriteCode.OK).all()
        assert (result.partition_epoch == expected + 1).all()

    def write_singly(self, expected: int) -> None:
        """By a multi each."""
        states, client, waiting = self.states(expected), self.session.client, deque[Any]()
        for i in range(len(self.topic)):
            data = encode_state(int(states.leader[i]), expected + 1, states.isr[i].tolist(), CONTROLLER_EPOCH)
            transaction = client.transaction()
            transaction.check(f"{self.chroot}/epoch", 0)
            transaction.set_data(self._path(i), data, expected)
            waiting.append(transaction.commit_async())
            if len(waiting) == WINDOW:
                assert waiting.popleft().get()[1].version == expected + 1
        assert all(result.get()[1].version == expected + 1 for result in waiting)

    def read(self, expected: int) -> None:
        """In bulk, into columns."""
        expected_states, stored = (
            self.states(expected - 1),
            read_states(self.session, self.names, self.topic, self.partition),
        )
        assert stored.parsed.all()
        assert expected_states.equal(stored).all()

    def read_singly(self, expected: int) -> None:
        """By ``get_async``, each state decoded."""
        expected_states, client, waiting = self.states(expected - 1), self.session.client, deque[Any]()
        responses = []
        for i in range(len(self.topic)):
            waiting.append(client.get_async(self._path(i)))
            if len(waiting) == WINDOW:
                responses.append(waiting.popleft().get())
        responses += [result.get() for result in waiting]
        for i, (data, stat) in enumerate(responses):
            state = decode_state(data, "")
            assert (state.leader, stat.version) == (expected_states.leader[i], expected)

    def _path(self, row: int) -> str:
        return f"{self.names.partition_path(int(self.topic[row]), int(self.partition[row]))}/state"


@contextmanager
def server(hosts: str | None = None, heap: str = "2g") -> Iterator[str]:
    """Where ZooKeeper listens. One of our own unless there is one."""
    if hosts is not None:
        yield hosts
        return
    with tempfile.TemporaryDirectory(prefix="kframe-bench-") as folder:
        handle = ServerHandle(Path(folder), ServerOptions(tick_ms=2000, jvm=("-XX:TieredStopAtLevel=4", f"-Xmx{heap}")))
        handle.start()
        try:
            yield handle.address
        finally:
            handle.stop()


def run(session: Session, partitions: int, rounds: int) -> dict[str, Any]:
    """Every way in turn, ``rounds`` times, on the same states."""
    cluster = StoredStates(session, partitions)
    seconds: dict[str, list[float]] = {name: [] for name in ("read", "read_singly", "write", "write_singly")}
    created = timed(lambda: cluster.write(NO_STATE))[0]
    cluster.write(0)  # neither side is measured cold
    version = 1
    for _ in range(rounds):
        for write in ("write_singly", "write"):
            seconds[write].append(timed(partial(getattr(cluster, write), version))[0])
            version += 1
        for read in ("read_singly", "read"):
            seconds[read].append(timed(partial(getattr(cluster, read), version))[0])
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "partitions": partitions,
        "seconds": {name: [round(elapsed, 3) for elapsed in times] for name, times in seconds.items()},
        "create_seconds": round(created, 3),
        "partitions_per_second": {name: round(partitions / median) for name, median in medians.items()},
        "read_ratio": round(medians["read_singly"] / medians["read"], 1),
        "write_ratio": round(medians["write_singly"] / medians["write"], 1),
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Bulk access to ZooKeeper beside plain kazoo")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hosts", help="a running ZooKeeper 3.6 or later; nothing is deleted there")
    chosen = parser.parse_args()
    with server(chosen.hosts) as hosts:
        session = Session(KazooClient(hosts, timeout=30.0))
        session.begin(15.0)
        figures = run(session, chosen.partitions, chosen.rounds)
        session.close()
    figures |= {"kazoo": kazoo.version.__version__, "zookeeper": VERSION if chosen.hosts is None else "as given"}
    print(json.dumps(record_of(command_of("benchmarks.live.bulk_access"), figures), indent=2))


if __name__ == "__main__":
    main()
