"""System clocks of processes that tests move. A C compiler builds the library that is preloaded (``clock.c``).

A time namespace of Linux moves monotonic clocks only.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path


def missing() -> str | None:
    """The missing requirement, or None."""
    return None if shutil.which("cc") else "no C compiler (cc) on this machine"


class Clocks:
    """A clock for each name."""

    def __init__(self, folder: Path) -> None:
        """Build the library in ``folder``, which is created."""
        folder.mkdir(parents=True)
        self._folder = folder
        self._library = folder / "clock.so"
        source = Path(__file__).parent / "clock.c"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(self._library), str(source)], check=True)

    def environment(self, name: str) -> Mapping[str, str]:
        """Variables of the processes that have this clock. It shows the system's time until ``move``."""
        self.move(name, 0)
        return {"LD_PRELOAD": str(self._library), "KFRAME_CLOCK": str(self._folder / name)}

    def move(self, name: str, seconds: int) -> None:
        """Let the clock differ from the system's by so many seconds, at once and for running processes too."""
        path = self._folder / name
        with path.open("r+b" if path.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))
