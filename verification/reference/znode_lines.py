"""Reference kernels of ``_znode_lines.pyx``."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from kframe.model.arrays import Int32
from verification.reference.assignments import INTEGER, STRING

__all__ = ["read_znode_lines"]

_S: Final = r"[ \t\r]*"
_PATH: Final = re.compile(
    r"/brokers/topics/([a-zA-Z0-9._-]+)(?:(/partitions)(?:/(0|[1-9][0-9]{0,9})(/state)?)?)?", re.ASCII
)
_INTEGERS: Final = rf"\[ *(?:{INTEGER} *(?:, *{INTEGER} *)*)?\]"
_STATE_FIELD: Final = rf'(?:\\"isr\\" *: *{_INTEGERS}|\\"leader\\" *: *-1|\\"(?!isr\\)[a-z_]+\\" *: *{INTEGER})'
_PARTITION: Final = rf'\\"{INTEGER}\\" *: *{_INTEGERS} *'
_TOPIC_FIELD: Final = (
    rf'(?:\\"partitions\\" *: *\{{ *(?:{_PARTITION}(?:, *{_PARTITION})*)?\}}|\\"version\\" *: *{INTEGER}'
    rf'|\\"topic_id\\" *: *\\"[a-zA-Z0-9_-]{{22}}\\"|\\"(?:adding|removing)_replicas\\" *: *\{{ *\}})'
)
_STATE, _TOPIC = (rf'" *\{{ *{field} *(?:, *{field} *)*\}} *"' for field in (_STATE_FIELD, _TOPIC_FIELD))
_NUMBER: Final = r"(?:0|[1-9][0-9]{0,17})"
_VALUE: Final = rf"(?:null|true|false|{_NUMBER})"
_MEMBER: Final = (
    rf'(?:"path"{_S}:{_S}{STRING}|"data"{_S}:{_S}(?:null|{_STATE}|{_TOPIC})|"version"{_S}:{_S}{INTEGER}'
    rf'|(?!"(?:path|data|version)"{_S}:){STRING}{_S}:{_S}{_VALUE})'
)
_LINE: Final = re.compile(rf"{_S}\{{{_S}{_MEMBER}{_S}(?:,{_S}{_MEMBER}{_S})*\}}{_S}\n".encode())
_NAME_PREFIX: Final = re.compile(rf'"path"{_S}:{_S}"/brokers/topics/'.encode())
_ID_PREFIX: Final = re.compile(rb'\\"topic_id\\" *: *\\"')
_NUMBERS: Final = ("leader", "leader_epoch", "controller_epoch", "leader_recovery_state")
_OTHER, _TOPIC_GROUP, _STATES = range(3)


class _DumpLine(NamedTuple):
    topic: str
    partition: int
    version: int
    state: dict[str, Any] | None
    assignment: dict[str, list[int]] | None


def read_znode_lines(
    text: bytes,
    start: int,
    max_line_bytes: int,
    groups: Int32,
    assigned: Int32,
    replicas: Int32,
    line: Int32,
    numbers: Int32,
    counts: Int32,
    values: Int32,
    result: Int32,
) -> int:
    """Each line by a regular expression and Python's decoder."""
    lines = group_count = rows = used = partitions = replica_count = 0
    topic_of_states = b""
    while rows < len(line) and group_count < len(groups):
        end = text.find(b"\n", start) + 1
        if not 0 < end - start <= max_line_bytes:
            break
        znode = _znode(text[start:end])
        if znode and znode.state and used + len(znode.state["isr"]) > len(values):
            znode = None
        remaining = len(replicas) - replica_count
        if znode and znode.assignment and not _fits(znode.assignment, assigned, partitions, remaining):
            znode = None
        if znode is None and text[start : start + 1] != b"{":
            break
        name = (0, 0)
        if znode is not None:
            name_match = _NAME_PREFIX.search(text, start)
            assert name_match is not None
            name = name_match.end(), name_match.end() + len(znode.topic)
        if znode is None:
            groups[group_count] = _OTHER, lines, start, 0, 0, -1, 0
            group_count, topic_of_states = group_count + 1, b""
        elif znode.assignment is not None:
            id_match = _ID_PREFIX.search(text, start, end)
            topic_id = -1 if id_match is None else id_match.end()
            groups[group_count] = _TOPIC_GROUP, lines, start, *name, topic_id, len(znode.assignment)
            group_count, topic_of_states = group_count + 1, b""
            for partition, brokers in znode.assignment.items():
                assigned[:2, partitions] = int(partition), len(brokers)
                replicas[replica_count : replica_count + len(brokers)] = brokers
                partitions, replica_count = partitions + 1, replica_count + len(brokers)
        elif znode.state is not None:
            if znode.topic.encode() == topic_of_states:
                groups[group_count - 1, 6] += 1
            else:
                groups[group_count] = _STATES, lines, start, *name, -1, 1
                group_count, topic_of_states = group_count + 1, znode.topic.encode()
            line[rows], counts[rows] = lines, len(znode.state["isr"])
            numbers[:, rows] = [znode.partition, znode.version, *(znode.state.get(key, 0) for key in _NUMBERS)]
            values[used : used + len(znode.state["isr"])] = znode.state["isr"]
            used += len(znode.state["isr"])
            rows += 1
        lines, start = lines + 1, end
    result[:] = lines, group_count, partitions, rows
    return start


