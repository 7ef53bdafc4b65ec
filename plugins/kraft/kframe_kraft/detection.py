"""Detects files and directories of KRaft nodes without reading them. Imports nothing slow."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

#: The log's directory within ``metadata.log.dir``.
LOG_DIRECTORY: Final = "__cluster_metadata-0"
_FILES: Final = re.compile(r"\d{20}(?:\.log|-\d{10}\.checkpoint)|bootstrap\.checkpoint")
#: Magic 2 of the message format, after base offset, length and leader epoch.
_MAGIC: Final = re.compile(rb"\A\x00{4}.{4}\x00.{7}\x02", re.DOTALL)
#: The start of a metadata dump.
_DUMP: Final = re.compile(
    rb"\A\s*(?:Dumping [^\n]*(?:\.log|\.checkpoint)\s|baseOffset: \d+ lastOffset: |\{\"type\"\s*:\s*\"[A-Z_]+_RECORD\")"
)


def is_source(path: object, start: bytes) -> bool:
    """Whether a path is a node's directory, its log directory, a segment or snapshot, or a dump of one.

    ``start`` is the beginning of a file, empty for a directory.
    """
    if isinstance(path, Path) and path.is_dir():
        return log_directory(path) is not None
    return bool(_MAGIC.match(start) or _DUMP.match(start))


def is_dump(start: bytes) -> bool:
    """Whether a file that begins with ``start`` is a dump."""
    return bool(_DUMP.match(start))


def log_directory(path: Path) -> Path | None:
    """The directory of the metadata log: ``path`` itself or the one in it, None if there is neither."""
    for directory in (path / LOG_DIRECTORY, path):
        if directory.is_dir() and any(_FILES.fullmatch(file.name) for file in directory.iterdir()):
            return directory
    return None
