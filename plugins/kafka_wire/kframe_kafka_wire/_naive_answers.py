"""Reference implementation of the kernel in ``_answers.pyx`` in plain Python, for tests. It has the same signature."""

from __future__ import annotations

from kframe.plugin.columns import Int32


def scan_answer(reply: bytes, at: int, flexible: bool, grouped: bool, most: int, errors: Int32, counts: Int32) -> int:
    """The end of the answer, or -1 if it is malformed. See ``_answers.pyx``."""
    try:
        return _scan(reply, at, flexible, grouped, most, errors, counts)
    except (IndexError, ValueError):
        return -1


def _scan(reply: bytes, at: int, flexible: bool, grouped: bool, most: int, errors: Int32, counts: Int32) -> int:
    topics, at = _count(reply, at, flexible)
    answered = in_error = 0
    for _ in range(topics):
        topic, length = at, 16
        if not grouped:
            length, topic = _length(reply, at, flexible)
        at = topic + length
        partitions, at = _count(reply, at, flexible) if grouped else (1, at)
        for _ in range(partitions):
            index, error = _int(reply, at, 4), _int(reply, at + 4, 2)
            at = _end(reply, at + 6, flexible)
            answered += 1
            if answered > most:
                raise ValueError("more partitions than were asked for")
            if error:
                errors[in_error] = topic, length, index, error
                in_error += 1
        at = _end(reply, at, grouped)
    at = _end(reply, at, flexible)
    if at != len(reply):
        raise ValueError("more or less than an answer")
    counts[:] = answered, in_error
    return at


def _int(reply: bytes, at: int, size: int) -> int:
    if at + size > len(reply):
        raise IndexError(at)
    return int.from_bytes(reply[at : at + size], "big", signed=True)


def _varint(reply: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35:
        value |= (reply[at] & 0x7F) << shift
        if reply[at] < 0x80:
            return value, at + 1
        at, shift = at + 1, shift + 7
    raise ValueError("a varint of more than five bytes")


def _count(reply: bytes, at: int, flexible: bool) -> tuple[int, int]:
    """The length of an array, 0 if it is null, and the offset of its first element."""
    count, at = _varint(reply, at) if flexible else (_int(reply, at, 4) + 1, at + 4)
    if not 0 <= count <= len(reply) + 1:
        raise ValueError("more elements than bytes")
    return max(count - 1, 0), at


def _length(reply: bytes, at: int, flexible: bool) -> tuple[int, int]:
    length, at = _varint(reply, at) if flexible else (_int(reply, at, 2) + 1, at + 2)
    if length < 1 or at + length - 1 > len(reply):
        raise ValueError("a name that breaks off")
    return length - 1, at


def _end(reply: bytes, at: int, flexible: bool) -> int:
    """The offset behind the tagged fields of a struct. Answers to control requests have none."""
    if flexible and reply[at] != 0:
        raise ValueError("tagged fields")
    return at + flexible
