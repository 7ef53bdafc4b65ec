r"""Time cluster controllers from outside: a real ZooKeeper, many partitions, and brokers that only respond.

The brokers register in ZooKeeper and accept the controller's connections. They read every LeaderAndIsr, UpdateMetadata
and StopReplica request and respond with success at once. Two events are timed, without any help of the controller:

    failover        /controller appears in ZooKeeper -> the last byte of the last control request arrives
    broker-failure  a broker's registration vanishes -> the same

Thus Kafka's controller and any other are measured by the same clock on the same work. On Linux the brokers discard what
they read in the kernel, because they share the machine with the controller.

    python -m benchmarks.live.controllers --jars JARS --partitions 100000 --brokers 10
    python -m benchmarks.live.controllers --jars JARS --partitions 100000 --brokers 10 --runs 3 --in-turn \
        --controller 'kframe controller run --zookeeper {zookeeper} --id {id} --listener PLAINTEXT://127.0.0.1:{port}'

JARS is a folder with Kafka 3.9.1's jars. ``--runs`` is the number of runs of each controller on one server; with
``--in-turn`` they alternate with runs of Kafka. Each run is a process. At its end it is killed, its znodes are deleted,
the failed broker registers again and its partitions get their old states: every run finds the same cluster.

``--warm COMMAND`` runs before the first run, ``--first COMMAND`` before each. The latter measures what the server needs
by itself; the JSON objects that it prints are reported with the run. Each measurement includes the processor seconds of
the server's JIT compiler, because a server that still compiles is slower (Linux only). Everything is on loopback.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from benchmarks.live.broker import LEADER_AND_ISR, StandInBroker
from benchmarks.live.znodes import FAILING, count_unmoved, populate, restore_topics

KAFKA = "kafka-3.9.1"  # what the records call its own controller
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
    limit_s: float

    @staticmethod
    def of(arguments: argparse.Namespace) -> Setup:
        """Of the arguments that ``add_setup`` adds."""
        names = ("jars", "partitions", "brokers", "replication_factor", "heap", "limit")
        return Setup(*(getattr(arguments, name) for name in names))


def add_setup(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a Setup."""
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--heap", default="3g", help="heap of each JVM")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one event")


@dataclass(frozen=True)
class ControllerRun:
    """One run of one controller: ``command`` starts it, None is Kafka's own."""

    name: str
    command: str | None
    number: int

    def about(self, setup: Setup) -> dict[str, Any]:
        """The fields that each measurement of this run has."""
        return {
            "controller": self.name,
            "life": self.number,
            "partitions": setup.partitions,
            "brokers": setup.brokers,
            "replication_factor": setup.replication_factor,
        }


def controller_runs(arguments: argparse.Namespace) -> Iterator[ControllerRun]:
    """All runs, alternating between two controllers."""
    controllers: list[tuple[str, str | None]] = []
    if arguments.controller is None or arguments.alternate:
        controllers.append((KAFKA, None))
    if arguments.controller is not None:
        controllers.append((arguments.name, arguments.controller))
    return (ControllerRun(*controller, number) for number in range(arguments.runs) for controller in controllers)


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


