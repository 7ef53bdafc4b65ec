"""``kframe controller run`` as an operator starts it: with Kafka's protocol in both directions, logs and HTTP pages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path

from verification.zookeeper.commands import RunningCommand
from verification.zookeeper.machine import HOST, LOCAL, Machine
from verification.zookeeper.servers import free_ports


class InstanceProcess(RunningCommand):
    """A ``kframe controller run`` process. Ids 1000 and 1001 are never replicas."""

    def __init__(
        self,
        zookeeper: str,
        folder: Path,
        number: int,
        *arguments: str,
        settings: Mapping[str, str] = {},
        session_ms: int = 30_000,
        machine: Machine = LOCAL,
    ) -> None:
        """Start an instance with id ``number`` at HOST:PORT/CHROOT, with further Kafka ``settings``.

        In these, ``{address}`` and ``{other_address}`` are replaced by its own addresses. ``folder`` is created for
        configuration and logs, unless ``--log-dir`` is given. ``session_ms`` must be long, because a machine that
        starts brokers may delay a process for seconds.
        """
        config = folder / "server.properties"
        pages, *ports = free_ports(3)
        self.logs_folder = Path(dict(itertools.pairwise(arguments)).get("--log-dir", folder / "logs"))
        super().__init__(
            folder,
            "controller",
            "run",
            "--config",
            config,
            "--metrics-listen",
            pages,
            "--log-dir",
            self.logs_folder,
            *arguments,
            machine=machine,
        )
        self.number = number
        self.pages_address = f"{HOST}:{pages}"
        self.address, self.other_address = (f"{machine.address}:{port}" for port in ports)
        keys = {
            "zookeeper.connect": zookeeper,
            "zookeeper.session.timeout.ms": session_ms,
            "broker.id": number,
            "listeners": f"PLAINTEXT://{self.address}",
            "kframe.never.replicas": "1000,1001",
            **settings,
        }
        lines = "".join(f"{key}={value}\n" for key, value in keys.items())
        config.write_text(lines.replace("{address}", self.address).replace("{other_address}", self.other_address))
        self.start()

    @property
    def log(self) -> str:
        """All output: the log, stdout and stderr."""
        paths = (self.logs_folder / "controller.log", self.folder / "log.txt")
        return "".join(path.read_text() for path in paths if path.exists())

    @property
    def changes(self) -> str:
        """The state change log."""
        return (self.logs_folder / "state-change.log").read_text()

    @property
    def memory_kib(self) -> int:
        """The peak memory in KiB, as Linux reports it."""
        (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE)
        return int(peak)
