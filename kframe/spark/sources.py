"""Which files a fleet is in, and what each one's cluster is called."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.errors import InputError, ParameterError
from kframe.model.texts import short_repr
from kframe.snapshot.formats import plugin_format
from kframe.snapshot.manifest import MANIFEST_FILE, TABLES, file_of

#: Taken off a file's name to make a cluster's, the longest that fits.
_ENDINGS: Final = (
    ".zookeeper.jsonl",
    ".jsonl",
    ".topics-describe.txt",
    ".describe.txt",
    ".txt",
    ".kcat.json",
    ".json",
    ".kframe",
)
_DIRECTORY_ENDING: Final = ".kframe"
#: A directory with any of these is a snapshot, if perhaps not a whole one.
_SNAPSHOT_FILES: Final = frozenset({MANIFEST_FILE, *map(file_of, TABLES)})
_NAME_BYTES_MAX: Final = 200
_FIELDS: Final = ("stem", "parent")


@dataclass(frozen=True, slots=True)
class SnapshotSource:
    """A file or snapshot directory, and the name of the one cluster that is in it."""

    path: str
    cluster: str

    @property
    def is_directory(self) -> bool:
        """Whether it is a snapshot directory."""
        return os.path.isdir(self.path)


def find_sources(patterns: Iterable[str], name: str | None = None) -> tuple[SnapshotSource, ...]:
    """The snapshot sources at these paths or patterns, by cluster.

    A cluster is named by its file or directory without the extension of the format. ``name`` overrides that: a name for
    a single source, or a pattern such as ``{parent}@{stem}`` of that stem and its directory.
    """
    paths = sorted({path for pattern in patterns for path in _matches(pattern)})
    template = _template(name, paths)
    by_name: dict[str, str] = {}
    for path in paths:
        cluster = template.format(stem=_stem(path), parent=Path(path).parent.name)
        check_cluster_name(cluster, path)
        if cluster in by_name:
            expected = "a name for each, such as by --name {parent}@{stem}"
            raise InputError(path, f"cluster {cluster} again, which is also in {by_name[cluster]}", expected)
        by_name[cluster] = path
    return tuple(SnapshotSource(path, cluster) for cluster, path in by_name.items())


def check_cluster_name(name: str, where: str) -> None:
    """Raise InputError unless ``name`` can name a cluster and a directory of it."""
    wrong = not name or name.startswith((".", "_")) or "/" in name or not name.isprintable()
    if wrong or len(name.encode()) > _NAME_BYTES_MAX:
        expected = f"1 to {_NAME_BYTES_MAX} bytes of text without '/', not beginning with '.' or '_'"
        raise InputError(where, f"cluster name {short_repr(name)}", expected)


def _template(name: str | None, paths: list[str]) -> str:
    if name is None:
        return "{stem}"
    bare = name
    for field in _FIELDS:
        bare = bare.replace(f"{{{field}}}", "")
    if "{" in bare or "}" in bare:
        raise ParameterError("name", short_repr(name), "a text with {stem} and {parent} in it, or none of these")
    if bare == name and len(paths) > 1:
        raise ParameterError(
            "name", f"{short_repr(name)} for {len(paths)} sources", "one source, or a pattern with {stem}"
        )
    return name


def _matches(pattern: str) -> Iterator[str]:
    pattern = pattern.removeprefix("file://")
    paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    matches = [path for path in paths for path in _inside(path)]
    if not matches:
        raise InputError(
            pattern, "no snapshot there", "a file, a snapshot directory, or a directory or pattern of these"
        )
    yield from map(os.path.abspath, matches)  # executors work elsewhere


def _inside(path: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """The sources in a directory, or the path itself.

    The path itself is a file, a snapshot directory (complete or not), a directory in a plugin's format, or an
    unreadable directory. A directory without permission, or a link back to a directory in ``above``, is unreadable.
    """
    path = path.rstrip("/") or path
    names, real = _names_in(path), os.path.realpath(path)
    if names is None or real in above:
        yield path
        return
    is_snapshot = _SNAPSHOT_FILES & set(names) or path.endswith(_DIRECTORY_ENDING)
    if is_snapshot or plugin_format(Path(path), b"") is not None:
        yield path
        return
    for name in names:
        if not name.startswith((".", "_")):
            yield from _inside(os.path.join(path, name), (*above, real))


def _names_in(path: str) -> list[str] | None:
    """The names in a directory, ascending; None for what is none or cannot be listed."""
    try:
        return sorted(os.listdir(path)) if os.path.isdir(path) else None
    except OSError:
        return None


def _stem(path: str) -> str:
    name = os.path.basename(path).removesuffix(".gz")
    return next((name.removesuffix(ending) for ending in _ENDINGS if name.endswith(ending)), name)