def main() -> int:
    """Measure all runs."""
    arguments = _arguments()
    setup = Setup.of(arguments)
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="zk-failover-"))
    zookeeper = f"127.0.0.1:{free_port()}"
    server = start_zookeeper(setup, folder, zookeeper.rpartition(":")[2])
    client: KazooClient | None = None
    try:
        client = KazooClient(zookeeper, timeout=60)
        client.start(60)
        started = time.time()
        populate(client, setup.partitions, setup.brokers, setup.replication_factor)
        print(f"populated {setup.partitions} partitions in {time.time() - started:.1f} s", file=sys.stderr)
        if arguments.warm is not None:
            subprocess.run(shlex.split(arguments.warm.format(zookeeper=zookeeper)), check=True, stdout=sys.stderr)
        brokers = [StandInBroker(i) for i in range(setup.brokers)]
        for broker in brokers:
            register(client, broker)
        elected_at: list[float] = []
        client.DataWatch("/controller", lambda data, stat: elected_at.append(time.time()) if data else None)
        for number, run in enumerate(controller_runs(arguments)):
            if number:
                clean_up(setup, client, brokers)
            about = run.about(setup)
            print(f"{setup.partitions:,} partitions, {run.name}, run {run.number + 1}", file=sys.stderr)
            for figures in measure_before_run(arguments, zookeeper):
                print(json.dumps(figures | about), flush=True)
            elected_at.clear()
            run_folder = folder / f"{run.name}-{run.number}"
            for figures in perform_run(setup, run_folder, zookeeper, server.pid, run, client, brokers, elected_at):
                print(json.dumps(figures), flush=True)
        return 0
    finally:
        if client is not None:
            client.stop()
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def register(client: KazooClient, broker: StandInBroker) -> None:
    """A broker starts."""
    client.create(f"/brokers/ids/{broker.broker_id}", broker.registration(), ephemeral=True)


def measure_before_run(arguments: argparse.Namespace, zookeeper: str) -> list[dict[str, Any]]:
    """The output of the command that precedes each run."""
    if arguments.first is None:
        return []
    command = shlex.split(arguments.first.format(zookeeper=zookeeper))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def perform_run(
    setup: Setup,
    folder: Path,
    zookeeper: str,
    server: int,
    run: ControllerRun,
    client: KazooClient,
    brokers: list[StandInBroker],
    elected_at: list[float],
) -> list[dict[str, Any]]:
    """Perform one run and measure both events. ``elected_at`` receives the time of the election."""
    folder.mkdir()
    reset_counters(brokers)
    process = start_controller(setup, folder, zookeeper, run.command)
    try:
        while not elected_at:
            if process.poll() is not None:
                raise RuntimeError((folder / "controller.log").read_text()[-2000:])
            time.sleep(0.01)
        return measure(setup, run.about(setup), server, client, brokers, elected_at[0])
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_setup(parser)
    parser.add_argument("--name", default="other", help="what the records call the other controller")
    parser.add_argument(
        "--controller", help="command of another controller; {zookeeper}, {id} and {port} are filled in"
    )
    parser.add_argument("--in-turn", dest="alternate", action="store_true", help="Kafka's own, too, on the same server")
    parser.add_argument("--runs", type=int, default=1, help="of each controller")
    parser.add_argument("--warm", help="command that is run before the first run; {zookeeper} is filled in")
    parser.add_argument("--first", help="command that is run before each run; {zookeeper} is filled in")
    return parser.parse_args()


def start_zookeeper(setup: Setup, folder: Path, port: str) -> subprocess.Popen[bytes]:
    """Start a ZooKeeper server."""
    config = (
        f"dataDir={folder}/zookeeper\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
        "admin.enableServer=false\nmaxSessionTimeout=60000\n"
    )
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return start_java(setup.jars, main_class, config, folder, "zookeeper", setup.heap)


def start_controller(setup: Setup, folder: Path, zookeeper: str, command: str | None) -> subprocess.Popen[bytes]:
    """Start Kafka, or the controller of ``command``."""
    port = free_port()
    if command is None:
        config = (
            f"broker.id={CONTROLLER_ID}\nlisteners=PLAINTEXT://127.0.0.1:{port}\nzookeeper.connect={zookeeper}\n"
            f"log.dirs={folder}/log\nauto.leader.rebalance.enable=false\n"
        )
        return start_java(setup.jars, "kafka.Kafka", config, folder, "controller", setup.heap)
    words = shlex.split(command.format(zookeeper=zookeeper, id=CONTROLLER_ID, port=port))
    with (folder / "controller.log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)


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


if __name__ == "__main__":
    sys.exit(main())
