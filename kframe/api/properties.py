"""Java's ``.properties`` files, as Kafka reads its own ``server.properties`` (``java.util.Properties.load``)."""

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
_UNICODE: Final = re.compile(r"[0-9a-fA-F]{4}")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Property:
    """One key with its value, both as text, and the line of the file on which it begins."""

    key: str
    value: str
    line: int


def read_properties(path: Path) -> list[Property]:
    """All properties of a file in order, those given twice included. Raises ConfigError."""
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
    """Lines with their numbers, without comments and blank ones; a line that ends in a backslash goes on in the next,
    whose blanks at the front do not count."""
    begun, first = None, 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        part = line.lstrip(_BLANKS)
        if begun is None and (not part or part[0] in "#!"):
            continue
        if begun is None:
            begun, first = "", number
        goes_on = (len(part) - len(part.rstrip("\\"))) % 2 == 1
        begun += part[:-1] if goes_on else part
        if not goes_on:
            yield first, begun
            begun = None
    if begun is not None:
        yield first, begun


def _split(text: str, where: str) -> tuple[str, str]:
    """Key and value: parted by the first blank, ``=`` or ``:`` that is not escaped, and the blanks around it."""
    at = 0
    while at < len(text) and text[at] not in f"{_BLANKS}=:":
        at += 2 if text[at] == "\\" else 1
    rest = text[at:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescaped(text[:at], where), _unescaped(rest, where)


def _unescaped(text: str, where: str) -> str:
    if "\\" not in text:
        return text
    found, at = [], 0
    while at < len(text):
        if text[at] != "\\":
            found.append(text[at])
            at += 1
            continue
        escaped = text[at + 1 : at + 2]
        if escaped != "u":
            found.append(_ESCAPES.get(escaped, escaped))
            at += 2
            continue
        digits = _UNICODE.match(text, at + 2)
        if digits is None:
            raise ConfigError(where, repr(text[at : at + 6]), "four hexadecimal digits after \\u")
        found.append(chr(int(digits[0], 16)))
        at += 6
    return "".join(found)
