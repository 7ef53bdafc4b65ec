"""Detects files and directories of KRaft nodes without reading them. Imports nothing slow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

#: The log's directory within ``metadata.log.dir``.
LOG_DIRECTORY: Final = "__cluster_metadata-0"
_FILES: Final = re.compile(r"\d{20}(?:\.log|-\d{10}\.checkpoint)")
#: Files in each log directory of a node, also in one without the metadata log.
_NODE_FILES: Final = ("meta.properties", "bootstrap.checkpoint", "recovery-point-offset-checkpoint")
#: Magic 2 of the message format, after base offset, length and leader epoch.
_MAGIC: Final = re.compile(rb"\A\x00{4}.{4}\x00.{7}\x02", re.DOTALL)
#: A line of a metadata dump.
_DUMP: Final = re.compile(
    rb"^\s*(?:Dumping [^\n]*(?:\.log|\.checkpoint)\s|baseOffset: \d+ lastOffset: |\{\"type\"\s*:\s*\"[A-Z_]+_RECORD\")",
    re.MULTILINE,
)


def is_source(path: object, start: bytes) -> bool:
    """Whether a path is a directory of a node, its log directory, a segment or snapshot, or a dump of one.

    ``start`` is the beginning of a file, empty for a directory. A directory may lack the metadata log: its reader says
    so.
    """
    if isinstance(path, Path) and path.is_dir():
        return log_directory(path) is not None or is_node_directory(path)
    return bool(_MAGIC.match(start)) or is_dump(start)


def is_dump(start: bytes) -> bool:
    """Whether a file that begins with ``start`` is a dump."""
    return b"\0" not in start and _DUMP.search(start) is not None


def log_directory(path: Path) -> Path | None:
    """The directory of the metadata log: ``path`` itself or the one in it, None if there is neither."""
    for directory in (path / LOG_DIRECTORY, path):
        if directory.is_dir() and any(_FILES.fullmatch(file.name) for file in directory.iterdir()):
            return directory
    return None


def is_node_directory(path: Path) -> bool:
    """Whether a directory is one of a Kafka node, with or without the metadata log."""
    return path.name == LOG_DIRECTORY or any((path / name).exists() for name in (*_NODE_FILES, LOG_DIRECTORY))


def directory_below(path: Path) -> Path | None:
    """The first directory in ``path`` that has the metadata log, None if there is none."""
    return next((child for child in sorted(path.iterdir()) if (child / LOG_DIRECTORY).is_dir()), None)
