"""The lines of a state-change.log about one partition, as Kafka 3.9's and kframe's controllers write them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec import Struct

from kframe.plugin import InputError

#: Bytes at the end of the file that are searched, and bytes that are read at a time.
_BYTES_MAX: Final = 16 << 20
_BLOCK_BYTES: Final = 1 << 20
#: Most lines of a partition, and characters of a line.
_LINES_MAX: Final = 100
_CHARACTERS_MAX: Final = 1_000
_TIME: Final = re.compile(r"\[(\d{4}-[^\]]{1,40})\] ?")


class StateChangeLine(Struct):
    """A line: its time as the file has it, null if it has none, and the rest."""

    time: str | None
    text: str


@dataclass(frozen=True, slots=True)
class StateChangeLog:
    """The file that a controller appends to. Each call reads it again."""

    path: Path

    def lines(self, topic: str, partition: int) -> list[StateChangeLine]:
        """The newest lines that name the partition, newest first; only the end of a large file is searched.

        Raises InputError if the file cannot be read. It may be missing for a moment while a logger replaces it.
        """
        name = f"{topic}-{partition}".encode()
        # A sentence may end behind a name, and a name may go on behind a period.
        pattern = re.compile(rb"(?<![\w.-])" + re.escape(name) + rb"(?![\w-]|\.[\w-])")
        lines: list[StateChangeLine] = []
        try:
            for line in self._from_the_end(name):
                if pattern.search(line):
                    lines.append(_parse(line))
                    if len(lines) == _LINES_MAX:
                        break
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise InputError(
                str(self.path), problem.strerror or str(problem), "a readable state-change.log"
            ) from problem
        return lines

    def _from_the_end(self, text: bytes) -> Iterator[bytes]:
        """The lines of all blocks that contain ``text``, last line first. A line longer than a block is cut."""
        with self.path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            first, partial = max(end - _BYTES_MAX, 0), b""
            while end > first:
                begin = max(end - _BLOCK_BYTES, first)
                file.seek(begin)
                block = file.read(end - begin) + partial
                partial, _, complete = block.partition(b"\n")
                partial = partial[:_BLOCK_BYTES]
                if text in complete:
                    yield from reversed(complete.split(b"\n"))
                end = begin
            if first == 0:
                yield partial


def _parse(line: bytes) -> StateChangeLine:
    text = line.decode(errors="replace").strip()
    time = _TIME.match(text)
    rest = text if time is None else text[time.end() :]
    return StateChangeLine(None if time is None else time[1], rest[:_CHARACTERS_MAX])
