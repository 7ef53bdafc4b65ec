"""Load a whole cluster by a controller's store under a short session timeout.

    python -m benchmarks.live.load [--partitions 1000000] [--session-timeout-ms 6000]

Prints one JSON record: seconds to load the cluster and to write all states, the peak memory of the loading process,
the longest stall of its threads, and whether its session survived. The server runs on the same machine and does not
sync its log to disk. Writing a million partitions first takes a minute.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from kframe_zookeeper.session.settings import settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore

from benchmarks.live.bulk_access import BROKERS, PARTITIONS_A_TOPIC, server
from benchmarks.records import ROOT, command_of, record_of
from kframe.plugin.cluster import NO_STATE, TopicTable
from kframe.plugin.columns import Int32, Ragged
from kframe.plugin.store import Event, SessionExpired, StateChange
from kframe.ports.store_requests import Claim, CreateTopics, Load, Prepare, ReleaseRole, WriteStates
from verification.zookeeper.servers import VERSION

REPLICATION_FACTOR: Final = 3
#: How often the watcher looks whether it is let run.
LOOK_S: Final = 0.005


class Stalls:
    """A thread that notes for how long it was not let run."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Stalls:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        last = time.perf_counter()
        while not self._over.wait(LOOK_S):
            now = time.perf_counter()
            self.longest, last = max(self.longest, now - last - LOOK_S), now


@contextmanager
def controller(url: str) -> Iterator[tuple[ZooKeeperStore, list[Event]]]:
    """A store in office, and what it has events."""
    store, events = ZooKeeperStore(settings_of_url(url)), list[Event]()
    store.open(events.append)
    store.perform(Claim(1))
    store.perform(Prepare())
    try:
        yield store, events
    finally:
        store.perform(ReleaseRole())
        store.close()


def seed(url: str, partitions: int) -> None:
    """Write a cluster of so many partitions."""
    topics, count = partitions // PARTITIONS_A_TOPIC, partitions // PARTITIONS_A_TOPIC * PARTITIONS_A_TOPIC
    replicas = (np.arange(count)[:, None] + np.arange(REPLICATION_FACTOR)) % BROKERS
    lists = Ragged(
        np.arange(count + 1, dtype=np.int32) * np.int32(REPLICATION_FACTOR), replicas.astype(np.int32).ravel()
    )
    names, sizes = (
        tuple(f"topic-{number:06}" for number in range(topics)),
        np.full(topics, PARTITIONS_A_TOPIC, np.int32),
    )
    with controller(url) as (store, _):
        store.perform(CreateTopics(TopicTable.starting(names, sizes, lists), ({},) * topics))
        cluster = store.perform(Load())
        rows, p = np.arange(len(cluster), dtype=np.int32), cluster.partitions
        change = _change(
            rows, p.brokers_of(p.slot_start), 0, p.lists("replica", rows), np.full(len(rows), NO_STATE, np.int32)
        )
        assert store.perform(WriteStates(cluster, change)).accepted.all()


def load(url: str) -> dict[str, Any]:
    """Load the cluster and write every state once, as a controller would."""
    with controller(url) as (store, events):
        with Stalls() as stalls:
            begun = time.perf_counter()
            cluster = store.perform(Load())
            loaded = time.perf_counter() - begun
        figures = {"load_seconds": loaded, "load_longest_stall_seconds": stalls.longest}
        figures["load_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        rows, p = np.arange(len(cluster), dtype=np.int32), cluster.partitions
        change = _change(rows, p.leaders_of(rows), 1, p.lists("isr", rows), p.partition_epoch.copy())
        with Stalls() as stalls:
            begun = time.perf_counter()
            result = store.perform(WriteStates(cluster, change))
            figures |= {"write_seconds": time.perf_counter() - begun, "write_longest_stall_seconds": stalls.longest}
        assert result.accepted.all()
        assert not store.quarantined()
        return {
            "partitions": len(cluster),
            "session_lived_on": not any(isinstance(event, SessionExpired) for event in events),
            **figures,
        }


def _change(rows: Int32, leader: Int32, leader_epoch: int, isr: Ragged, expected: Int32) -> StateChange:
    count = len(rows)
    return StateChange(
        rows, leader, np.full(count, leader_epoch, np.int32), np.zeros(count, np.uint8), isr, expected, 1
    )


def main() -> None:
    """Start a server, write the cluster, load it in a process of its own, print the figures."""
    parser = argparse.ArgumentParser(description="A whole cluster loaded by a controller's store")
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--session-timeout-ms", type=int, default=6_000)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.url:
        print(json.dumps(load(chosen.url)))
        return
    with server(heap="6g") as address:
        url = f"zookeeper://{address}/load?session.timeout.ms={chosen.session_timeout_ms}&kframe.create.chroot=true"
        seed(url, chosen.partitions)
        command = [sys.executable, "-m", "benchmarks.live.load", "--url", url]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    figures = json.loads(done.stdout) | {
        "session_timeout_ms": chosen.session_timeout_ms,
        "zookeeper": VERSION,
    }
    print(json.dumps(record_of(command_of("benchmarks.live.load"), figures), indent=2))


if __name__ == "__main__":
    main()
