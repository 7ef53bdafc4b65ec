"""Read snapshots and plans from standard input and named pipes, which readers must open more than once."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from kframe.errors import SnapshotError
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.files import InputFile, StreamCopy

#: The argument that means standard input.
STANDARD_INPUT: Final = "-"
#: A stream that is longer than this is refused, because its copy would fill the disk.
STREAM_BYTES_MAX: Final = 16 << 30
_CHUNK_BYTES: Final = 1 << 20


@contextmanager
def opened(source: Path, progress: Progress = ignore_progress) -> Iterator[InputFile]:
    """``source`` itself, or a copy of the pipe that it names; ``-`` is standard input. The copy is deleted at the end.

    Raises SnapshotError if the stream cannot be read or is longer than STREAM_BYTES_MAX.
    """
    if str(source) == STANDARD_INPUT:
        if sys.stdin.isatty():
            raise SnapshotError(STANDARD_INPUT, "a terminal", "a pipe or a file as standard input")
        with _copy(sys.stdin.buffer, "standard input", progress) as copy:
            yield copy
    elif is_pipe(source):
        with source.open("rb") as stream, _copy(stream, str(source), progress) as copy:
            yield copy
    else:
        yield source


def is_pipe(path: Path) -> bool:
    """Whether a path is that of a named pipe."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


@contextmanager
def _copy(stream: IO[bytes], name: str, progress: Progress) -> Iterator[StreamCopy]:
    import tempfile  # Most sources are files, and its imports take a hundredth of a what-if's time.

    with tempfile.NamedTemporaryFile(prefix="kframe-") as file:
        length = 0
        try:
            while chunk := stream.read(_CHUNK_BYTES):
                length += len(chunk)
                if length > STREAM_BYTES_MAX:
                    raise SnapshotError(name, "a longer stream", f"at most {STREAM_BYTES_MAX} bytes")
                file.write(chunk)
                progress(length, length)
            file.flush()
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise SnapshotError(name, reason, "a stream that can be read, and room for its copy") from problem
        yield StreamCopy(name, Path(file.name))
