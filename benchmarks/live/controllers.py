"""Time cluster controllers from outside: a real ZooKeeper, many partitions, and brokers that only respond.

The brokers register in ZooKeeper and accept the controller's connections. They read every LeaderAndIsr, UpdateMetadata
and StopReplica request and respond with success at once. Two events are timed, without any help of the controller:

    failover        /controller appears in ZooKeeper -> the last byte of the last control request arrives
    broker-failure  a broker's registration vanishes -> the same

Thus Kafka's controller and kframe are measured by the same clock on the same work. On Linux the brokers discard what
they read in the kernel, because they share the machine with the controller.

Each run is a process. At its end it is killed, its znodes are deleted, the failed broker registers again and its
partitions get their old states: every run finds the same cluster. Each measurement includes the processor seconds of
the server's JIT compiler, because a server that still compiles is slower (Linux only). Everything is on loopback.
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from benchmarks.live.broker import LEADER_AND_ISR, StandInBroker
from benchmarks.live.znodes import FAILING, count_unmoved, populate, restore_topics
from benchmarks.records import ROOT

KAFKA, KFRAME = "kafka-3.9.1", "kframe"  # what the records call the controllers
CONTROLLER_ID = 1000
COMPILERS = ("C1 Compiler", "C2 Compiler")  # threads of a JVM
QUIET_SECONDS = 4.0  # an event is over when no broker has received anything for this long,
QUIET_SHARE = 1.0  # or for as long as the event has taken so far, whichever is longer


def free_port() -> int:
    """A free port outside the range of outgoing connections."""
    while True:
        port = random.randrange(10_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def start_java(jars: Path, main: str, config: str, folder: Path, name: str, heap: str) -> subprocess.Popen[bytes]:
    """Run a class of ``jars`` with a properties file. Its log is beside that."""
    properties = folder / f"{name}.properties"
    properties.write_text(config)
    log4j = folder / "log4j.properties"
    log4j.write_text(
        "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
    )
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            ["java", f"-Xmx{heap}", f"-Dlog4j.configuration=file:{log4j}", "-cp", f"{jars}/*", main, str(properties)],
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def wait_until_settled(brokers: list[StandInBroker], since: float, limit: float, settled: Callable[[], bool]) -> float:
    """The arrival time of the last byte, once no broker receives any more and ``settled`` returns True."""
    while time.time() - since < limit:
        last = max(broker.last_byte_at for broker in brokers)
        if last > since and time.time() - last > max(QUIET_SECONDS, QUIET_SHARE * (last - since)) and settled():
            return last
        time.sleep(0.05)
    raise TimeoutError(f"the controller was not done within {limit:.0f} s")


@dataclass(frozen=True)
class Setup:
    """A cluster and what its JVMs may take. ``limit_s`` is the most seconds for an event."""

    jars: Path
    partitions: int
    brokers: int
    replication_factor: int
    heap: str
    limit_s: float = 900

    def about(self, controller: str, number: int) -> dict[str, Any]:
        """The fields of each measurement of one run of a controller."""
        return {
            "controller": controller,
            "life": number,
            "partitions": self.partitions,
            "brokers": self.brokers,
            "replication_factor": self.replication_factor,
        }


def compiling(server: int) -> float:
    """Processor seconds that the compiler threads of a JVM, a process, have used so far. 0 without /proc."""
    ticks = 0
    for thread in Path(f"/proc/{server}/task").glob("*"):
        with suppress(OSError):  # it has ended
            name, _, numbers = (thread / "stat").read_text().rpartition(")")
            if name.partition("(")[2].startswith(COMPILERS):
                ticks += sum(map(int, numbers.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measurement(
    name: str, about: dict[str, Any], seconds: float, compiled: float, brokers: list[StandInBroker]
) -> dict[str, Any]:
    """One measurement. Resets the counters of the brokers."""
    received = {
        "compiler_seconds": round(max(compiled, 0.0), 2),  # a thread that ends takes its time with it
        "bytes": sum(broker.bytes_received for broker in brokers),
        "requests": sum(sum(broker.requests.values()) for broker in brokers),
    }
    reset_counters(brokers)
    return {"bench": name, "seconds": round(seconds, 3)} | about | received


def reset_counters(brokers: list[StandInBroker]) -> None:
    """Reset the counters of received bytes and requests, while no controller sends."""
    for broker in brokers:
        broker.bytes_received, broker.requests = 0, {}


def perform_runs(setup: Setup, controllers: Sequence[str], runs: int) -> Iterator[dict[str, Any]]:
    """Perform so many runs of each controller in turn, on one warmed-up server. Each measurement as it is made.

    The raw requests are measured before each run.
    """
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="zk-failover-"))
    zookeeper = f"127.0.0.1:{free_port()}"
    server = start_zookeeper(setup, folder, zookeeper.rpartition(":")[2])
    client: KazooClient | None = None
    try:
        client = KazooClient(zookeeper, timeout=60)
        client.start(60)
        populate(client, setup.partitions, setup.brokers, setup.replication_factor)
        _raw_requests(zookeeper)
        brokers = [StandInBroker(i) for i in range(setup.brokers)]
        for broker in brokers:
            register(client, broker)
        elected_at: list[float] = []
        client.DataWatch("/controller", lambda data, stat: elected_at.append(time.time()) if data else None)
        for number, controller in product(range(runs), controllers):
            print(f"{setup.partitions:,} partitions, {controller}, run {number + 1}", file=sys.stderr)
            yield _raw_requests(zookeeper, "--cold") | setup.about(controller, number)
            elected_at.clear()
            run_folder = folder / f"{controller}-{number}"
            yield from perform_run(
                setup, run_folder, zookeeper, server.pid, controller, number, client, brokers, elected_at
            )
            clean_up(setup, client, brokers)
    finally:
        if client is not None:
            client.stop()
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _raw_requests(zookeeper: str, *options: str) -> dict[str, Any]:
    """What ``benchmarks.live.raw_requests`` prints."""
    command = [sys.executable, "-m", "benchmarks.live.raw_requests", zookeeper, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def register(client: KazooClient, broker: StandInBroker) -> None:
    """A broker starts."""
    client.create(f"/brokers/ids/{broker.broker_id}", broker.registration(), ephemeral=True)


def perform_run(
    setup: Setup,
    folder: Path,
    zookeeper: str,
    server: int,
    controller: str,
    number: int,
    client: KazooClient,
    brokers: list[StandInBroker],
    elected_at: list[float],
) -> list[dict[str, Any]]:
    """Perform one run and measure both events. ``elected_at`` receives the time of the election."""
    folder.mkdir()
    reset_counters(brokers)
    process = start_controller(setup, folder, zookeeper, controller)
    try:
        while not elected_at:
            if process.poll() is not None:
                raise RuntimeError((folder / "controller.log").read_text()[-2000:])
            time.sleep(0.01)
        return measure(setup, setup.about(controller, number), server, client, brokers, elected_at[0])
    finally:
        process.kill()
        process.wait()


def clean_up(setup: Setup, client: KazooClient, brokers: list[StandInBroker]) -> None:
    """Delete the controller's records and restore the cluster as it was before the run."""
    for path in ("/controller", f"/brokers/ids/{CONTROLLER_ID}"):
        with suppress(NoNodeError):
            client.delete(path)
    register(client, brokers[FAILING])
    restore_topics(client, setup.partitions, setup.brokers, setup.replication_factor)