def _fits(assignment: dict[str, list[int]], assigned: Int32, partitions: int, replicas: int) -> bool:
    width = assigned.shape[1]
    return (
        partitions + len(assignment) <= width
        and all(int(partition) < width for partition in assignment)
        and sum(map(len, assignment.values())) <= replicas
    )


def _znode(raw: bytes) -> _DumpLine | None:
    """The line; None for a line of another form."""
    if not _LINE.fullmatch(raw):
        return None
    pairs: list[tuple[str, Any]] = json.loads(raw, object_pairs_hook=list)
    znode = dict(pairs)
    known = [key for key, _ in pairs if key in ("path", "data", "version", "czxid")]
    path = _PATH.fullmatch(znode["path"]) if sorted(known) == ["czxid", "data", "path", "version"] else None
    if (
        path is None
        or isinstance(znode["czxid"], bool | None)
        or znode["version"] >= 2**31
        or int(path[3] or 0) >= 2**31
    ):
        return None
    line = _DumpLine(path[1], int(path[3] or 0), znode["version"], None, None)
    if path[4] or not path[2]:
        content: list[tuple[str, Any]] | None = json.loads(znode["data"] or "null", object_pairs_hook=list)
        if content is None or len(dict(content)) < len(content):
            return None
        if path[4]:
            line = line._replace(state=_state(dict(content)))
        elif known.index("path") < known.index("data"):
            line = line._replace(assignment=_assignment(dict(content)))
        return line if line.state or line.assignment is not None else None
    return line if znode["data"] is None else None


def _state(state: dict[str, Any]) -> dict[str, Any] | None:
    known = {*_NUMBERS, "version", "isr"}
    required = known - {"version", "leader_recovery_state"}
    if not required <= state.keys() <= known:
        return None
    numbers = [*state["isr"], *(state[key] for key in state.keys() - {"isr"})]
    fits = all(number < 2**31 for number in numbers) and state.get("leader_recovery_state", 0) < 2
    return state if fits else None


def _assignment(topic: dict[str, Any]) -> dict[str, list[int]] | None:
    """The replicas by partition."""
    if "partitions" not in topic or topic.get("version", 0) >= 2**31:
        return None
    pairs: list[tuple[str, list[int]]] = topic["partitions"]
    assignment = dict(pairs)
    brokers = (broker for replicas in assignment.values() for broker in replicas)
    return assignment if len(assignment) == len(pairs) and all(broker < 2**31 for broker in brokers) else None
