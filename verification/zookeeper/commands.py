"""``kframe`` commands: in processes of their own, which tests query, kill and freeze, or in this process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from click.testing import CliRunner

from kframe.cli.app import cli
from kframe.testing.waiting import PATIENCE_S, until
from verification.support.loggers import restored_loggers
from verification.zookeeper.machine import LOCAL, Machine
from verification.zookeeper.process import Process
from verification.zookeeper.victims import Task

#: A controller logs this after its election, followed by its controller epoch.
READY: Final = "Ready to serve as the new controller with epoch"
#: Every configuration file has this password. No log may have it.
PASSWORD: Final = "correct horse battery staple"
_METRICS: Final = re.compile(r"METRICS on (\S+:\d+)", re.IGNORECASE)
#: Users do not have Hypothesis, which kio would import in each process, for half a second.
_COMMAND: Final = (
    sys.executable,
    "-c",
    "import sys; sys.modules['hypothesis'] = None; from kframe.cli.app import main; main()",
)


def kframe(*arguments: object, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``kframe ARGUMENTS`` in ``folder``, to its end."""
    return subprocess.run(
        [*_COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        cwd=folder,
        env={**os.environ, **environment},
    )


def invoke(*arguments: object, folder: Path = Path(), **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``kframe ARGUMENTS`` in ``folder`` and in this process: a new process imports all modules for a second."""
    words = [*map(str, arguments)]
    with chdir(folder), restored_loggers():
        result = CliRunner(env=environment).invoke(cli, words, prog_name="kframe")
    return subprocess.CompletedProcess(["kframe", *words], result.exit_code, result.stdout, result.stderr)


def kframe_json(*arguments: object) -> Any:
    """The JSON output of a successful command in this process. Raises AssertionError with its error output."""
    done = invoke(*arguments, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class RunningCommand(Process):
    """A ``kframe`` command that runs until it is stopped, with a log and, if it was requested, HTTP pages."""

    def __init__(self, folder: Path, *arguments: object, machine: Machine = LOCAL) -> None:
        """``folder`` receives the log. The command is not started yet."""
        super().__init__(machine)
        self.folder = folder
        folder.mkdir(parents=True)
        self._arguments = tuple(map(str, arguments))
        self.pages_address: str | None = None
        """HOST:PORT of its HTTP pages. None: that of the log."""

    @property
    def log(self) -> str:
        """All output."""
        return (self.folder / "log.txt").read_text()

    def start(self) -> None:
        """Start the process."""
        self._launch([*_COMMAND, *self._arguments], self.folder)

    def logs(self, text: str) -> bool:
        """Wait until ``text`` is in the log. Return false if the process ends before."""
        assert until(lambda: text in self.log or self.pid is None), self.log
        return text in self.log

    def page(self, path: str) -> tuple[int, str]:
        """Status and text of a page. 0 while there is no HTTP server."""
        address = self.pages_address or next(iter(_METRICS.findall(self.log)), None)
        if address is None:
            return 0, ""
        connection = HTTPConnection(address, timeout=PATIENCE_S)
        try:
            with self.machine.entered():
                connection.connect()
        except ConnectionRefusedError:
            return 0, ""
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        (value,) = re.findall(rf"^{name} (\S+)$", self.page("/metrics")[1], re.MULTILINE)
        return float(value)

    def await_ready(self, active: bool) -> None:
        """Return when it is the active controller. A standby also counts."""

        def is_ready() -> bool:
            status, text = self.page("/readyz")
            return self.pid is None or (status == 200 and json.loads(text)["active"] is active)

        assert until(is_ready), self.log
        assert self.pid is not None, self.log


class ControllerRun(RunningCommand):
    """One ``kframe controller run``, not started yet."""

    def __init__(
        self, controller_id: int, connect_string: str, folder: Path, *arguments: str, timeout_ms: int = 20_000
    ) -> None:
        """``connect_string`` is HOST:PORT/CHROOT. ``folder`` is created for the configuration and the log."""
        config = folder / "server.properties"
        super().__init__(
            folder,
            "controller",
            "run",
            "--zookeeper",
            connect_string,
            "--config",
            config,
            "--transport",
            "recording:",
            *arguments,
        )
        config.write_text(
            f"zookeeper.session.timeout.ms={timeout_ms}\nbroker.id={controller_id}\nssl.key.password={PASSWORD}\n"
        )
        self._woken = False

    def settle(self) -> bool:
        """Wait until the process is the active controller or, after a freeze, has resigned. Return whether it has the
        role."""
        last = "Resigned" if self._woken else READY
        assert until(lambda: last in self.log or self.pid is None), self.log
        return self.log.rfind(READY) > self.log.rfind("Resigned")

    def do(self, _task: Task) -> NoReturn:
        """Not available. The command takes requests through ZooKeeper only."""
        raise AssertionError("the command takes no requests")

    def resume(self) -> None:
        """Continue after ``pause``."""
        self._woken = True
        super().resume()


#: Starts a ControllerRun with an id and further arguments.
Start: TypeAlias = Callable[..., ControllerRun]
