"""Read external files, plain or gzip, by line or complete, up to a stated limit.

Text may be UTF-8 or, with a byte order mark, UTF-16. Lines of loggers, containers and shells are skipped: before and
after a document, and anywhere among lines.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TypeAlias, cast

from kframe.errors import SnapshotError
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.noise import CleanText, Readable, continues_log_entry, is_noise, without_noise

#: A line longer than this is refused. ZooKeeper's own limit on a znode is 1 MiB, 4 MiB in Kafka's clients.
LINE_BYTES_MAX: Final = 16 << 20
#: A file that must be read whole and is larger than this after decompression is refused.
DOCUMENT_BYTES_MAX: Final = 1 << 30
#: What is expected in place of an empty or a missing file, unless a reader says otherwise.
SNAPSHOT: Final = "a snapshot"
_PEEK_BYTES: Final = 1 << 16
#: Lines are read in blocks of this size.
_BLOCK_BYTES: Final = 1 << 20

#: File types that open like a regular file but are none.
_SPECIAL_FILES: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)

#: Called with a block, the offset of a line and its number. Returns the offset after the last line that it has read,
#: and how many it has read.
TakeLines: TypeAlias = Callable[[bytes, int, int], tuple[int, int]]


def take_none(block: bytes, start: int, number: int) -> tuple[int, int]:
    """Read no line of a block."""
    return start, 0


class StreamCopy:
    """The content of a stream in a temporary file. It prints as the name that the user gave."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self._path = name, path

    def __str__(self) -> str:
        return self.name

    def open(self, mode: str) -> IO[bytes]:
        """Open the copy."""
        return self._path.open(mode)

    def stat(self) -> os.stat_result:
        """The status of the copy, a regular file."""
        return self._path.stat()


InputFile: TypeAlias = Path | StreamCopy


@contextmanager
def _reading(path: InputFile, expected: str = SNAPSHOT) -> Iterator[tuple[CleanText, IO[bytes]]]:
    """The content of a file, and the raw file. The position of the raw file is the progress. I/O errors become
    SnapshotError."""
    try:
        check_regular(path)
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            content = cast("IO[bytes]", gzip.GzipFile(fileobj=raw) if packed else raw)
            yield CleanText(_as_utf8(content)), raw
    except FileNotFoundError:
        raise SnapshotError(str(path), "no such file", expected) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise SnapshotError(str(path), f"a damaged gzip file ({problem})", "a whole one") from problem
    except UnicodeDecodeError as problem:
        raise SnapshotError(
            str(path), f"broken UTF-16 ({problem.reason})", "UTF-16 after its byte order mark"
        ) from problem
    except OSError as problem:
        raise SnapshotError(str(path), problem.strerror or str(problem), "a file that can be read") from problem


