r"""Time a cluster controller from outside: a real ZooKeeper, many partitions, brokers that only answer.

The brokers register in ZooKeeper, take the controller's connections, read every LeaderAndIsr, UpdateMetadata and
StopReplica and answer success at once. What is timed needs no word from the controller:

    failover        /controller appears in ZooKeeper  ->  the last byte of the last control request has arrived
    broker-failure  a broker's registration vanishes  ->  the same

so Kafka's own controller and any other are measured by the same clock at the same work. What the brokers take they
drop in the kernel where that can be done (Linux): they share the machine with what is timed, and need no copy.

    python zk_failover.py --jars JARS --partitions 100000 --brokers 10
    python zk_failover.py --jars JARS --partitions 100000 --brokers 10 \
        --controller 'kframe controller run --zookeeper {zookeeper} --id {id} --listener PLAINTEXT://127.0.0.1:{port}'

JARS is a folder with Kafka 3.9.1's jars. ``--first COMMAND`` is run on the server before the controller is started, so
that what the server needs by itself is measured on the same one. Prints one JSON object a measurement. All on loopback.
"""

from __future__ import annotations

import argparse
import base64
import json
import logging
import random
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

CONTROLLER_ID = 1000
PARTITIONS_PER_TOPIC = 100
QUIET_SECONDS = 4.0  # an event may be over when no broker has heard anything for this long,
QUIET_SHARE = 1.0  # or for as long as the event has taken so far, whichever is longer

#: On Linux what is received so goes nowhere (tcp(7)); ``recv_into`` says how much it was.
DROPPED = socket.MSG_TRUNC if sys.platform == "linux" else 0

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, API_VERSIONS = 4, 5, 6, 18
#: The least successful body for each control request, by (api key, flexible version?).
SUCCESS = {
    (LEADER_AND_ISR, True): b"\0\0\1\0",
    (LEADER_AND_ISR, False): b"\0\0\0\0\0\0",
    (STOP_REPLICA, True): b"\0\0\1\0",
    (STOP_REPLICA, False): b"\0\0\0\0\0\0",
    (UPDATE_METADATA, True): b"\0\0\0",
    (UPDATE_METADATA, False): b"\0\0",
}
FIRST_FLEXIBLE = {LEADER_AND_ISR: 4, STOP_REPLICA: 2, UPDATE_METADATA: 6, API_VERSIONS: 3}
HIGHEST = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8, API_VERSIONS: 3}


