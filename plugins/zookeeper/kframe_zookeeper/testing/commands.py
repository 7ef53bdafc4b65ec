"""``kframe controller run`` in a process of its own, to be killed and frozen as users' are."""

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
#: What a controller logs when it has taken over; its controller epoch follows.
READY: Final = "Ready to serve as the new controller with epoch"
#: Stands in every configuration file, and in no log.
PASSWORD: Final = "correct horse battery staple"


def kframe(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """``kframe ARGUMENTS`` as a process of its own, run to its end."""
    command = [sys.executable, "-m", "kframe.cli", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S, env={**os.environ, **environment}
    )


class ControllerRun(Process):
    """One ``kframe controller run``, not started yet."""

    def __init__(
        self, controller_id: int, connect_string: str, folder: Path, *arguments: str, timeout_ms: int = 20_000
    ) -> None:
        """``place`` is HOST:PORT/CHROOT; ``folder`` is made for what it reads and says."""
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
        """Its log."""
        return (self._folder / "log.txt").read_text()

    def stand(self) -> None:
        """Start it."""
        self._launch(self._command, self._folder)

    def logs(self, text: str) -> bool:
        """Wait until ``text`` is in the log; False if the process ends without."""
        assert until(lambda: text in self.log or self.pid is None, _PATIENCE_S), self.log
        return text in self.log

    def settle(self) -> bool:
        """Wait until it has taken office, and, once woken from a freeze, lost it; whether it has the role then."""
        last = "Resigned" if self._woken else READY
        assert until(lambda: last in self.log or self.pid is None), self.log
        return self.log.rfind(READY) > self.log.rfind("Resigned")

    def do(self, _task: Task) -> NoReturn:
        """The command is reachable by ZooKeeper only."""
        raise AssertionError("the command takes no requests")

    def freeze(self) -> None:
        """SIGSTOP."""
        self.pause()

    def wake(self) -> None:
        """SIGCONT."""
        self._woken = True
        self.resume()

    def close(self) -> None:
        """End it if it runs."""
        self.kill()
