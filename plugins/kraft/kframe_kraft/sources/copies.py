"""Temporary copies of what cannot be read more than once from any position: pipes, and files compressed by gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, Final, cast

from kframe_kraft.disk.batch_files import PART_BYTES, BatchSource
from kframe_kraft.disk.temporary import TemporaryContent
from kframe_kraft.errors import LogError

#: Longer content is refused, because its copy would fill the disk.
COPY_BYTES_MAX: Final = 16 << 30
_GZIP_MAGIC: Final = b"\x1f\x8b"


def copied_pipe(path: Path | BatchSource) -> Path | BatchSource:
    """The file, or a copy of the pipe that it is. Raises LogError above COPY_BYTES_MAX."""
    if not isinstance(path, Path) or not path.is_fifo():
        return path
    with path.open("rb") as pipe:
        return _copy(path.name, pipe)


def uncompressed(path: Path | BatchSource) -> Path | BatchSource:
    """The file, or its decompressed content. Raises LogError if the gzip data are damaged, or above COPY_BYTES_MAX."""
    with path.open("rb") as file:
        if file.read(len(_GZIP_MAGIC)) != _GZIP_MAGIC:
            return path
        file.seek(0)
        try:
            return _copy(path.name.removesuffix(".gz"), cast("IO[bytes]", gzip.GzipFile(fileobj=file)))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise LogError(path.name, f"a damaged gzip file ({error})", "a complete one") from error


def _copy(name: str, content: IO[bytes]) -> TemporaryContent:
    copy = TemporaryContent(name)
    while part := content.read(PART_BYTES):
        if copy.size + len(part) > COPY_BYTES_MAX:
            raise LogError(name, "a longer file", f"at most {COPY_BYTES_MAX} bytes")
        copy.append(part)
    return copy
