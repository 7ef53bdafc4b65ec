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
from contextlib import closing
from typing import Any, Final

import numpy as np
from kazoo.client import KazooClient
from kframe_zookeeper.session.settings import settings_of_url
from kframe_zookeeper.store.store import ZooKeeperStore

from benchmarks.live.bulk_access import server
from benchmarks.live.znodes import populate
from benchmarks.records import ROOT, command_of, record_of
from kframe.plugin.store import Event, SessionExpired, StateChange
from kframe.ports.store_requests import Claim, Load, Prepare, WriteStates
from verification.zookeeper.servers import VERSION

#: A prime number, so that no partition lists a broker twice.
BROKERS: Final = 31
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


def populate_server(address: str, partitions: int) -> None:
    """Write a cluster of so many partitions."""
    client = KazooClient(address, timeout=60)
    client.start()
    try:
        populate(client, partitions, BROKERS, REPLICATION_FACTOR)
    finally:
        client.stop()
        client.close()


def load(url: str) -> dict[str, Any]:
    """Load the cluster and write every state once, as a controller would."""
    events: list[Event] = []
    with closing(ZooKeeperStore(settings_of_url(url))) as store:
        store.open(events.append)
        store.perform(Claim(1))
        store.perform(Prepare())
        with Stalls() as stalls:
            begun = time.perf_counter()
            cluster = store.perform(Load())
            loaded = time.perf_counter() - begun
        figures = {"load_seconds": loaded, "load_longest_stall_seconds": stalls.longest}
        figures["load_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        rows, p = np.arange(len(cluster), dtype=np.int32), cluster.partitions
        change = StateChange(
            rows,
            p.leaders_of(rows),
            np.ones(len(rows), np.int32),
            np.zeros(len(rows), np.uint8),
            p.lists("isr", rows),
            p.partition_epoch.copy(),
            1,
        )
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
        url = f"zookeeper://{address}?session.timeout.ms={chosen.session_timeout_ms}"
        populate_server(address, chosen.partitions)
        command = [sys.executable, "-m", "benchmarks.live.load", "--url", url]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    figures = json.loads(done.stdout) | {
        "session_timeout_ms": chosen.session_timeout_ms,
        "zookeeper": VERSION,
    }
    print(json.dumps(record_of(command_of("benchmarks.live.load"), figures), indent=2))


if __name__ == "__main__":
    main()
