"""Records of measurements, and tables of them."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
#: Records in version control.
RESULTS: Final = ROOT / "benchmarks" / "results"
#: The folder for the last record of each command.
LATEST: Final = ROOT / "build" / "bench"


def describe_machine() -> dict[str, Any]:
    """CPU, cores, memory, system, Python, the commit, and whether tracked files differ from it."""
    return {
        "processor": _first_field("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory": _first_field("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": _git("rev-parse", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def _first_field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def table(lines: Sequence[tuple[str, ...]], legend: str) -> None:
    """Print lines below each other, and their meaning."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    print(f"{legend}\n")


def spread(ratios: Sequence[float]) -> str:
    """The median of the ratios of pairs of runs, and between which values they are."""
    return f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def command_of(module: str, words: Sequence[str] | None = None) -> list[str]:
    """The command line of a benchmark. Its options are ``words``, by default those of this process."""
    return ["python", "-m", module, *(sys.argv[1:] if words is None else words)]


def record_of(command: Sequence[str], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Figures with the time, the command, the machine and the commit."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"when": now, "command": list(command), **describe_machine(), **measured}


def write_record(path: Path, command: Sequence[str], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Write ``record_of`` the figures as JSON; return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = record_of(command, measured)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


class IncrementalRecord:
    """A record that grows part by part: each part is saved when it ends, and a failing part does not stop the others.
    Besides the figures, the record has the seconds of each part, and the parts that ``failed``."""

    def __init__(self, path: Path, command: Sequence[str], measured: Callable[[], Mapping[str, Any]]) -> None:
        """``measured`` returns the figures so far."""
        self._path, self._command, self._measured = path, command, measured
        self._seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.document: dict[str, Any] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Measure one part in the block. Progress and errors go to standard error."""
        print(f"-- {name}", file=sys.stderr)
        begun = time.monotonic()
        try:
            yield
        except Exception:
            traceback.print_exc()
            self.failed.append(name)
        self._seconds[name] = round(time.monotonic() - begun, 1)
        self.save()

    def save(self) -> None:
        """Write the figures so far."""
        measured = {**self._measured(), "part_seconds": self._seconds, "failed": self.failed}
        self.document = write_record(self._path, self._command, measured)

    def end(self) -> int:
        """Print the failed parts. Return the exit code of the command."""
        if self.failed:
            print(f"failed, and not measured: {'; '.join(self.failed)}", file=sys.stderr)
        return 1 if self.failed else 0


def newest(folder: Path) -> list[dict[str, Any]]:
    """All records of a folder, the newest last. ``file`` has the name of the file of each."""
    records = [{"file": path.name, **json.loads(path.read_text(encoding="utf-8"))} for path in folder.glob("*.json")]
    return sorted(records, key=lambda record: (str(record.get("when", "")), str(record["file"])))
