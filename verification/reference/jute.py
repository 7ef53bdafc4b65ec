"""Reference implementation of the ``_jute_*`` and ``_topic_read`` kernels in plain Python.

The names, signatures and results are the same; differential tests compare them. It is far too slow for a large cluster.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from typing import Any, Final

from kframe.plugin.columns import Int32, Int64, UInt8

ERROR, CREATE, DELETE, GET_DATA, SET_DATA, GET_CHILDREN, CHECK = -1, 1, 2, 4, 5, 8, 13
STAT: Final = struct.Struct(">qqqqiiiqiiq")
HEADER: Final = struct.Struct(">i?i")
ISR_MAX: Final = 64
REPLICAS_MAX: Final = 64
TOPIC_VERSION: Final = 3
ZNODE_BYTES_MAX: Final = 4 * 2**20
#: Kafka writes a state with these characters only.
_PLAIN: Final = re.compile(rb'[{}\[\]:," \t\n\r0-9a-z_-]*')
#: The same for a topic, whose id also has capitals.
_PLAIN_TOPIC: Final = re.compile(rb'[{}\[\]:," \t\n\r0-9A-Za-z_-]*')
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_TOPIC_ID: Final = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
_NECESSARY: Final = {"leader", "leader_epoch", "controller_epoch", "isr", "version"}
_ALLOWED: Final = _NECESSARY | {"leader_recovery_state"}


def _buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _path(root: UInt8, names: UInt8, name_offsets: Int32, topic: int, tail: str) -> bytes:
    name = names[name_offsets[topic] : name_offsets[topic + 1]].tobytes()
    return _buffer(root.tobytes() + name + b"/partitions/" + tail.encode())


def _fill(out: UInt8, data: bytes) -> int:
    """Copy ``data`` into ``out``. The end of ``out`` cuts it off."""
    written = min(len(data), len(out))
    out[:written] = list(data[:written])
    return len(data) if len(data) <= len(out) else -1


def write_reads(topic: Int32, partition: Int32, name_offsets: Int32, names: UInt8, root: UInt8, out: UInt8) -> int:
    """Encode a read of the state of each row."""
    operations = [
        HEADER.pack(GET_DATA, False, -1) + _path(root, names, name_offsets, topic_index, f"{number}/state") + b"\0"
        for topic_index, number in zip(topic.tolist(), partition.tolist(), strict=True)
    ]
    return _fill(out, b"".join(operations))


def write_states(
    topic: Int32,
    partition: Int32,
    name_offsets: Int32,
    names: UInt8,
    root: UInt8,
    acl: UInt8,
    leader: Int32,
    leader_epoch: Int32,
    recovery: UInt8,
    isr_offsets: Int32,
    isr: Int32,
    expected: Int32,
    parent: UInt8,
    controller_epoch: int,
    row_offsets: Int64,
    out: UInt8,
) -> int:
    """Encode the write of the state of each row."""
    operations = []
    created = acl.tobytes() + struct.pack(">i", 0)
    row_offsets[0] = 0
    for i in range(len(topic)):
        if parent[i]:
            path = _path(root, names, name_offsets, topic[i], str(partition[i]))
            operations.append(HEADER.pack(CREATE, False, -1) + path + struct.pack(">i", -1) + created)
        state = {
            "controller_epoch": controller_epoch,
            "leader": int(leader[i]),
            "version": 1,
            **({"leader_recovery_state": 1} if recovery[i] else {}),
            "leader_epoch": int(leader_epoch[i]),
            "isr": isr[isr_offsets[i] : isr_offsets[i + 1]].tolist(),
        }
        creating = expected[i] == -1
        operations.append(
            HEADER.pack(CREATE if creating else SET_DATA, False, -1)
            + _path(root, names, name_offsets, topic[i], f"{partition[i]}/state")
            + _buffer(json.dumps(state, separators=(",", ":")).encode())
            + (created if creating else struct.pack(">i", expected[i]))
        )
        row_offsets[i + 1] = min(sum(map(len, operations)), len(out))
    return _fill(out, b"".join(operations))


class _Reader:
    """Cursor in a response. Raises struct.error if the response ends too early."""

    def __init__(self, reply: UInt8, start: int) -> None:
        self.data = reply.tobytes()
        self.offset = start
        if not 0 <= start < len(self.data):
            raise struct.error("the offset is outside the response")

    def take(self, layout: struct.Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self.data, self.offset)
        self.offset += layout.size
        return values

    def take_int32(self) -> int:
        return int(self.take(struct.Struct(">i"))[0])

    def skip_buffer(self) -> int:
        """Return the length of a buffer, 0 for null, and skip the buffer."""
        length = self.take_int32()
        if length > len(self.data) - self.offset:
            raise struct.error("a buffer that ends behind the response")
        self.offset += max(length, 0)
        return length


def split_reads(
    reply: UInt8,
    start: int,
    code: Int32,
    data_offset: Int64,
    data_length: Int32,
    version: Int32,
    czxid: Int64,
    mzxid: Int64,
    owner: Int64,
) -> int:
    """Locate the results of a multiRead."""
    try:
        reader, count = _Reader(reply, start), 0
        while True:
            operation, done, _ = reader.take(HEADER)
            if done:
                return count
            if count == len(code):
                return -1
            code[count], mark, length = 0, reader.offset + 4, -1
            version[count] = czxid[count] = mzxid[count] = owner[count] = -1
            if operation == GET_DATA:
                length = reader.skip_buffer()
                stat = reader.take(STAT)
                czxid[count], mzxid[count], version[count], owner[count] = stat[0], stat[1], stat[4], stat[7]
            elif operation == ERROR:
                code[count] = reader.take_int32()
            elif operation == GET_CHILDREN:
                mark -= 4
                for _ in range(reader.take_int32()):
                    reader.skip_buffer()
                length = reader.offset - mark
            else:
                return -1
            data_offset[count], data_length[count] = mark, length
            count += 1
    except struct.error:
        return -1


def split_results(reply: UInt8, start: int, code: Int32, version: Int32) -> int:
    """Locate the results of a multi."""
    try:
        reader, count = _Reader(reply, start), 0
        while True:
            operation, done, _ = reader.take(HEADER)
            if done:
                return count
            if count == len(code):
                return -1
            code[count] = version[count] = 0
            if operation == SET_DATA:
                stat = reader.take(STAT)
                version[count] = stat[4]
            elif operation == ERROR:
                code[count] = reader.take_int32()
            elif operation == CREATE:
                reader.skip_buffer()
            elif operation not in (CHECK, DELETE):
                return -1
            count += 1
    except struct.error:
        return -1


def parse_states(
    reply: UInt8,
    data_offset: Int64,
    data_length: Int32,
    leader: Int32,
    leader_epoch: Int32,
    controller_epoch: Int32,
    recovery: UInt8,
    isr_count: Int32,
    isr: Int32,
    parsed: UInt8,
) -> int:
    """Parse states."""
    index, whole = 0, reply.tobytes()
    for i, (begin, length) in enumerate(zip(data_offset.tolist(), data_length.tolist(), strict=True)):
        state = _state(whole[begin : begin + length]) if length > 0 and 0 <= begin <= len(whole) - length else None
        parsed[i] = state is not None and index + len(state["isr"]) <= len(isr)
        isr_count[i] = 0
        if state is not None and parsed[i]:
            leader[i], leader_epoch[i] = state["leader"], state["leader_epoch"]
            controller_epoch[i], recovery[i] = state["controller_epoch"], state.get("leader_recovery_state", 0)
            isr_count[i] = len(state["isr"])
            isr[index : index + len(state["isr"])] = state["isr"]
            index += len(state["isr"])
    return index


def _state(data: bytes) -> dict[str, Any] | None:
    """The object in ``data`` if it is a state as Kafka writes it, else None."""
    if not _PLAIN.fullmatch(data):
        return None
    try:
        pairs = json.loads(data, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        return None
    state = dict(pairs)
    numbers = [value for key, value in state.items() if key != "isr"]
    members = state.get("isr")
    if len(state) != len(pairs) or not _NECESSARY <= state.keys() <= _ALLOWED or not isinstance(members, list):
        return None
    if not all(type(value) is int and -(2**31) <= value < 2**31 for value in [*numbers, *members]):
        return None
    epochs = min(state["leader_epoch"], state["controller_epoch"])
    plausible = state["version"] == 1 and state["leader"] >= -1 and epochs >= 0
    is_valid = len(members) == len(set(members)) <= ISR_MAX and all(member >= 0 for member in members)
    return state if plausible and is_valid and state.get("leader_recovery_state", 0) in (0, 1) else None


def parse_topics(
    reply: UInt8,
    data_offset: Int64,
    data_length: Int32,
    entries: Int32,
    values: Int32,
    partitions: Int32,
    topic_id: UInt8,
    replica_count: Int32,
    duplicates: UInt8,
    replicas: Int32,
    parsed: UInt8,
) -> int:
    """Parse topics. Only the sizes of ``entries`` and ``values`` are used."""
    row, index, whole = 0, 0, reply.tobytes()
    for i, (begin, length) in enumerate(zip(data_offset.tolist(), data_length.tolist(), strict=True)):
        parsed[i] = partitions[i] = 0
        inside = 0 < length <= ZNODE_BYTES_MAX and 0 <= begin <= len(whole) - length
        topic = _topic(whole[begin : begin + length]) if inside else None
        if topic is None or len(topic[1]) >= entries.shape[1] or sum(map(len, topic[1])) > len(values):
            continue
        lists = [list(dict.fromkeys(members)) for members in topic[1]]
        last, end = row + len(lists), index + sum(map(len, lists))
        if last > min(len(replica_count), len(duplicates)) or end > len(replicas):
            continue
        parsed[i], partitions[i], topic_id[i] = 1, len(lists), list(topic[0])
        replica_count[row:last] = [len(members) for members in lists]
        duplicates[row:last] = [len(members) < len(stored) for members, stored in zip(lists, topic[1], strict=True)]
        replicas[index:end] = [replica for members in lists for replica in members]
        row, index = last, end
    return index


def _topic(data: bytes) -> tuple[bytes, list[list[int]]] | None:
    """Id and assignment in ``data`` if it is a topic as Kafka writes it without a reassignment, else None."""
    if not _PLAIN_TOPIC.fullmatch(data):
        return None
    try:
        pairs = json.loads(data, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        return None
    if not isinstance(pairs, tuple):
        return None
    fields = dict(pairs)
    moving = [fields.pop(name, ()) for name in ("adding_replicas", "removing_replicas")]
    version, assigned, text = (fields.pop(name, None) for name in ("version", "partitions", "topic_id"))
    is_valid = type(version) is int and version == TOPIC_VERSION and moving == [(), ()] and isinstance(assigned, tuple)
    if not is_valid or fields or len(dict(pairs)) != len(pairs):
        return None
    id_ = bytes(16)
    if text is not None or "topic_id" in dict(pairs):
        if not isinstance(text, str) or not _TOPIC_ID.fullmatch(text):
            return None
        id_ = base64.urlsafe_b64decode(text + "==")
        if id_ == bytes(16):
            return None
    numbers = [int(name) if _NUMBER.fullmatch(name) else -1 for name, _ in assigned]
    if sorted(numbers) != list(range(len(numbers))):
        return None
    lists = dict(zip(numbers, (replicas for _, replicas in assigned), strict=True))
    ordered = [lists[number] for number in range(len(numbers))]
    if not all(isinstance(replicas, list) and 0 < len(replicas) <= REPLICAS_MAX for replicas in ordered):
        return None
    if not all(type(broker) is int and -(2**31) <= broker < 2**31 for replicas in ordered for broker in replicas):
        return None
    return id_, ordered
