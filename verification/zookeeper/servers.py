"""Real ZooKeeper servers for tests on loopback: one or three servers of 3.8.4, the version that Kafka 3.9.1 ships.

They need a JDK and, once for each machine, Maven to download the jars. ``missing()`` names a missing requirement. The
caller provides the data folder. Data is not synced to disk, because tests cover the protocol and not the disk.
"""

from __future__ import annotations

import random
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

from kframe.testing.waiting import until
from verification.zookeeper.certificates import Identity
from verification.zookeeper.java import JVM, fetched, missing, sharing
from verification.zookeeper.machine import HOST, LOCAL, Machine
from verification.zookeeper.process import Process

__all__ = ["HOST", "VERSION", "Ensemble", "ServerHandle", "ServerOptions", "free_ports", "jars", "missing", "running"]

VERSION: Final = "3.8.4"
#: Below the ephemeral ports, which outgoing connections could take between two starts.
_PORTS: Final = range(15_000, 32_000)
#: A start takes one or two seconds, and ten times as long if three servers share a core. After this time it has failed.
#: Killing a slow server earlier would slow down the others.
_START_S: Final = 60.0
_ANSWER_S: Final = 3.0
_STARTS_MAX: Final = 3
#: A server logs this once, when it has started.
_STARTED: Final = "ZooKeeper audit is disabled."
_LOGGED: Final = ("defaultLogLevel=warn", "log.org.apache.zookeeper.audit.ZKAuditProvider=info", "showDateTime=true")
#: A member repeats a lost vote within a second. By default the interval doubles each time, up to a minute.
_VOTES_ANEW: Final = "-Dzookeeper.fastleader.maxNotificationInterval=1000"


def jars() -> Path:
    """The folder of the server's jars. KFRAME_ZOOKEEPER_LIBS selects another folder."""
    return fetched(f"zookeeper-{VERSION}", "pom.xml", "KFRAME_ZOOKEEPER_LIBS")


def free_ports(count: int) -> list[int]:
    """Distinct unused ports."""
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        if port not in chosen:
            chosen.append(port)
    return chosen


@cache
def mapped() -> tuple[str, ...]:
    """JVM options that map the classes of a server."""
    return sharing(f"zookeeper-{VERSION}", jars(), _train)


