"""Detect the format of a file, and read it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from kframe.errors import SnapshotError, pip_command
from kframe.lazy import load_at_call
from kframe.model.texts import short_repr
from kframe.ports.progress import Progress, ignore_progress
from kframe.registry.known_plugins import plugin_of_directory
from kframe.snapshot.decode import text_repr
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, peek
from kframe.snapshot.manifest import MANIFEST_FILE

if TYPE_CHECKING:
    from kframe.ports.cluster_history import ClusterHistory
    from kframe.registry.specs import SnapshotFormatSpec
    from kframe.snapshot.snapshot import Snapshot

Reader: TypeAlias = "Callable[[InputFile, Progress, Faults], Snapshot]"

_read_directory: Final = load_at_call("kframe.snapshot.directory", "read_directory")
_build_registry: Final = load_at_call("kframe.registry.registry", "build_registry")


def _read_path(path: InputFile, progress: Progress, faults: Faults) -> Snapshot:
    if not isinstance(path, Path):
        raise SnapshotError(str(path), "a stream", "the path of a snapshot directory")
    manifest = path / MANIFEST_FILE
    if os.path.isdir(path) and not manifest.exists():
        if (plugin := plugin_of_directory(path)) is not None:
            raise SnapshotError(str(path), plugin.directory, f"{plugin.distribution}: {pip_command(plugin.extra)}")
        raise SnapshotError(str(manifest), "no such file", "a snapshot, or metadata.log.dir of a KRaft node")
    snapshot: Snapshot = _read_directory(path, progress, faults)
    return snapshot


#: Every format that can be read, by the name that ``--from`` takes.
FORMATS: Final[Mapping[str, Reader]] = {
    "kframe": _read_path,
    "zookeeper": load_at_call("kframe.snapshot.zookeeper", "read_zookeeper"),
    "describe": load_at_call("kframe.snapshot.describe", "read_describe"),
    "kcat": load_at_call("kframe.snapshot.kcat", "read_kcat"),
    "reassignment": load_at_call("kframe.snapshot.reassignment", "read_reassignment_snapshot"),
}

#: Patterns that only one format has near its start, in the order in which they are tried.
_PATTERNS: Final = (
    (re.compile(rb'\A\s*\{[^\n]{0,4096}?"path"\s*:\s*"/'), "zookeeper"),
    (re.compile(rb"\A\s*Topic:"), "describe"),
    (
        re.compile(
            rb"\A\s*(?:Current partition re(?:plica|assign)|Proposed partition reassign|No partition reassign"
            rb"|Status of partition reassign)"
        ),
        "reassignment",
    ),
    (re.compile(rb"\A\s*Metadata for [^\n]* \(from broker "), "kcat"),
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


@cache
def plugin_formats() -> Mapping[str, SnapshotFormatSpec]:
    """The formats of the installed plugins, by name. They are loaded on first use."""
    formats: Mapping[str, SnapshotFormatSpec] = _build_registry().snapshot_formats
    return formats


def format_names() -> tuple[str, ...]:
    """The names of all formats: those of FORMATS, then those of plugins."""
    return (*FORMATS, *(name for name in plugin_formats() if name not in FORMATS))


def format_written_to(path: Path) -> SnapshotFormatSpec | None:
    """The format of a plugin that writes files of this name; None for a snapshot directory."""
    specs = plugin_formats().values() if path.suffix else ()
    return next((spec for spec in specs if spec.suffix is not None and path.name.endswith(spec.suffix)), None)


def check_holds(snapshot: Snapshot, target: Path) -> None:
    """Raise SnapshotError for facts that only a snapshot directory holds."""
    if snapshot.partitions.observers is not None:
        raise SnapshotError(str(target), "a snapshot with observers", "a snapshot directory, the format that has them")


def detect_format(path: InputFile) -> str:
    """The format of a file or directory, by its content and then by its name. Raises SnapshotError."""
    if isinstance(path, Path) and os.path.isdir(path):  # Path.is_dir raises for names that are too long
        return "kframe" if (path / MANIFEST_FILE).exists() else plugin_format(path, b"") or "kframe"
    start = peek(path)
    if not start.strip():
        raise SnapshotError(str(path), "an empty file", "a snapshot")
    for pattern, name in _PATTERNS:
        if pattern.match(start):
            return name
    if name_of_plugin := plugin_format(path, start):
        return name_of_plugin
    file_name = path.name.removesuffix(".gz")
    for suffix, name in _NAMES:
        if file_name.endswith(suffix):
            return name
    raise SnapshotError(
        str(path), f"a file that starts with {text_repr(start[:24])}", f"one of {', '.join(format_names())}"
    )


def plugin_format(path: InputFile, start: bytes) -> str | None:
    """The format of a plugin that detects a file with this start, or a directory; None if there is none."""
    return next((name for name, spec in plugin_formats().items() if spec.detects(path, start)), None)


def read_snapshot(
    path: InputFile | str, format: str | None = None, progress: Progress = ignore_progress, faults: Faults = REFUSE
) -> Snapshot:
    """Read a snapshot in ``format`` (one of ``format_names``; detected if None).

    A ``FaultNotes`` collects single bad lines and contradictions, and their topics are left out. Otherwise the first of
    them raises SnapshotError. A file that is unreadable as a whole always raises it.
    """
    source = Path(path) if isinstance(path, str) else path
    name = detect_format(source) if format is None else format
    if name not in FORMATS:
        if name not in plugin_formats():
            raise SnapshotError("format", short_repr(name), f"one of {', '.join(format_names())}")
        snapshot: Snapshot = plugin_formats()[name].read_snapshot(source, progress, faults)
        return snapshot
    return FORMATS[name](source, progress, faults)


def open_history(path: InputFile | str, format: str | None = None) -> ClusterHistory | None:
    """The history of the cluster in a file or directory; None if it has none. Raises SnapshotError."""
    source = Path(path) if isinstance(path, str) else path
    name = detect_format(source) if format is None else format
    history: ClusterHistory | None = None
    if name not in FORMATS and name in plugin_formats():
        history = plugin_formats()[name].open_history(source)
    return history
