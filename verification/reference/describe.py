"""Reference kernels of ``_describe.pyx``."""

from __future__ import annotations

import re
from typing import Final

from kframe.model.arrays import Int32

__all__ = ["read_describe_lines"]

_TOPIC: Final = re.compile(rb"[ \t]*Topic:[ \t]*([a-zA-Z0-9._-]+)[ \t]+")
_HEADER: Final = re.compile(rb"(?:TopicId|PartitionCount):[^\n]*\n")
_LISTS: Final = (b"Replicas", b"Isr", b"Adding Replicas", b"Removing Replicas", b"Elr", b"LastKnownElr", b"Offline")
_LABELS: Final = (*_LISTS, b"Partition", b"Leader")
_FIELD: Final = re.compile(rb"(%b):([ \t]*)(N/A|none|-1|[0-9]+(?:,[0-9]+)*|)([ \t]*)(?=([^ \t]))" % b"|".join(_LABELS))
_END: Final = re.compile(rb"\r?\n")
_NO_ELR: Final = 1 << 9


def read_describe_lines(
    text: bytes,
    start: int,
    max_line_bytes: int,
    topic: bytes,
    headers: Int32,
    line: Int32,
    partition: Int32,
    leader: Int32,
    masks: Int32,
    counts: Int32,
    values: Int32,
    result: Int32,
) -> int:
    """Each line by a regular expression, and its fields by another."""
    lines = topics = rows = 0
    used = [0] * len(_LISTS)
    while rows < len(line) and topics < len(headers):
        begin = _TOPIC.match(text, start)
        if begin is None:
            break
        end = text.find(b"\n", start) + 1
        if end == 0 or end - start > max_line_bytes:
            break
        if header := _HEADER.match(text, begin.end()):
            headers[topics] = start, header.end(), lines, *begin.span(1), rows
            topics, topic, start = topics + 1, begin[1], header.end()
        else:
            fields = _fields(text, begin.end()) if begin[1] == topic else None
            if fields is None:
                break
            entry, start = fields
            lists = [_numbers(entry.get(label, b"")) for label in _LISTS]
            if any(used[k] + len(numbers) > values.shape[1] for k, numbers in enumerate(lists)):
                start = begin.start()
                break
            for k, numbers in enumerate(lists):
                counts[k, rows] = len(numbers)
                values[k, used[k] : used[k] + len(numbers)] = numbers
                used[k] += len(numbers)
            line[rows], partition[rows] = lines, int(entry[b"Partition"])
            leader[rows] = -1 if entry[b"Leader"] == b"none" else int(entry[b"Leader"])
            mask = sum(1 << k for k, label in enumerate(_LABELS) if label in entry)
            masks[rows] = mask | (_NO_ELR if entry.get(b"Elr") == b"N/A" else 0)
            rows += 1
        lines += 1
    result[:] = lines, topics, rows
    return start


def _fields(text: bytes, position: int) -> tuple[dict[bytes, bytes], int] | None:
    """The values of a partition's line by label, and the offset after the line; None for any other line."""
    fields: dict[bytes, bytes] = {}
    while field := _FIELD.match(text, position):
        label, before, value, blanks, following = field.groups()
        is_last = following in (b"\r", b"\n")
        if label in fields or not (is_last or blanks or (before and not value)) or not _is_valid(label, value):
            return None
        fields[label], position = value, field.end()
    end = _END.match(text, position)
    required = {b"Partition", b"Leader", b"Replicas", b"Isr"}
    return (fields, end.end()) if end is not None and required <= fields.keys() else None


def _is_valid(label: bytes, value: bytes) -> bool:
    """Whether the value has the form of the label's, and all numbers fit into an int32."""
    if value == b"N/A":
        return label in _LISTS[2:]
    if value in (b"none", b"-1"):
        return label == b"Leader"
    numbers = value.split(b",") if value else []
    fit = all(len(number) <= 10 and int(number) < 2**31 for number in numbers)
    return fit and (label in _LISTS or len(numbers) == 1)


def _numbers(value: bytes) -> list[int]:
    return [] if value in (b"", b"N/A") else [int(number) for number in value.split(b",")]
