"""``kframe console`` as a process of its own, for tests and benchmarks."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from verification.zookeeper.process import Process

_ADDRESS: Final = re.compile(r"https?://127\.0\.0\.1:(\d+)/")


class ConsoleProcess(Process):
    """A console on a port of this machine; ``port`` is set once it serves."""

    def __init__(self, arguments: Sequence[object], folder: Path, port: int) -> None:
        super().__init__()
        self.port = 0
        command = [sys.executable, "-m", "kframe.cli", "console", "--no-browser", "--listen", str(port)]
        self._launch([*command, *map(str, arguments)], folder)
        self._log = folder / "log.txt"

    @property
    def url(self) -> str:
        """The address of its pages."""
        return f"http://127.0.0.1:{self.port}/"

    def printed(self) -> str:
        """All that it has printed."""
        return self._log.read_text()

    def await_address(self, limit_s: float) -> None:
        """Wait until it prints its address. Raises RuntimeError with what it printed."""
        end = time.monotonic() + limit_s
        while (match := _ADDRESS.search(self.printed())) is None:
            if self.pid is None or time.monotonic() > end:
                raise RuntimeError(f"the console has no address: {self.printed()[-4000:]}")
            time.sleep(0.02)
        self.port = int(match[1])


@contextmanager
def running_console(
    *arguments: object, limit_s: float = 120, links: Sequence[Path] = (), port: int = 0
) -> Iterator[ConsoleProcess]:
    """A console with these arguments of ``kframe console``, on a free port by default.

    Raises RuntimeError if it has no address in time.

    Its working directory has ``links``, so that arguments, and what the console shows of them, need no directories.
    """
    with tempfile.TemporaryDirectory() as folder:
        for path in links:
            Path(folder, path.name).symlink_to(path)
        process = ConsoleProcess(arguments, Path(folder), port)
        try:
            process.await_address(limit_s)
            yield process
        finally:
            process.stop()
