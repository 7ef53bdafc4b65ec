"""``kframe controller run`` in a process of its own, which tests kill and freeze."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final, NoReturn

from kframe_zookeeper.testing.process import Process, until
from kframe_zookeeper.testing.victims import Task

#: Seconds that a command may take.
_PATIENCE_S: Final = 150.0
#: A controller logs this after its election, followed by its controller epoch.
READY: Final = "Ready to serve as the new controller with epoch"
#: Every configuration file has this password. No log may have it.
PASSWORD: Final = "correct horse battery staple"


def kframe(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``kframe ARGUMENTS`` in a process of its own, to its end."""
    command = [sys.executable, "-m", "kframe.cli", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S, env={**os.environ, **environment}
    )


class ControllerRun(Process):
    """One ``kframe controller run``, not started yet."""

    def __init__(
        self, controller_id: int, connect_string: str, folder: Path, *arguments: str, timeout_ms: int = 20_000
    ) -> None:
        """``connect_string`` is HOST:PORT/CHROOT. ``folder`` is created for the configuration and the log."""
        super().__init__()
        self._folder = folder
        folder.mkdir()
        config = folder / "server.properties"
        config.write_text(
            f"zookeeper.session.timeout.ms={timeout_ms}\nbroker.id={controller_id}\nssl.key.password={PASSWORD}\n"
        )
        self._command = [
            sys.executable, "-m", "kframe.cli", "controller", "run", "--zookeeper", connect_string,
            "--config", str(config), "--transport", "recording:",
            *arguments,
        ]  # fmt: skip
        self._woken = False

    @property
    def log(self) -> str:
        """The content of the log."""
        return (self._folder / "log.txt").read_text()

    def stand(self) -> None:
        """Start the process."""
        self._launch(self._command, self._folder)

    def logs(self, text: str) -> bool:
        """Wait until ``text`` is in the log. Return false if the process ends before."""
        assert until(lambda: text in self.log or self.pid is None, _PATIENCE_S), self.log
        return text in self.log

    def settle(self) -> bool:
        """Wait until the process is the active controller or, after a freeze, has resigned. Return whether it has the
        role."""
        last = "Resigned" if self._woken else READY
        assert until(lambda: last in self.log or self.pid is None), self.log
        return self.log.rfind(READY) > self.log.rfind("Resigned")

    def do(self, _task: Task) -> NoReturn:
        """Not available: the command takes requests through ZooKeeper only."""
        raise AssertionError("the command takes no requests")

    def freeze(self) -> None:
        """Send SIGSTOP."""
        self.pause()

    def wake(self) -> None:
        """Send SIGCONT."""
        self._woken = True
        self.resume()

    def close(self) -> None:
        """End the process if it runs."""
        self.kill()
