"""Reference implementation of the kernel in ``_responses.pyx``, for tests, with the same signature."""

from __future__ import annotations

from kframe.plugin.columns import Int32


def scan_response(
    reply: bytes, offset: int, flexible: bool, by_topic_id: bool, max_partitions: int, errors: Int32, counts: Int32
) -> int:
    """The end of the response, or -1 if it is malformed. See ``_responses.pyx``."""
    try:
        return _scan(reply, offset, flexible, by_topic_id, max_partitions, errors, counts)
    except (IndexError, ValueError):
        return -1


def _scan(
    reply: bytes, offset: int, flexible: bool, by_topic_id: bool, max_partitions: int, errors: Int32, counts: Int32
) -> int:
    topics, offset = _read_count(reply, offset, flexible)
    partition_count = error_count = 0
    for _ in range(topics):
        topic, length = offset, 16
        if not by_topic_id:
            length, topic = _read_name_length(reply, offset, flexible)
        offset = topic + length
        partitions, offset = _read_count(reply, offset, flexible) if by_topic_id else (1, offset)
        for _ in range(partitions):
            index, error = _read_number(reply, offset, 4), _read_number(reply, offset + 4, 2)
            offset = _skip_end(reply, offset + 6, flexible)
            partition_count += 1
            if partition_count > max_partitions:
                raise ValueError("more partitions than requested")
            if error:
                errors[error_count] = topic, length, index, error
                error_count += 1
        offset = _skip_end(reply, offset, by_topic_id)
    offset = _skip_end(reply, offset, flexible)
    if offset != len(reply):
        raise ValueError("trailing bytes")
    counts[:] = partition_count, error_count
    return offset


def _read_number(reply: bytes, offset: int, size: int) -> int:
    if offset + size > len(reply):
        raise IndexError(offset)
    return int.from_bytes(reply[offset : offset + size], "big", signed=True)


def _read_varint(reply: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 35:
        value |= (reply[offset] & 0x7F) << shift
        if reply[offset] < 0x80:
            return value, offset + 1
        offset, shift = offset + 1, shift + 7
    raise ValueError("a varint of more than five bytes")


def _read_count(reply: bytes, offset: int, flexible: bool) -> tuple[int, int]:
    """The length of an array, 0 if it is null, and the offset of its first element."""
    count, offset = _read_varint(reply, offset) if flexible else (_read_number(reply, offset, 4) + 1, offset + 4)
    if not 0 <= count <= len(reply) + 1:
        raise ValueError("more elements than bytes")
    return max(count - 1, 0), offset


def _read_name_length(reply: bytes, offset: int, flexible: bool) -> tuple[int, int]:
    length, offset = _read_varint(reply, offset) if flexible else (_read_number(reply, offset, 2) + 1, offset + 2)
    if length < 1 or offset + length - 1 > len(reply):
        raise ValueError("a truncated name")
    return length - 1, offset


def _skip_end(reply: bytes, offset: int, flexible: bool) -> int:
    """The offset after the tagged fields of a struct. Responses to control requests have none."""
    if flexible and reply[offset] != 0:
        raise ValueError("tagged fields")
    return offset + flexible
