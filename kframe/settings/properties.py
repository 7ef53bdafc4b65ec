"""Java's ``.properties`` files, as Kafka reads its own ``server.properties`` (``java.util.Properties.load``).

The reader is kframe's own, because errors about values name the line of the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.errors import ConfigError

#: Bytes of the largest file that is read.
FILE_BYTES_MAX: Final = 1 << 20

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(?P<character>.?)(?P<code>(?<=u)[0-9a-fA-F]{4})?", re.DOTALL)
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Property:
    """A key with its value, both as text, and the line on which it starts."""

    key: str
    value: str
    line: int


def read_properties(path: Path) -> list[Property]:
    """All properties of a file in order, including repeated keys. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as problem:
        raise ConfigError(str(path), problem.strerror or str(problem), "a file of properties") from problem
    if len(raw) > FILE_BYTES_MAX:
        raise ConfigError(str(path), f"more than {FILE_BYTES_MAX} bytes", f"at most {FILE_BYTES_MAX}")
    return [
        Property(*_split(text, f"{path}:{number}"), number) for number, text in _logical_lines(raw.decode("latin-1"))
    ]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, except comments and blank lines.

    A line that ends with a backslash continues on the next line, without its leading blanks.
    """
    logical, first = None, 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        part = line.lstrip(_BLANKS)
        if logical is None and (not part or part[0] in "#!"):
            continue
        if logical is None:
            logical, first = "", number
        continues = (len(part) - len(part.rstrip("\\"))) % 2 == 1
        logical += part[:-1] if continues else part
        if not continues:
            yield first, logical
            logical = None
    if logical is not None:
        yield first, logical


def _split(text: str, where: str) -> tuple[str, str]:
    """Split key and value at the first unescaped blank, ``=`` or ``:``, and the blanks around it."""
    end = 0
    while end < len(text) and text[end] not in f"{_BLANKS}=:":
        end += 2 if text[end] == "\\" else 1
    rest = text[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescaped(text[:end], where), _unescaped(rest, where)


def _unescaped(text: str, where: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match["character"] != "u":
            return _ESCAPES.get(match["character"], match["character"])
        if match["code"] is None:
            escape = text[match.start() : match.start() + 6]
            raise ConfigError(where, repr(escape), "four hexadecimal digits after \\u")
        return chr(int(match["code"], 16))

    return _ESCAPE.sub(character, text)