class _Utf16:
    """UTF-16 text, which begins with a byte order mark, as UTF-8."""

    def __init__(self, content: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(cast("io.BufferedReader", content), "utf-16", newline="")

    def read(self, size: int) -> bytes:
        """At most ``size`` characters."""
        return self._text.read(size).encode()

    def readline(self, size: int) -> bytes:
        """At most ``size`` characters, to the end of a line."""
        return self._text.readline(size).encode()


def _as_utf8(content: IO[bytes]) -> Readable:
    """The content without a byte order mark, as UTF-8 if the mark is of UTF-16."""
    mark = content.read(len(codecs.BOM_UTF8))
    if mark == codecs.BOM_UTF8:
        return content
    content.seek(0)
    if mark[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return _Utf16(content)
    return content


def check_regular(path: InputFile) -> None:
    """Raise SnapshotError for a pipe, socket or device: opening one may wait for ever. Raises OSError for no file."""
    mode = path.stat().st_mode
    kind = next((name for test, name in _SPECIAL_FILES if test(mode)), None)
    if kind is not None:
        raise SnapshotError(str(path), kind, "a file or a directory")


def read_lines(
    path: InputFile, progress: Progress = ignore_progress, take_lines: TakeLines = take_none
) -> Iterator[tuple[int, bytes]]:
    """The lines of a file except those of loggers, containers and shells, numbered from 1, with their ends.

    Raises SnapshotError. Lines that ``take_lines`` reads are not returned. It is called before each other line, and
    reads no line of a logger.
    """
    with _reading(path) as (content, raw):
        number, begun, warned = 0, False, False
        unfinished = b""
        for chunk in _blocks(content, raw, path.stat().st_size, progress):
            for block, offset, take in _parts(unfinished, chunk, take_lines):
                start = offset
                while start < len(block):
                    start, count = take(block, start, number + 1)
                    number += count
                    begun, warned = begun or count > 0, warned and not count
                    end = _end_of_line(block, start)
                    if end == 0:
                        break
                    line, start, number = block[start:end], end, number + 1
                    begun, warned, is_content = _filtered(line, begun, warned)
                    if is_content:
                        yield number, _checked_length(line, path, number)
                unfinished = block[start:]
        for line in (unfinished,) if unfinished else ():
            begun, _, is_content = _filtered(line, begun, warned)
            if is_content:
                yield number + 1, _checked_length(line, path, number + 1)
        if not begun:
            raise SnapshotError(str(path), "an empty file", SNAPSHOT)


def _parts(unfinished: bytes, chunk: bytes, take_lines: TakeLines) -> Iterator[tuple[bytes, int, TakeLines]]:
    """Split ``rest + chunk``, so that of ``chunk`` only the end of the unfinished line ``rest`` is copied.

    Yields a text, the offset of its first line, and the function that reads its lines.
    """
    end = chunk.find(b"\n") + 1 if unfinished else 0
    if end == 0 or len(unfinished) + end > LINE_BYTES_MAX:
        yield unfinished + chunk, 0, take_lines
    else:
        yield unfinished + chunk[:end], 0, take_none
        yield chunk, end, take_lines


def _blocks(content: CleanText, raw: IO[bytes], total: int, progress: Progress) -> Iterator[bytes]:
    while block := content.read(_BLOCK_BYTES):
        progress(raw.tell(), total)
        yield block


def _end_of_line(block: bytes, start: int) -> int:
    """The offset after the line at ``start``, or after LINE_BYTES_MAX + 1 bytes of it; 0 if it is unfinished."""
    limit = start + LINE_BYTES_MAX + 1
    return block.find(b"\n", start, limit) + 1 or (limit if limit <= len(block) else 0)


def _filtered(line: bytes, begun: bool, warned: bool) -> tuple[bool, bool, bool]:
    """Whether the content has begun, whether the line is of a log entry, and whether it is content."""
    is_log = is_noise(line) or (warned and continues_log_entry(line))
    if is_log or line.isspace():
        return begun, warned or not line.isspace(), False
    return True, False, True


def _checked_length(line: bytes, path: InputFile, number: int) -> bytes:
    if len(line) > LINE_BYTES_MAX:
        raise SnapshotError(f"{path}:{number}", "a longer line", f"at most {LINE_BYTES_MAX} bytes")
    return line


def read_document(path: InputFile, limit: int | None = None, expected: str = SNAPSHOT) -> bytes:
    """A whole file of at most ``limit`` bytes (default DOCUMENT_BYTES_MAX), without lines of loggers around it.

    Raises SnapshotError, which says what is ``expected`` if there is no file or no content.
    """
    bytes_max = DOCUMENT_BYTES_MAX if limit is None else limit
    with _reading(path, expected) as (content, _):
        document = content.read(bytes_max + 1)
    if len(document) > bytes_max:
        raise SnapshotError(str(path), "a larger file", f"at most {bytes_max} bytes")
    document = without_noise(document)
    if not document.strip():
        raise SnapshotError(str(path), "an empty file", expected)
    return document


def read_blocks(path: InputFile, progress: Progress = ignore_progress) -> Iterator[bytes]:
    """A document of at most DOCUMENT_BYTES_MAX in blocks, without log lines if these are in the first block.

    Raises SnapshotError.
    """
    with _reading(path) as (content, raw):
        size = 0
        for block in _blocks(content, raw, path.stat().st_size, progress):
            is_first, size = size == 0, size + len(block)
            if size > DOCUMENT_BYTES_MAX:
                raise SnapshotError(str(path), "a larger file", f"at most {DOCUMENT_BYTES_MAX} bytes")
            yield without_noise(block) if is_first else block


def peek(path: InputFile) -> bytes:
    """The first 64 KiB of a file without log lines before its content. Raises SnapshotError."""
    with _reading(path) as (content, _):
        return without_noise(content.read(_PEEK_BYTES))
