"""Reference kernels of ``_assignments.pyx``."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kframe.model.arrays import Int32

__all__ = ["read_assignments"]

SPACE: Final = r"[ \t\r\n]*"
INTEGER: Final = r"(?:0|[1-9][0-9]{0,9})"
STRING: Final = r'"[ !#-\[\]-~]*"'
_INTEGERS, _ANY = (rf"\[{SPACE}(?:{item}{SPACE}(?:,{SPACE}{item}{SPACE})*)?\]" for item in (INTEGER, '"any"'))
_FORMS: Final = {"topic": r'"[a-zA-Z0-9._-]*"', "partition": INTEGER, "replicas": _INTEGERS, "log_dirs": _ANY}
_MEMBER: Final = "(?:" + "|".join(f'"{key}"{SPACE}:{SPACE}{form}' for key, form in _FORMS.items()) + ")"
_ENTRY: Final = re.compile(
    rf"{SPACE}(\{{{SPACE}{_MEMBER}{SPACE}(?:,{SPACE}{_MEMBER}{SPACE})*\}}){SPACE}([,\]])".encode()
)
_TOPIC: Final = re.compile(rf'"topic"{SPACE}:{SPACE}"([^"]*)"'.encode())


def read_assignments(
    text: bytes,
    start: int,
    topics: Int32,
    partition: Int32,
    counts: Int32,
    log_dirs: Int32,
    values: Int32,
    result: Int32,
) -> int:
    """Each entry by a regular expression and Python's decoder."""
    rows = names = used = ended = 0
    name: str | None = None
    while rows < len(partition) and names < len(topics) and not ended:
        match = _ENTRY.match(text, start)
        entry = None if match is None else _decoded(match[1])
        if match is None or entry is None or used + len(entry["replicas"]) > len(values):
            break
        ended = int(match[2] == b"]")
        start = match.end() - ended
        if entry["topic"] != name or not names:
            topic = _TOPIC.search(text, match.start(1))
            assert topic is not None
            topics[names] = *topic.span(1), rows
            name, names = entry["topic"], names + 1
        partition[rows], counts[rows] = entry["partition"], len(entry["replicas"])
        log_dirs[rows] = len(entry["log_dirs"]) if "log_dirs" in entry else -1
        values[used : used + len(entry["replicas"])] = entry["replicas"]
        used += len(entry["replicas"])
        rows += 1
    result[:] = names, rows, ended
    return start


def _decoded(raw: bytes) -> dict[str, Any] | None:
    """The entry; None if a key is missing or twice, or a number is no int32."""
    pairs: list[tuple[str, Any]] = json.loads(raw, object_pairs_hook=list)
    entry = dict(pairs)
    if len(entry) < len(pairs) or not {"topic", "partition", "replicas"} <= entry.keys():
        return None
    return entry if all(number < 2**31 for number in (entry["partition"], *entry["replicas"])) else None