class StandInBroker:
    """Listens, reads control requests, answers success; remembers when its last byte came and how many."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.last_byte_at = 0.0
        self.bytes_received = 0
        self.requests: dict[int, int] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def registration(self) -> bytes:
        """What stands in its node below /brokers/ids."""
        endpoint = f"PLAINTEXT://127.0.0.1:{self.port}"
        return json.dumps(
            {
                "version": 5,
                "host": "127.0.0.1",
                "port": self.port,
                "endpoints": [endpoint],
                "jmx_port": -1,
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
                "rack": f"r{self.broker_id % 3}",
                "features": {},
                "timestamp": str(int(time.time() * 1000)),
            }
        ).encode()

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        scratch = bytearray(1 << 20)
        try:
            while True:
                (length,) = struct.unpack(">i", self._read(connection, 4))
                key, version, correlation = struct.unpack(">hhi", self._read(connection, 8))
                left = length - 8
                while left:
                    got = connection.recv_into(scratch, min(left, len(scratch)), DROPPED)
                    if not got:
                        return
                    left -= got
                self.last_byte_at = time.time()
                self.bytes_received += length + 4
                self.requests[key] = self.requests.get(key, 0) + 1
                connection.sendall(self._answer(key, version, correlation))
        except OSError:
            return

    @staticmethod
    def _read(connection: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = connection.recv(size - len(data))
            if not part:
                raise OSError("closed")
            data += part
        return data

    @staticmethod
    def _answer(key: int, version: int, correlation: int) -> bytes:
        if key == API_VERSIONS:  # its response header is never flexible
            if version >= FIRST_FLEXIBLE[key]:
                ranges = b"".join(struct.pack(">hhhb", k, 0, v, 0) for k, v in HIGHEST.items())
                body = struct.pack(">hb", 0, len(HIGHEST) + 1) + ranges + struct.pack(">ib", 0, 0)
            else:
                ranges = b"".join(struct.pack(">hhh", k, 0, v) for k, v in HIGHEST.items())
                body = struct.pack(">hi", 0, len(HIGHEST)) + ranges + (struct.pack(">i", 0) if version else b"")
            payload = struct.pack(">i", correlation) + body
        else:
            flexible = version >= FIRST_FLEXIBLE[key]
            payload = struct.pack(">i", correlation) + (b"\0" if flexible else b"") + SUCCESS[key, flexible]
        return struct.pack(">i", len(payload)) + payload


def free_port() -> int:
    """A port on which nobody listens now, and which no outgoing connection is given, not even one to itself."""
    while True:
        port = random.randrange(10_000, 30_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def start_java(jars: Path, main: str, config: str, folder: Path, name: str, heap: str) -> subprocess.Popen[bytes]:
    """Run a class of ``jars`` with a properties file; its log is beside that."""
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


def populate(client: KazooClient, partitions: int, brokers: int, replication_factor: int) -> None:
    """Write the znodes of a healthy cluster: topics of 100 partitions, leaders spread evenly, epoch 1."""
    for path in (
        "/brokers/ids",
        "/brokers/topics",
        "/brokers/seqid",
        "/config/topics",
        "/config/brokers",
        "/config/changes",
        "/config/clients",
        "/config/users",
        "/config/ips",
        "/admin/delete_topics",
        "/isr_change_notification",
        "/log_dir_event_notification",
    ):
        client.ensure_path(path)
    client.ensure_path("/controller_epoch")
    client.set("/controller_epoch", b"1")
    client.create("/feature", b'{"features":{},"version":2,"status":1}')
    waiting = []
    for topic in range(partitions // PARTITIONS_PER_TOPIC):
        path = f"/brokers/topics/topic-{topic:06d}"
        topic_id = (
            base64.urlsafe_b64encode(uuid.UUID(int=((topic + 1) << 64) | (4 << 76) | (1 << 63)).bytes)
            .decode()
            .rstrip("=")
        )
        assignment = {
            str(p): [
                (topic * PARTITIONS_PER_TOPIC + p + slot * (1 + p % (brokers - 2))) % brokers
                for slot in range(replication_factor)
            ]
            for p in range(PARTITIONS_PER_TOPIC)
        }
        write = client.transaction()
        write.create(
            path,
            json.dumps(
                {
                    "version": 3,
                    "topic_id": topic_id,
                    "partitions": assignment,
                    "adding_replicas": {},
                    "removing_replicas": {},
                }
            ).encode(),
        )
        write.create(f"{path}/partitions")
        for partition, replicas in assignment.items():
            replicas[:] = list(dict.fromkeys(replicas))
            state = {"controller_epoch": 1, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}
            write.create(f"{path}/partitions/{partition}")
            write.create(f"{path}/partitions/{partition}/state", json.dumps(state, separators=(",", ":")).encode())
        waiting.append(write.commit_async())
        if len(waiting) == 20:
            for result in waiting:
                result.get()
            waiting.clear()
    for result in waiting:
        result.get()


def wait_until_settled(brokers: list[StandInBroker], since: float, limit: float, settled: Callable[[], bool]) -> float:
    """The time at which the last byte came, once all brokers have gone quiet and ``settled`` agrees that it is over."""
    while time.time() - since < limit:
        last = max(broker.last_byte_at for broker in brokers)
        if last > since and time.time() - last > max(QUIET_SECONDS, QUIET_SHARE * (last - since)) and settled():
            return last
        time.sleep(0.05)
    raise TimeoutError(f"the controller was not done within {limit:.0f} s")


def report(
    name: str, arguments: argparse.Namespace, seconds: float, brokers: list[StandInBroker], before: list[int]
) -> None:
    """Print one measurement."""
    received = [broker.bytes_received for broker in brokers]
    print(
        json.dumps(
            {
                "bench": name,
                "controller": arguments.name or ("kafka-3.9.1" if arguments.controller is None else "other"),
                "partitions": arguments.partitions,
                "brokers": arguments.brokers,
                "replication_factor": arguments.replication_factor,
                "seconds": round(seconds, 3),
                "bytes": sum(received) - sum(before),
                "requests": sum(sum(broker.requests.values()) for broker in brokers),
            }
        ),
        flush=True,
    )


def main() -> int:
    """Measure one controller."""
    arguments = _arguments()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    folder = Path(tempfile.mkdtemp(prefix="zk-failover-"))
    processes: list[subprocess.Popen[bytes]] = []
    client: KazooClient | None = None
    try:
        zookeeper = f"127.0.0.1:{free_port()}"
        processes.append(start_zookeeper(arguments, folder, zookeeper.rpartition(":")[2]))
        client = KazooClient(zookeeper, timeout=60)
        client.start(60)
        started = time.time()
        populate(client, arguments.partitions, arguments.brokers, arguments.replication_factor)
        print(f"populated {arguments.partitions} partitions in {time.time() - started:.1f} s", file=sys.stderr)
        if arguments.first is not None:
            subprocess.run(shlex.split(arguments.first.format(zookeeper=zookeeper)), check=True)
        brokers = [StandInBroker(i) for i in range(arguments.brokers)]
        for broker in brokers:
            client.create(f"/brokers/ids/{broker.broker_id}", broker.registration(), ephemeral=True)
        elected_at: list[float] = []
        client.DataWatch("/controller", lambda data, stat: elected_at.append(time.time()) if data else None)
        processes.append(start_controller(arguments, folder, zookeeper))
        while not elected_at:
            if processes[-1].poll() is not None:
                raise RuntimeError((folder / "controller.log").read_text()[-2000:])
            time.sleep(0.01)
        measure(arguments, client, brokers, elected_at[0])
        return 0
    finally:
        if client is not None:
            client.stop()
        for process in reversed(processes):
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", type=Path, required=True)
    parser.add_argument("--name", help="what the records call the controller")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=10)
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument(
        "--controller", help="command of another controller; {zookeeper}, {id} and {port} are filled in"
    )
    parser.add_argument("--first", help="command that is run before the controller starts; {zookeeper} is filled in")
    parser.add_argument("--heap", default="3g", help="heap of each JVM")
    parser.add_argument("--limit", type=float, default=900, help="seconds for one event")
    return parser.parse_args()


def start_zookeeper(arguments: argparse.Namespace, folder: Path, port: str) -> subprocess.Popen[bytes]:
    """A server of its own."""
    config = (
        f"dataDir={folder}/zookeeper\nclientPort={port}\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
        "admin.enableServer=false\nmaxSessionTimeout=60000\n"
    )
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return start_java(arguments.jars, main_class, config, folder, "zookeeper", arguments.heap)


def start_controller(arguments: argparse.Namespace, folder: Path, zookeeper: str) -> subprocess.Popen[bytes]:
    """Kafka's, or the one that was asked for."""
    port = free_port()
    if arguments.controller is None:
        config = (
            f"broker.id={CONTROLLER_ID}\nlisteners=PLAINTEXT://127.0.0.1:{port}\nzookeeper.connect={zookeeper}\n"
            f"log.dirs={folder}/log\nauto.leader.rebalance.enable=false\n"
        )
        return start_java(arguments.jars, "kafka.Kafka", config, folder, "controller", arguments.heap)
    command = arguments.controller.format(zookeeper=zookeeper, id=CONTROLLER_ID, port=port)
    with (folder / "controller.log").open("wb") as log:
        return subprocess.Popen(shlex.split(command), stdout=log, stderr=subprocess.STDOUT)


