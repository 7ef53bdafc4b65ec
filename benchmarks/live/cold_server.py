"""Measure kframe on a ZooKeeper server that has just started: ``python -m benchmarks.live.cold_server``.

After a restart of the whole ensemble the server serves the first requests with code that its JIT compiler has not
translated yet. On a small machine the compiler takes the processor from the controller. To tell this from
kframe's own work, each run of the controller has a counterpart: the raw requests of both events on another server
process with the same data, which has served nothing either. The order of the two changes from pair to pair. A failover
also sends states to all brokers, so the bytes alone are measured, too. Needs Maven and JDK 17.
"""

from __future__ import annotations

import argparse
import json
import logging
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kframe_zookeeper.session.requests import check
from kframe_zookeeper.znodes import paths

from benchmarks.live.__main__ import spread
from benchmarks.live.broker import UPDATE_METADATA, StandInBroker
from benchmarks.live.controllers import (
    KFRAME,
    QUIET_SECONDS,
    Setup,
    clean_up,
    compiling,
    free_port,
    perform_run,
    register,
    start_zookeeper,
)
from benchmarks.live.raw_requests import Raw, open_session
from benchmarks.live.znodes import FAILING, populate
from benchmarks.records import command_of, table, write_record
from benchmarks.report.ratios import Ratio, to_record
from benchmarks.timing import timed
from verification.zookeeper.kafka import jars

EVENTS: Final = ("failover", "broker-failure")
#: Seconds until a server has read its snapshot and log.
START_S: Final = 300.0
HEADINGS: Final = ("event", "partitions", "kframe s", "compiler s", "raw s", "compiler s", "times raw", "bytes alone s")
LEGEND: Final = (
    "Each run is the first on a new server process. compiler: processor time of the server's JIT compiler during the "
    "event. raw: the requests alone. times raw: by pairs, median (least to most). bytes alone: to send the brokers as "
    "many bytes as the failover sends."
)
#: What is sent in one request.
_PART: Final = bytes(8 * 2**20)

Record = dict[str, Any]


@dataclass(frozen=True)
class ColdServer:
    """A server process that has served nothing but its client's session."""

    pid: int
    address: str
    client: KazooClient


@contextmanager
def cold_server(setup: Setup, folder: Path) -> Iterator[ColdServer]:
    """Start a server on the data of ``folder``; kill it afterwards."""
    port = free_port()
    process = start_zookeeper(setup, folder, str(port))
    client = KazooClient(f"127.0.0.1:{port}", timeout=60)
    try:
        client.start(START_S)
        yield ColdServer(process.pid, f"127.0.0.1:{port}", client)
    finally:
        client.stop()
        client.close()
        process.kill()
        process.wait()


def kframe_run(setup: Setup, server: ColdServer, brokers: list[StandInBroker], number: int) -> list[Record]:
    """A failover and a broker failure under kframe. Restores the cluster."""
    for broker in brokers:
        register(server.client, broker)
    elected_at: list[float] = []
    server.client.DataWatch("/controller", lambda data, stat: elected_at.append(time.time()) if data else None)
    with tempfile.TemporaryDirectory() as folder:
        measured = perform_run(
            setup, Path(folder) / "run", server.address, server.pid, KFRAME, number, server.client, brokers, elected_at
        )
    clean_up(setup, server.client, brokers)
    return measured


def raw_run(
    setup: Setup, server: ColdServer, raw: Raw, number: int, brokers: list[StandInBroker], sent_bytes: int
) -> list[Record]:
    """The reads of a failover, and after as long a pause as kframe has the writes of a broker failure.

    The bytes that the failover sends are sent between the two.
    """
    about = setup.about("raw", number)
    version = server.client.get(paths.CONTROLLER_EPOCH)[1].version
    raw = replace(raw, guard=check(paths.CONTROLLER_EPOCH, version))
    session = open_session(server.address)
    try:
        failover = _timed("failover", about, server.pid, lambda: raw.read(session))
        sending_seconds, _ = timed(lambda: send_bytes(sent_bytes, brokers))
        time.sleep(QUIET_SECONDS)
        failure = _timed("broker-failure", about, server.pid, lambda: raw.write(session))
        return [failover | {"sending_seconds": round(sending_seconds, 3)}, failure]
    finally:
        session.close()


