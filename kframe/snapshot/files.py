"""Read external files, plain or gzip, by line or complete, up to a stated limit."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TypeAlias, cast

from kframe.errors import SnapshotError

#: A line longer than this is refused. ZooKeeper's own limit on a znode is 1 MiB, 4 MiB in Kafka's clients.
LINE_BYTES_MAX: Final = 16 << 20
#: A file that must be held whole and is larger than this after decompression is refused.
DOCUMENT_BYTES_MAX: Final = 1 << 30
_PEEK_BYTES: Final = 1 << 16
_REPORT_LINES: Final = 1 << 14

#: File types that open like a regular file but are none.
_SPECIAL: Final = (
    (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"),
)  # fmt: skip

#: Called with (done, total), in bytes of the file or in rows.
Progress: TypeAlias = Callable[[int, int], None]


def ignore_progress(done: int, total: int) -> None:
    """Discard progress."""


@contextmanager
def _reading(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The content of a file and the raw file, whose position is the progress. I/O errors become SnapshotError."""
    try:
        check_regular(path)
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            content = cast("IO[bytes]", gzip.GzipFile(fileobj=raw) if packed else raw)
            yield content, raw
    except FileNotFoundError:
        raise SnapshotError(str(path), "no such file", "a snapshot") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise SnapshotError(str(path), f"a damaged gzip file ({problem})", "a whole one") from problem
    except OSError as problem:
        raise SnapshotError(str(path), problem.strerror or str(problem), "a file that can be read") from problem


def check_regular(path: Path) -> None:
    """Raise SnapshotError for a pipe, socket or device: opening one may wait for ever. Raises OSError for no file."""
    mode = path.stat().st_mode
    kind = next((name for test, name in _SPECIAL if test(mode)), None)
    if kind is not None:
        raise SnapshotError(str(path), kind, "a file or a directory")


def read_lines(path: Path, progress: Progress = ignore_progress) -> Iterator[tuple[int, bytes]]:
    """The lines of a file, numbered from 1, with their ends. Raises SnapshotError."""
    with _reading(path) as (content, raw):
        total = path.stat().st_size
        number = 0
        while line := content.readline(LINE_BYTES_MAX + 1):
            number += 1
            if len(line) > LINE_BYTES_MAX:
                raise SnapshotError(f"{path}:{number}", "a longer line", f"at most {LINE_BYTES_MAX} bytes")
            if number % _REPORT_LINES == 0:
                progress(raw.tell(), total)
            yield number, line
        if number == 0:
            raise SnapshotError(str(path), "an empty file", "a snapshot")


def read_document(path: Path, limit: int | None = None) -> bytes:
    """A whole file of at most ``limit`` bytes (default DOCUMENT_BYTES_MAX). Raises SnapshotError."""
    most = DOCUMENT_BYTES_MAX if limit is None else limit
    with _reading(path) as (content, _):
        document = content.read(most + 1)
    if len(document) > most:
        raise SnapshotError(str(path), "a larger file", f"at most {most} bytes")
    if not document.strip():
        raise SnapshotError(str(path), "an empty file", "a snapshot")
    return document


def peek(path: Path) -> bytes:
    """The first 64 KiB of a file. Raises SnapshotError."""
    with _reading(path) as (content, _):
        return content.read(_PEEK_BYTES)
