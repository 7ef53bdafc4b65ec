"""Programs that tests run as processes of their own, each ended by its handle."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

#: How often it is looked whether something has happened; looks that take long come as much later, so that they leave
#: the machine to those who are looked at.
_LOOK_S: Final = 0.02
_REST: Final = 4.0
_REST_MOST_S: Final = 0.5
_END_S: Final = 60.0  # a broker that hands its partitions over first takes its time
_started: Final[set[Process]] = set()


class Process:
    """A program that can be stopped, killed and frozen, and started again."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log_path: Path | None = None

    @property
    def pid(self) -> int | None:
        """The number of the running process; None while there is none."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def stop(self, seconds: float = _END_S, number: signal.Signals = signal.SIGTERM) -> int | None:
        """Send ``number`` and wait until the process has ended; it is killed if it has not within ``seconds``.

        The exit code is that of ``subprocess``: below 0 for the signal that has ended it, None if none was running.
        """
        return self._end(number, seconds)

    def kill(self) -> None:
        """End the process as a power cut would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Freeze the process (SIGSTOP): connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _launch(self, command: Sequence[str], folder: Path, *, asked: bool = False) -> None:
        """Start the process in ``folder``, where log.txt takes what it says; ``asked``: but for its answers."""
        assert self.pid is None, "running already"
        self._log_path = folder / "log.txt"
        ours = subprocess.PIPE if asked else subprocess.DEVNULL
        with self._log_path.open("ab") as log:
            theirs = subprocess.PIPE if asked else log
            self._process = subprocess.Popen(command, stdin=ours, stdout=theirs, stderr=log, cwd=folder)
        _started.add(self)

    def _answer(self, line: str) -> str:
        """What the process answers to a line by one. Raises RuntimeError, with its log, if it has ended."""
        assert self._process is not None, "not started"
        assert self._process.stdin is not None, "not asked"
        assert self._process.stdout is not None, "not asked"
        with suppress(BrokenPipeError):  # then there is no answer either
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

    def _end(self, number: signal.Signals, seconds: float = _END_S) -> int | None:
        if self._process is None:
            return None
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)  # a frozen process hears nothing but SIGKILL
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        code = self._process.returncode
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # a line that the process did not live to read
                    pipe.close()
        self._process = None
        _started.discard(self)
        return code


def left_running() -> list[Process]:
    """Processes that were started and not ended by their handles: none when tests are over."""
    return [process for process in _started if process.pid is not None]


def until(holds: Callable[[], bool], seconds: float = 90.0) -> bool:
    """Wait until ``holds``; False if it still does not after so many ``seconds``."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        if holds():
            return True
        now = time.monotonic()
        if now > end:
            return False
        time.sleep(max(_LOOK_S, min(_REST * (now - begun), _REST_MOST_S)))