def send_bytes(count: int, brokers: Sequence[StandInBroker]) -> None:
    """Send so many bytes to the brokers, to each the same part, in requests that they accept."""
    with ThreadPoolExecutor(len(brokers)) as pool:
        for sending in [pool.submit(_send, broker, count // len(brokers)) for broker in brokers]:
            sending.result()


def _send(broker: StandInBroker, count: int) -> None:
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        while count > 0:
            part = memoryview(_PART)[:count]
            connection.sendall(struct.pack(">ihhi", 8 + len(part), UPDATE_METADATA, 8, 0))
            connection.sendall(part)
            connection.recv(64)  # the response
            count -= len(part)


def _timed(event: str, about: Record, server: int, action: Callable[[], None]) -> Record:
    compiled = compiling(server)
    seconds, _ = timed(action)
    return {
        "bench": event,
        "seconds": round(seconds, 3),
        **about,
        "compiler_seconds": round(max(compiling(server) - compiled, 0.0), 2),
    }


def measure_pairs(setup: Setup, pairs: int, folder: Path) -> Iterator[Record]:
    """Both events of both sides, as they are measured."""
    with cold_server(setup, folder) as server:
        populate(server.client, setup.partitions, setup.brokers, setup.replication_factor)
        session = open_session(server.address)
        raw = Raw.of(session, FAILING)
        session.close()
    brokers = [StandInBroker(broker_id) for broker_id in range(setup.brokers)]
    sent_bytes = 0
    for number in range(pairs):
        for side in ("raw", "kframe") if number % 2 else ("kframe", "raw"):
            print(f"{setup.partitions:,} partitions, {side}, run {number + 1}", file=sys.stderr)
            with cold_server(setup, folder) as server:
                if side == "raw":
                    yield from raw_run(setup, server, raw, number, brokers, sent_bytes)
                else:
                    measured = kframe_run(setup, server, brokers, number)
                    sent_bytes = measured[0]["bytes"]
                    yield from measured


def rows(measured: Sequence[Record]) -> list[Record]:
    """A row for each event."""
    return [_row(event, [row for row in measured if row["bench"] == event]) for event in EVENTS]


def _row(event: str, measured: Sequence[Record]) -> Record:
    seconds, compiler = (
        {side: [row[key] for row in measured if row["controller"] == side] for side in ("kframe", "raw")}
        for key in ("seconds", "compiler_seconds")
    )
    return {
        "event": event,
        "partitions": measured[0]["partitions"],
        "brokers": measured[0]["brokers"],
        "kframe": seconds["kframe"],
        "raw": seconds["raw"],
        "compiler": compiler["kframe"],
        "raw_compiler": compiler["raw"],
        "times_raw": [ours / theirs for ours, theirs in zip(seconds["kframe"], seconds["raw"], strict=True)],
        "sending": [row["sending_seconds"] for row in measured if "sending_seconds" in row],
    }


def ratios(results: Sequence[Record]) -> list[Ratio]:
    """What is compared between records."""
    return [
        Ratio(
            f"cold server {row['event']}/{row['partitions']}/{row['brokers']} beside raw",
            statistics.median(row["times_raw"]),
            less=True,
        )
        for row in results
    ]


def line(row: Record) -> tuple[str, ...]:
    """A row as cells under HEADINGS."""
    cells = (", ".join(f"{value:.2f}" for value in row[key]) for key in ("kframe", "compiler", "raw", "raw_compiler"))
    sending = ", ".join(f"{value:.2f}" for value in row["sending"])
    return (row["event"], f"{row['partitions']:,}", *cells, spread(row["times_raw"]), sending)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live.cold_server", description=__doc__)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--heap", default="3g", help="of the server")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one event")
    parser.add_argument(
        "--out", type=Path, help="write all figures as JSON, for example to benchmarks/results/NAME.json"
    )
    chosen = parser.parse_args(words)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    setup = Setup(jars(), chosen.partitions, chosen.brokers, 3, chosen.heap, chosen.limit)
    measured: list[Record] = []
    with tempfile.TemporaryDirectory(prefix="zk-first-") as folder:
        for row in measure_pairs(setup, chosen.pairs, Path(folder)):
            print(json.dumps(row), file=sys.stderr)
            measured.append(row)
    results = rows(measured)
    table([HEADINGS, *map(line, results)], LEGEND)
    if chosen.out:
        command = command_of("benchmarks.live.cold_server", words)
        figures = {"ratios": to_record(ratios(results)), "cold_server": results, "measured": measured}
        write_record(chosen.out, command, figures)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