def _train(options: tuple[str, ...]) -> None:
    """Start a server with these options. Then stop it."""
    with tempfile.TemporaryDirectory() as scratch:
        server = ServerHandle(Path(scratch) / "server", ServerOptions())
        try:
            server.start(options=options)
            server.stop()
        finally:
            server.kill()


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The configuration of servers."""

    tick_ms: int = 100
    """The tick, the unit of session timeouts. The leader drops a follower after 50 ticks."""
    identity: Identity | None = None
    """Open a second port for TLS. Clients must present a certificate of the same authority."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Passwords of SASL DIGEST-MD5 users. With users, a login is mandatory."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Further lines of ``zoo.cfg``."""
    jvm: tuple[str, ...] = ()
    """Further options of the JVM."""


class ServerHandle(Process):
    """A server process. It can be stopped, killed, frozen, and restarted on the same data and ports."""

    def __init__(
        self,
        folder: Path,
        options: ServerOptions,
        members: Mapping[int, str] | None = None,
        number: int = 1,
        machine: Machine = LOCAL,
    ) -> None:
        """``members`` are the addresses of an ensemble by number. Without members, the server is standalone."""
        super().__init__(machine)
        self.folder = folder
        self.options = options
        self.port, self.secure_port = free_ports(2)
        self._members = members or {}
        self._number = number
        self._starts = 0
        self._write_files()

    @property
    def address(self) -> str:
        """The client address, in clear text."""
        return f"{self.machine.address}:{self.port}"

    @property
    def secure_address(self) -> str:
        """The client address for TLS. The server must have an identity."""
        return f"{self.machine.address}:{self.secure_port}"

    @property
    def log(self) -> str:
        """The log: the start message, warnings and errors."""
        path = self.folder / "log.txt"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self, *, wait: bool = True, options: tuple[str, ...] | None = None) -> None:
        """Start the process. With ``wait``, return when it serves clients. JVM ``options`` replace ``mapped``."""
        options = mapped() if options is None else options
        main = "quorum.QuorumPeerMain" if self._members else "ZooKeeperServerMain"
        self._starts = self.log.count(_STARTED) + 1
        self._launch(
            [
                "java",
                *JVM,
                *options,
                "-Xmx768m",
                *self._properties(),
                *self.options.jvm,
                "-cp",
                f"{jars()}/*",
                f"org.apache.zookeeper.server.{main}",
                str(self.folder / "zoo.cfg"),
            ],
            self.folder,
        )
        if wait:
            self.await_serving()

    def await_serving(self) -> None:
        """Return when the server serves clients. Raises RuntimeError with its log after three failed starts.

        A 3.8.4 server that receives a request while it starts may never answer. So no request is sent before it logs
        its start.
        """
        for _ in range(_STARTS_MAX):
            if until(lambda: self._answers() or self.pid is None, _START_S) and self.pid is not None:
                return
            if self.pid is None:
                break
            self.kill()
            self.start(wait=False)
        raise RuntimeError(f"ZooKeeper at {self.address} does not serve:\n{self.log[-4000:]}")

    def _answers(self) -> bool:
        return self.log.count(_STARTED) >= self._starts and self.mode() is not None

    def mode(self) -> str | None:
        """``standalone``, ``leader`` or ``follower``. None while the server does not serve clients."""
        for line in self.ask("srvr").splitlines():
            if line.startswith("Mode: "):
                return line.removeprefix("Mode: ")
        return None

    def ask(self, word: str) -> str:
        """The response to a four-letter command. Empty without a response."""
        try:
            address = self.machine.address, self.port
            with self.machine.entered(), socket.create_connection(address, _ANSWER_S) as connection:
                connection.sendall(word.encode())
                answer = bytearray()
                while chunk := connection.recv(65_536):
                    answer += chunk
                return answer.decode(errors="replace")
        except OSError:
            return ""

    def _properties(self) -> list[str]:
        properties = [_VOTES_ANEW, *(f"-Dorg.slf4j.simpleLogger.{key}" for key in _LOGGED)]
        if self.options.users:
            properties.append(f"-Djava.security.auth.login.config={self.folder / 'jaas.conf'}")
        return properties

    def _write_files(self) -> None:
        """Write ``zoo.cfg`` and the files that it names."""
        data = self.folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        settings = {
            "dataDir": str(data),
            "clientPort": str(self.port),
            "clientPortAddress": self.machine.address,
            "tickTime": str(self.options.tick_ms),
            "initLimit": "100",
            "syncLimit": "50",
            "minSessionTimeout": str(2 * self.options.tick_ms),
            "maxSessionTimeout": "120000",
            "maxClientCnxns": "0",
            "forceSync": "no",
            "preAllocSize": "1024",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
        }
        if self._members:
            settings |= {f"server.{number}": address for number, address in self._members.items()}
            (data / "myid").write_text(str(self._number))
        if self.options.identity is not None:
            settings |= _tls_settings(self.options.identity, self.machine.address, self.secure_port)
        if self.options.users:
            settings |= _sasl_settings(self.folder / "jaas.conf", self.options.users)
        lines = {**settings, **self.options.settings}
        (self.folder / "zoo.cfg").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))


class Ensemble:
    """Three servers that elect a leader among themselves."""

    def __init__(self, folder: Path, options: ServerOptions, machines: Sequence[Machine] = (LOCAL,) * 3) -> None:
        ports = iter(free_ports(6))
        members = {
            number: f"{machine.address}:{next(ports)}:{next(ports)}" for number, machine in enumerate(machines, 1)
        }
        self.servers = tuple(
            ServerHandle(folder / str(number), options, members, number, machine)
            for number, machine in enumerate(machines, 1)
        )

    @property
    def address(self) -> str:
        """The client addresses of all servers."""
        return ",".join(server.address for server in self.servers)

    @property
    def secure_address(self) -> str:
        """The client addresses for TLS."""
        return ",".join(server.secure_address for server in self.servers)

    def start(self) -> None:
        """Start all stopped servers, and return when all serve clients."""
        for server in self.servers:
            if server.pid is None:
                server.start(wait=False)
        for server in self.servers:
            server.await_serving()

    def kill(self) -> None:
        """Kill all servers."""
        for server in self.servers:
            server.kill()

    def leader(self) -> ServerHandle:
        """The leader of the ensemble. Waits for an election, and raises RuntimeError without one."""
        leaders: list[ServerHandle] = []

        def look() -> bool:
            leaders.extend(server for server in self.servers if server.mode() == "leader")
            return bool(leaders)

        if not until(look):
            logs = "\n".join(f"{server.address}: {server.log[-2000:]}" for server in self.servers if server.pid)
            raise RuntimeError(f"no server of the ensemble leads; they said:\n{logs}")
        return leaders[0]

    def followers(self) -> list[ServerHandle]:
        """The present followers."""
        return [server for server in self.servers if server.mode() == "follower"]


Servers = TypeVar("Servers", ServerHandle, Ensemble)


@contextmanager
def running(servers: Servers) -> Iterator[Servers]:
    """Start a server or an ensemble, and kill it after use."""
    try:
        servers.start()
        yield servers
    finally:
        servers.kill()


def _tls_settings(identity: Identity, address: str, port: int) -> dict[str, str]:
    return {
        "secureClientPort": str(port),
        "secureClientPortAddress": address,
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(identity.key_and_certificate),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(identity.authority),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
        "ssl.hostnameVerification": "false",  # Clients are verified by reverse DNS otherwise.
    }


def _sasl_settings(path: Path, users: Mapping[str, str]) -> dict[str, str]:
    passwords = "\n".join(f'    user_{name}="{password}"' for name, password in users.items())
    path.write_text(
        f"Server {{\n    org.apache.zookeeper.server.auth.DigestLoginModule required\n{passwords};\n}};\n", "utf-8"
    )
    path.chmod(0o600)
    return {
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
    }