def start_zookeeper(setup: Setup, folder: Path, port: str) -> subprocess.Popen[bytes]:
    """Start a ZooKeeper server."""
    config = (
        f"dataDir={folder}/zookeeper\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
        "admin.enableServer=false\nmaxSessionTimeout=60000\n"
    )
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return start_java(setup.jars, main_class, config, folder, "zookeeper", setup.heap)


def start_controller(setup: Setup, folder: Path, zookeeper: str, controller: str) -> subprocess.Popen[bytes]:
    """Start a process of KAFKA or KFRAME."""
    port = free_port()
    if controller == KAFKA:
        config = (
            f"broker.id={CONTROLLER_ID}\nlisteners=PLAINTEXT://127.0.0.1:{port}\nzookeeper.connect={zookeeper}\n"
            f"log.dirs={folder}/log\nauto.leader.rebalance.enable=false\n"
        )
        return start_java(setup.jars, "kafka.Kafka", config, folder, "controller", setup.heap)
    command = [sys.executable, "-m", "kframe.cli", "controller", "run", "--zookeeper", zookeeper]
    command += ["--id", str(CONTROLLER_ID), "--listener", f"PLAINTEXT://127.0.0.1:{port}", "--log-level", "WARN"]
    with (folder / "controller.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def measure(
    setup: Setup,
    about: dict[str, Any],
    server: int,
    client: KazooClient,
    brokers: list[StandInBroker],
    elected_at: float,
) -> list[dict[str, Any]]:
    """Wait for the end of the failover that started at ``elected_at``, fail a broker, and measure both."""

    def all_notified() -> bool:
        return all(LEADER_AND_ISR in broker.requests for broker in brokers)

    def failed_broker_removed() -> bool:
        return not count_unmoved(client, setup.partitions)

    compiled = compiling(server)
    done_at = wait_until_settled(brokers, elected_at, setup.limit_s, all_notified)
    failover = measurement("failover", about, done_at - elected_at, compiling(server) - compiled, brokers)
    remaining = [broker for broker in brokers if broker.broker_id != FAILING]
    compiled, failed_at = compiling(server), time.time()
    client.delete(f"/brokers/ids/{FAILING}")
    done_at = wait_until_settled(remaining, failed_at, setup.limit_s, failed_broker_removed)
    return [failover, measurement("broker-failure", about, done_at - failed_at, compiling(server) - compiled, brokers)]
