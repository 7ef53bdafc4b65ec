"""Kernels and reference implementations give the same results for valid and malformed input."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kframe_zookeeper.kernels import _jute_read, _jute_write
from kframe_zookeeper.znodes.topics import encode_state

from kframe.model.arrays import Ragged
from verification.reference import jute as reference_jute

pytestmark = pytest.mark.kernel

INT32 = st.integers(-(2**31), 2**31 - 1)
HEADER, STAT = reference_jute.HEADER, reference_jute.STAT
END = HEADER.pack(-1, True, -1)
IMPLEMENTATIONS = pytest.mark.parametrize("module", [_jute_write, reference_jute], ids=["kernel", "reference"])


def array(data: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(data, np.uint8)


def columns(data: bytes, spots: list[tuple[int, int]], module: Any) -> dict[str, list[int]]:
    """The result of ``parse_states`` for the JSON at ``spots``, without undefined values."""
    k = len(spots)
    offset, length = np.array([spot[0] for spot in spots], np.int64), np.array([spot[1] for spot in spots], np.int32)
    numbers = [np.zeros(k, np.int32) for _ in range(3)]
    recovery, counts, parsed = np.zeros(k, np.uint8), np.zeros(k, np.int32), np.zeros(k, np.uint8)
    isr = np.zeros(len(data) // 2, np.int32)
    used = module.parse_states(array(data), offset, length, *numbers, recovery, counts, isr, parsed)
    known = parsed != 0
    names = ("leader", "leader_epoch", "controller_epoch")
    fields = {name: column[known].tolist() for name, column in zip(names, numbers, strict=True)}
    return fields | {
        "recovery": recovery[known].tolist(),
        "parsed": parsed.tolist(),
        "counts": counts.tolist(),
        "isr": isr[:used].tolist(),
    }


STATES = st.fixed_dictionaries(
    {
        "controller_epoch": INT32,
        "leader": INT32,
        "version": st.integers(0, 2),
        "leader_epoch": INT32,
        "isr": st.lists(st.integers(-1, 5) | INT32, max_size=6),
    },
    optional={"leader_recovery_state": st.integers(-1, 2), "extra": st.integers(0, 1)},
)


def written(state: dict[str, Any], order: int, spaces: bool, position: int | None, replacement: bytes) -> bytes:
    """JSON of a state, with another order of keys or with a replaced byte if requested."""
    ordered = {key: state[key] for key in sorted(state, key=lambda key: zlib.crc32(f"{order}{key}".encode()))}
    text = json.dumps(ordered, separators=(", ", ": ") if spaces else (",", ":")).encode()
    return text if position is None else text[:position] + replacement + text[position + 1 :]


TEXTS = st.builds(
    written, STATES, st.integers(0, 3), st.booleans(), st.none() | st.integers(0, 200), st.binary(max_size=2)
)


@given(st.lists(TEXTS, max_size=4))
@example([b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'])
@example([b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":0,"isr":[],"leader_recovery_state":1}'])
@example([b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,1]}'])
@example([b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":99999999999,"isr":[1]}'])
@example([b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1],"\nleader_recovery_state":1}'])
@example([b"31", b"null", b'"isr"', b"[[1]]", b"{} {}"])
@example([b'{"controller_epoch":1e2,"leader":1,"version":1,"leader_epoch":01,"isr":[1,]}'])
@example([b'{"controller_epoch":1,"leader":-0,"version":1,"leader_epoch":0,"isr":[1],"isr":[1]}', b"{}", b"", b"["])
def test_kernel_and_reference_parse_states_alike(texts: list[bytes]) -> None:
    data, spots = b"", []
    for text in texts:
        spots.append((len(data), len(text)))
        data += text
    assert columns(data, spots, _jute_read) == columns(data, spots, reference_jute)


@given(TEXTS, st.integers(-5, 300), st.integers(-5, 300))
def test_states_outside_the_response_are_not_parsed(text: bytes, begin: int, length: int) -> None:
    expected = columns(text, [(begin, length)], reference_jute)
    assert columns(text, [(begin, length)], _jute_read) == expected
    assert 0 <= begin <= len(text) - length or expected["parsed"] == [0]


def result(kind: int, text: bytes, number: int) -> bytes:
    """A result of a multi or a multiRead."""
    stat = STAT.pack(number, number + 1, 0, 0, number % 1000, 0, 0, number + 2, 0, 0, 0)
    body = {
        -1: struct.pack(">i", -abs(number) % 200),
        1: struct.pack(">i", len(text)) + text,
        2: b"",
        5: stat,
        13: b"",
        4: struct.pack(">i", len(text) if number % 3 else -1) + (text if number % 3 else b"") + stat,
        8: struct.pack(">ii", 2, len(text)) + text + struct.pack(">i", 0),
    }
    return HEADER.pack(kind, False, 0) + body[kind]


RESULTS = st.lists(
    st.tuples(st.sampled_from([-1, 1, 2, 4, 5, 8, 13]), st.binary(max_size=9), st.integers(0, 2**31 - 1)), max_size=5
)
DAMAGE = st.none() | st.tuples(st.integers(0, 400), st.binary(max_size=5))


def encoded_response(results: list[tuple[int, bytes, int]], damage: tuple[int, bytes] | None) -> bytes:
    data = b"".join(result(*fields) for fields in results) + END
    return data if damage is None else data[: damage[0]] + damage[1] + data[damage[0] + len(damage[1]) + 1 :]


@given(RESULTS, DAMAGE, st.integers(0, 6), st.integers(-1, 30))
def test_kernel_and_reference_split_reads_alike(
    results: list[tuple[int, bytes, int]], damage: tuple[int, bytes] | None, room: int, start: int
) -> None:
    data = bytes(max(start, 0)) + encoded_response(results, damage)
    outcomes = []
    for module in (_jute_read, reference_jute):
        out = [np.zeros(room, kind) for kind in (np.int32, np.int64, np.int32, np.int32, *[np.int64] * 3)]
        count = module.split_reads(array(data), start, *out)
        outcomes.append((count, [column[: max(count, 0)].tolist() for column in out]))
    assert outcomes[0] == outcomes[1]


@given(RESULTS, DAMAGE, st.integers(0, 6), st.integers(-1, 30))
def test_kernel_and_reference_split_results_alike(
    results: list[tuple[int, bytes, int]], damage: tuple[int, bytes] | None, room: int, start: int
) -> None:
    data = bytes(max(start, 0)) + encoded_response(results, damage)
    outcomes = []
    for module in (_jute_read, reference_jute):
        out = [np.zeros(room, kind) for kind in (np.int32, np.int32)]
        count = module.split_results(array(data), start, *out)
        outcomes.append((count, [column[: max(count, 0)].tolist() for column in out]))
    assert outcomes[0] == outcomes[1]


ROWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.integers(0, 2**31 - 1),
        INT32,
        INT32,
        st.integers(0, 1),
        st.lists(INT32, max_size=4),
        st.integers(-1, 9),
        st.integers(0, 1),
    ),
    max_size=4,
)
NAME_OFFSETS, NAMES = np.array([0, 1, 1, 8], np.int32), array(b"tz.-\xc3\xa4_9")


@given(ROWS, INT32, st.integers(0, 1500))
def test_kernel_and_reference_write_operations_alike(
    rows: list[tuple[Any, ...]], controller_epoch: int, room: int
) -> None:
    topic, partition, leader, leader_epoch, expected = (
        np.array([row[i] for row in rows], np.int32) for i in (0, 1, 2, 3, 6)
    )
    recovery, parent = (np.array([row[i] for row in rows], np.uint8) for i in (4, 7))
    isr = Ragged.of([row[5] for row in rows])
    outcomes = []
    for module in (_jute_write, reference_jute):
        out, row_offsets = np.zeros(room, np.uint8), np.zeros(len(rows) + 1, np.int64)
        written = module.write_states(
            topic,
            partition,
            NAME_OFFSETS,
            NAMES,
            array(b"/root/"),
            array(b"ACL"),
            leader,
            leader_epoch,
            recovery,
            isr.offsets,
            isr.values,
            expected,
            parent,
            controller_epoch,
            row_offsets,
            out,
        )
        reads = np.zeros(room, np.uint8)
        read = module.write_reads(topic, partition, NAME_OFFSETS, NAMES, array(b"/root/"), reads)
        outcomes.append(
            (
                written,
                read,
                row_offsets.tolist() if written >= 0 else None,
                out.tobytes() if written >= 0 else None,
                reads.tobytes() if read >= 0 else None,
            )
        )
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "recovery, expected",
    [
        (0, b'{"controller_epoch":2,"leader":1,"version":1,"leader_epoch":3,"isr":[1]}'),
        (1, b'{"controller_epoch":2,"leader":1,"version":1,"leader_recovery_state":1,"leader_epoch":3,"isr":[1]}'),
    ],
)
@IMPLEMENTATIONS
def test_state_is_written_in_kafkas_bytes(module: Any, recovery: int, expected: bytes) -> None:
    """The expected bytes come from Kafka 3.9.1's ``TopicPartitionStateZNode.encode``."""
    ones, out = np.array([1], np.int32), np.zeros(400, np.uint8)
    isr = Ragged.of([[1]])
    written = module.write_states(
        ones,
        ones,
        NAME_OFFSETS,
        NAMES,
        array(b"/root/"),
        array(b"ACL"),
        ones,
        ones * 3,
        np.array([recovery], np.uint8),
        isr.offsets,
        isr.values,
        ones,
        np.zeros(1, np.uint8),
        2,
        np.zeros(2, np.int64),
        out,
    )
    assert struct.pack(">i", len(expected)) + expected in out[:written].tobytes()
    assert encode_state(1, 3, [1], 2, recovery) == expected


@IMPLEMENTATIONS
def test_read_request_has_zookeepers_layout(module: Any) -> None:
    out = np.zeros(200, np.uint8)
    written = module.write_reads(
        np.array([2], np.int32), np.array([40], np.int32), NAME_OFFSETS, NAMES, array(b"/brokers/topics/"), out
    )
    path = "/brokers/topics/z.-ä_9/partitions/40/state".encode()
    assert out[:written].tobytes() == HEADER.pack(4, False, -1) + struct.pack(">i", len(path)) + path + b"\0"