def measure(
    arguments: argparse.Namespace, client: KazooClient, brokers: list[StandInBroker], elected_at: float
) -> None:
    """Wait for the end of the failover that began at ``elected_at``, then fail broker 0; report both."""

    def all_told() -> bool:
        return all(LEADER_AND_ISR in broker.requests for broker in brokers)

    def nobody_relies_on_it() -> bool:
        return not count_relying_on(client, arguments.partitions, dead=0)

    done_at = wait_until_settled(brokers, elected_at, arguments.limit, all_told)
    report("failover", arguments, done_at - elected_at, brokers, [0] * len(brokers))
    before = [broker.bytes_received for broker in brokers]
    failed_at = time.time()
    client.delete("/brokers/ids/0")
    done_at = wait_until_settled(brokers[1:], failed_at, arguments.limit, nobody_relies_on_it)
    report("broker-failure", arguments, done_at - failed_at, brokers, before)


def count_relying_on(client: KazooClient, partitions: int, dead: int) -> int:
    """In a sample of 50 topics, the partitions whose stored state still names the dead broker as leader or in sync."""
    wrong = 0
    for topic in range(0, partitions // PARTITIONS_PER_TOPIC, max(1, partitions // PARTITIONS_PER_TOPIC // 50)):
        for partition in range(PARTITIONS_PER_TOPIC):
            try:
                data, _ = client.get(f"/brokers/topics/topic-{topic:06d}/partitions/{partition}/state")
            except NoNodeError:
                wrong += 1
                continue
            state = json.loads(data)
            wrong += state["leader"] == dead or dead in state["isr"]
    return wrong


if __name__ == "__main__":
    sys.exit(main())
