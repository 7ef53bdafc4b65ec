"""Recorded histories of admin requests, and their check by Porcupine, a checker of linearizability.

The model is in ``histories/model.go``. Go builds the checker once for each machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from verification.zookeeper.java import cached, digest

_SOURCE: Final = Path(__file__).parent / "histories"
_FILES: Final = ("go.mod", "go.sum", "main.go", "model.go")
#: The outcome of an operation without a response.
UNKNOWN: Final = ""


@dataclass(slots=True)
class HistoryOperation:
    """An operation of a client on a topic. Times are nanoseconds of a monotonic clock."""

    client: int
    topic: str
    kind: str
    call: int
    end: int = 0
    """0: the client does not know the outcome, so the operation may take effect at any later time."""
    code: str = UNKNOWN
    """The name of Kafka's error code."""
    partitions: int = 0
    replicas: Sequence[int] = ()
    """Of partition 0: requested or returned."""
    adding: Sequence[int] = ()
    removing: Sequence[int] = ()
    leader: int = 0
    id: str = ""


@dataclass(frozen=True, slots=True)
class HistoryReport:
    """The result of a check. Histories are checked by topic, because linearizability is local."""

    operations: int
    topics: int
    longest: int
    """Operations of the longest history."""
    violations: list[str]
    """Topics whose history is not linearizable."""
    undecided: list[str]
    """Topics whose check took too long."""


def missing() -> str | None:
    """The missing requirement, or None."""
    return None if shutil.which("go") else "no go on this machine"


def check(operations: Sequence[HistoryOperation], folder: Path | None = None) -> HistoryReport:
    """Check a history. ``folder`` receives a page for each topic whose history is not linearizable."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "history.json"
        path.write_text(json.dumps([_fields(operation) for operation in operations]))
        command = [str(_checker()), str(path), *([] if folder is None else [str(folder)])]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    return HistoryReport(**json.loads(output))


def _fields(operation: HistoryOperation) -> dict[str, object]:
    fields = asdict(operation)
    return {**fields, "return": fields.pop("end")}


def _checker() -> Path:
    """The program. It is built on first use; Go downloads Porcupine then."""
    program = cached(f"histories-{digest(*((_SOURCE / name).read_text() for name in _FILES))}")
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
            built = Path(scratch) / "histories"
            subprocess.run(["go", "build", "-o", str(built), "."], check=True, cwd=_SOURCE)
            built.rename(program)
    return program
