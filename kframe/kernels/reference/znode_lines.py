"""Reference twins of ``_znode_lines.pyx``."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from kframe.kernels.reference.assignments import INTEGER, STRING
from kframe.model.columns import Int32

__all__ = ["read_znode_lines"]

_S: Final = r"[ \t\r]*"
_PATH: Final = re.compile(
    r"/brokers/topics/([a-zA-Z0-9._-]+)/partitions(?:/(0|[1-9][0-9]{0,9})(/state)?)?", re.ASCII
)  # fmt: skip
_INTEGERS: Final = rf"\[ *(?:{INTEGER} *(?:, *{INTEGER} *)*)?\]"
_FIELD: Final = rf'(?:\\"isr\\" *: *{_INTEGERS}|\\"leader\\" *: *-1|\\"(?!isr\\)[a-z_]+\\" *: *{INTEGER})'
_STATE: Final = rf'"(?:\{{ *{_FIELD} *(?:, *{_FIELD} *)*\}} *)"'
_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})"
_VALUE: Final = rf"(?:null|true|false|{_NUMBER})"
_MEMBER: Final = (
    rf'(?:"path"{_S}:{_S}{STRING}|"data"{_S}:{_S}(?:null|{_STATE})|"version"{_S}:{_S}{INTEGER}'
    rf'|(?!"(?:path|data|version)"{_S}:){STRING}{_S}:{_S}{_VALUE})'
)
_LINE: Final = re.compile(rf"{_S}\{{{_S}{_MEMBER}{_S}(?:,{_S}{_MEMBER}{_S})*\}}{_S}\n".encode())
_NUMBERS: Final = ("leader", "leader_epoch", "controller_epoch", "leader_recovery_state")


def read_znode_lines(
    text: bytes, start: int, longest: int, topics: Int32, line: Int32, numbers: Int32, counts: Int32, values: Int32,
    result: Int32,
) -> int:  # fmt: skip
    """Each line by a regular expression and Python's decoder."""
    lines = names = rows = used = 0
    name = b""
    while rows < len(line) and names < len(topics):
        match = _LINE.match(text, start)
        if match is None or match.end() - start > longest:
            break
        znode = _znode(match[0])
        if znode is None or (znode[2] is not None and used + len(znode[2]["isr"]) > len(values)):
            break
        path, version, state = znode
        if state is not None:
            topic = path[1].encode()
            if topic != name:
                first = text.index(b"/brokers/topics/" + topic, start) + len("/brokers/topics/")
                topics[names] = first, first + len(topic), rows
                names, name = names + 1, topic
            line[rows], counts[rows] = lines, len(state["isr"])
            numbers[:, rows] = [int(path[2]), version, *(state.get(key, 0) for key in _NUMBERS)]
            values[used : used + len(state["isr"])] = state["isr"]
            used += len(state["isr"])
            rows += 1
        lines, start = lines + 1, match.end()
    result[:] = lines, names, rows
    return start


def _znode(raw: bytes) -> tuple[re.Match[str], int, dict[str, Any] | None] | None:
    """The path, the version and the state of a line; None for a line of another form."""
    pairs: list[tuple[str, Any]] = json.loads(raw, object_pairs_hook=list)
    znode = dict(pairs)
    known = [key for key, _ in pairs if key in ("path", "data", "version", "czxid")]
    path = _PATH.fullmatch(znode["path"]) if sorted(known) == ["czxid", "data", "path", "version"] else None
    if (
        path is None
        or isinstance(znode["czxid"], bool | None)
        or znode["version"] >= 2**31
        or int(path[2] or 0) >= 2**31
    ):
        return None
    if (path[3] is None) != (znode["data"] is None):
        return None
    state = None if znode["data"] is None else _state(znode["data"])
    return None if state is None and znode["data"] is not None else (path, znode["version"], state)


def _state(data: str) -> dict[str, Any] | None:
    pairs: list[tuple[str, Any]] = json.loads(data, object_pairs_hook=list)
    state = dict(pairs)
    known = {*_NUMBERS, "version", "isr"}
    required = known - {"version", "leader_recovery_state"}
    if len(state) < len(pairs) or not required <= state.keys() <= known:
        return None
    numbers = [*state["isr"], *(state[key] for key in state.keys() - {"isr"})]
    fits = all(number < 2**31 for number in numbers) and state.get("leader_recovery_state", 0) < 2
    return state if fits else None
