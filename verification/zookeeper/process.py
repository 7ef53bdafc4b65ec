"""Processes of tests, each started and ended by a handle."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from verification.zookeeper.machine import LOCAL, Machine

_END_S: Final = 60.0  # A broker needs time to hand over its partitions.
_started: Final[set[Process]] = set()


class Process:
    """A program that can be started, stopped, killed, frozen, and started again."""

    def __init__(self, machine: Machine = LOCAL) -> None:
        self.machine = machine
        self._process: subprocess.Popen[bytes] | None = None
        self._log_path: Path | None = None

    @property
    def pid(self) -> int | None:
        """The id of the running process, or None."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def stop(self, seconds: float = _END_S, number: signal.Signals = signal.SIGTERM) -> int | None:
        """Send signal ``number``, and wait until the process has ended. After ``seconds`` it is killed.

        Returns the exit code as in ``subprocess``: negative after a signal, None if no process was running.
        """
        if self._process is None:
            return None
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)  # A frozen process receives SIGKILL only.
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        code = self._process.returncode
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # The process may have ended before it read the line.
                    pipe.close()
        self._process = None
        _started.discard(self)
        return code

    def kill(self) -> None:
        """End the process with SIGKILL, as a power failure would."""
        self.stop(number=signal.SIGKILL)

    def pause(self) -> None:
        """Freeze the process (SIGSTOP). Connections stay open, but it does not answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a frozen process (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _launch(self, command: Sequence[str], folder: Path, *, piped: bool = False) -> None:
        """Start the process in ``folder``. Its output goes to log.txt. With ``piped``, stdout is kept for answers."""
        assert self.pid is None, "running already"
        self._log_path = folder / "log.txt"
        child_stdin = subprocess.PIPE if piped else subprocess.DEVNULL
        environment = {**os.environ, **self.machine.environment}
        with self._log_path.open("ab") as log, self.machine.entered():
            child_stdout = subprocess.PIPE if piped else log
            self._process = subprocess.Popen(
                command, stdin=child_stdin, stdout=child_stdout, stderr=log, cwd=folder, env=environment
            )
        _started.add(self)

    def _answer(self, line: str) -> str:
        """Send a line and return the response line. Raises RuntimeError with the log if the process has ended."""
        assert self._process is not None, "not started"
        assert self._process.stdin is not None, "no pipe"
        assert self._process.stdout is not None, "no pipe"
        with suppress(BrokenPipeError):  # Without a reader there is no response, which is reported below.
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline().decode()
        if not answer:
            log = "" if self._log_path is None else self._log_path.read_text()
            raise RuntimeError(f"{type(self).__name__} has ended:\n{log[-4000:]}")
        return answer

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "not started"
        self._process.send_signal(number)


def running_processes() -> list[Process]:
    """Processes that were started and not ended by their handles. After the tests there must be none."""
    return [process for process in _started if process.pid is not None]
