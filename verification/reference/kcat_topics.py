"""Reference kernels of ``_kcat_topics.pyx``."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kframe.model.arrays import Int32
from verification.reference.assignments import INTEGER, SPACE, STRING

__all__ = ["read_kcat_topics"]

_ID: Final = rf'\{{{SPACE}"id"{SPACE}:{SPACE}{INTEGER}{SPACE}\}}{SPACE}'
_IDS: Final = rf"\[{SPACE}(?:{_ID}(?:,{SPACE}{_ID})*)?\]"
_FORMS: Final = {"partition": INTEGER, "leader": f"(?:-1|{INTEGER})", "replicas": _IDS, "isrs": _IDS, "error": STRING}
_MEMBER: Final = "(?:" + "|".join(f'"{key}"{SPACE}:{SPACE}{form}' for key, form in _FORMS.items()) + ")"
_PARTITION: Final = re.compile(
    rf"{SPACE}(\{{{SPACE}{_MEMBER}{SPACE}(?:,{SPACE}{_MEMBER}{SPACE})*\}}){SPACE}([,\]]){SPACE}".encode()
)
_TOPIC: Final = re.compile(
    rf'{SPACE}\{{{SPACE}"topic"{SPACE}:{SPACE}"([a-zA-Z0-9._-]*)"{SPACE},{SPACE}'
    rf'("error"{SPACE}:{SPACE}{STRING}{SPACE},{SPACE})?"partitions"{SPACE}:{SPACE}\[{SPACE}'.encode()
)
_TOPIC_END: Final = re.compile(rf"\]{SPACE}\}}{SPACE}(,{SPACE}|(?=\]))".encode())


def read_kcat_topics(
    text: bytes,
    start: int,
    state: int,
    topics: Int32,
    partition: Int32,
    leader: Int32,
    counts: Int32,
    values: Int32,
    result: Int32,
) -> int:
    """Each topic and each partition by a regular expression and Python's decoder."""
    rows = names = 0
    used = [0, 0]
    while rows < len(partition) and names < len(topics) and state != 2:
        match = (_PARTITION if state else _TOPIC).match(text, start)
        if match is None or (not state and match.end() == len(text)):
            break
        is_last = match[2] == b"]" if state else text[match.end() : match.end() + 1] == b"]"
        end = _TOPIC_END.match(text, match.start(2) if state else match.end()) if is_last else None
        entry = _decoded(match[1]) if state else {}
        lists = [[replica["id"] for replica in entry[key]] for key in ("replicas", "isrs")] if state and entry else []
        full = any(used[k] + len(ids) > values.shape[1] for k, ids in enumerate(lists))
        if (is_last and end is None) or entry is None or full:
            break
        if state:
            partition[rows], leader[rows] = entry["partition"], entry["leader"]
            for k, ids in enumerate(lists):
                counts[k, rows] = len(ids)
                values[k, used[k] : used[k] + len(ids)] = ids
                used[k] += len(ids)
            rows += 1
        else:
            topics[names] = *match.span(1), rows, match[2] is not None
            names += 1
        start = match.end() if end is None else end.end()
        state = 1 if end is None else 0 if end[1] else 2
    result[:] = names, rows, state
    return start


def _decoded(raw: bytes) -> dict[str, Any] | None:
    """The partition; None if a key is missing or twice, or a number is no int32."""
    pairs: list[tuple[str, Any]] = json.loads(raw, object_pairs_hook=list)
    if len({key for key, _ in pairs}) < len(pairs):
        return None
    entry: dict[str, Any] = json.loads(raw)
    if not {"partition", "leader", "replicas", "isrs"} <= entry.keys():
        return None
    ids = [replica["id"] for key in ("replicas", "isrs") for replica in entry[key]]
    return entry if all(number < 2**31 for number in (entry["partition"], entry["leader"], *ids)) else None
