"""Detect the format of a file, and read it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from kframe.errors import SnapshotError
from kframe.snapshot.checks import shown
from kframe.snapshot.describe import read_describe
from kframe.snapshot.directory import read_directory
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, Progress, ignore_progress, peek
from kframe.snapshot.kcat import read_kcat
from kframe.snapshot.reassignment import CURRENT_HEADING, PROPOSED_HEADING, read_reassignment_snapshot
from kframe.snapshot.snapshot import Snapshot
from kframe.snapshot.zookeeper import read_zookeeper

Reader: TypeAlias = Callable[[InputFile, Progress, Faults], Snapshot]


def _read_directory(path: InputFile, progress: Progress, faults: Faults) -> Snapshot:
    if not isinstance(path, Path):
        raise SnapshotError(str(path), "a stream", "the path of a snapshot directory")
    return read_directory(path, progress, faults)


#: Every format that can be read, by the name that ``--from`` takes.
FORMATS: Final[Mapping[str, Reader]] = {
    "kframe": _read_directory,
    "zookeeper": read_zookeeper,
    "describe": read_describe,
    "kcat": read_kcat,
    "reassignment": read_reassignment_snapshot,
}

#: Patterns that only one format has near its start, in the order in which they are tried.
_SIGNS: Final = (
    (re.compile(rb'\A\s*\{[^\n]{0,4096}?"path"\s*:\s*"/'), "zookeeper"),
    (re.compile(rb"\A\s*Topic:"), "describe"),
    (re.compile(rb"\A\s*(?:%b|%b)" % (CURRENT_HEADING.encode(), PROPOSED_HEADING.encode())), "reassignment"),
    (re.compile(rb'\A\s*\{.*?"(?:originating_broker|controllerid|brokers)"\s*:', re.DOTALL), "kcat"),
    (re.compile(rb'\A\s*\{.*?"partitions"\s*:', re.DOTALL), "reassignment"),
)
#: File names, for damaged files whose content matches no pattern; the reader reports the damage.
_NAMES: Final = (
    (".zookeeper.jsonl", "zookeeper"),
    (".jsonl", "zookeeper"),
    (".kcat.json", "kcat"),
    (".topics-describe.txt", "describe"),
    ("reassignment.json", "reassignment"),
)


def detect_format(path: InputFile) -> str:
    """The format of a file or directory, by its content and then by its name. Raises SnapshotError."""
    if isinstance(path, Path) and os.path.isdir(path):  # Path.is_dir raises for names that are too long
        return "kframe"
    start = peek(path)
    if not start.strip():
        raise SnapshotError(str(path), "an empty file", "a snapshot")
    for sign, name in _SIGNS:
        if sign.match(start):
            return name
    plain = path.name.removesuffix(".gz")
    for ending, name in _NAMES:
        if plain.endswith(ending):
            return name
    raise SnapshotError(str(path), f"a file that starts with {shown(start[:24])}", f"one of {', '.join(FORMATS)}")


def read_snapshot(
    path: InputFile | str, format: str | None = None, progress: Progress = ignore_progress, faults: Faults = REFUSE
) -> Snapshot:
    """Read a snapshot in ``format`` (a key of FORMATS; detected if None).

    A ``FaultNotes`` collects single bad lines and contradictions, and their topics are left out. Otherwise the first of
    them raises SnapshotError. A file that is unreadable as a whole always raises it.
    """
    source = Path(path) if isinstance(path, str) else path
    name = detect_format(source) if format is None else format
    if name not in FORMATS:
        raise SnapshotError("format", shown(name), f"one of {', '.join(FORMATS)}")
    return FORMATS[name](source, progress, faults)
