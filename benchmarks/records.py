"""Records of what was measured, and tables of it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import machine

#: Records that are kept with the code.
RESULTS: Final = Path(__file__).resolve().parent / "results"
#: Where each command leaves what it measured last.
LATEST: Final = Path(__file__).resolve().parent.parent / "build" / "bench"


def table(lines: Sequence[tuple[str, ...]], legend: str) -> None:
    """Print lines under each other, and what they mean."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    print(f"{legend}\n")


def write_record(path: Path, command: Sequence[str], measured: Mapping[str, Any]) -> dict[str, Any]:
    """Keep figures with the time, the machine, the commit and the command; return what was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    document = {"when": now, "command": list(command), **machine.describe(), **measured}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def newest(folder: Path) -> list[dict[str, Any]]:
    """All records of a folder, the newest last; each has its file's name under ``file``."""
    found = [{"file": path.name, **json.loads(path.read_text(encoding="utf-8"))} for path in folder.glob("*.json")]
    return sorted(found, key=lambda record: (str(record.get("when", "")), str(record["file"])))
