"""Read a JSON document whose entries are in one long list: the entries in blocks, the rest as a small document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

#: Most bytes before the list, after it, or of an entry.
_BYTES_MAX: Final = 1 << 20


def read_outline(blocks: Iterable[bytes], key: str, take: Callable[[bytes], tuple[int, bool]]) -> bytes | None:
    """The document with an empty list for the top-level key ``key``.

    ``take`` reads entries from the start of a text. It returns the offset after them, and whether the list ends there.
    None if the document has no such list, or ``take`` does not read all its entries. The outline is the caller's to
    decode.
    """
    pattern = re.compile(rb'"%b"[ \t\r\n]*:[ \t\r\n]*\[' % key.encode())
    prefix, rest, ended = b"", b"", False
    for block in blocks:
        rest += block
        if not prefix and (match := pattern.search(rest)):
            prefix, rest = rest[: match.end()], rest[match.end() :]
        if prefix and not ended:
            end, ended = take(rest)
            rest = rest[end:]
        if len(rest) > _BYTES_MAX + (0 if ended else len(block)):
            return None
    return prefix + rest if ended and _is_outline(prefix, rest, key.encode()) else None


def _is_outline(prefix: bytes, suffix: bytes, key: bytes) -> bool:
    """Whether the list is a member of the document itself, and no later member replaces it."""
    if key in suffix or b"\\" in suffix:
        return False
    try:
        msgspec.json.decode(prefix + b"]}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
