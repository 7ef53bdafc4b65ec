"""The kernels of JSON documents equal their references on any text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from tests.snapshot.corrupted import corrupted, dumps, reassignments, responses
from verification import reference

pytestmark = pytest.mark.kernel

ROWS, VALUES = st.integers(0, 5), st.integers(0, 9)


def positions(text: bytes, pieces: tuple[bytes, ...]) -> st.SearchStrategy[int]:
    """Offsets where entries may begin, and any others."""
    starts = [text.index(piece) + len(piece) for piece in pieces if piece in text]
    return st.sampled_from([0, *starts, *starts]) | st.integers(0, len(text))


def read_assignments(module: Any, text: bytes, start: int, rows: int, values: int) -> Any:
    topics, columns = np.zeros((2, 3), np.int32), np.zeros((3, rows), np.int32)
    entries, result = np.zeros(values, np.int32), np.zeros(3, np.int32)
    end = module.read_assignments(text, start, topics, *columns, entries, result)
    names, count, ended = result.tolist()
    used = columns[1, :count].sum()
    return end, ended, topics[:names].tolist(), columns[:, :count].tolist(), entries[:used].tolist()


def read_topics(module: Any, text: bytes, start: int, rows: int, values: int, state: int) -> Any:
    topics, columns, counts = (np.zeros((size, width), np.int32) for size, width in ((2, 4), (2, rows), (2, rows)))
    entries, result = np.zeros((2, values), np.int32), np.zeros(3, np.int32)
    end = module.read_kcat_topics(text, start, state, topics, *columns, counts, entries, result)
    names, count, new_state = result.tolist()
    used = counts[:, :count].sum(axis=1).tolist()
    lists = [entries[k, :size].tolist() for k, size in enumerate(used)]
    return end, new_state, topics[:names].tolist(), columns[:, :count].tolist(), counts[:, :count].tolist(), lists


@given(text=corrupted(reassignments()), data=st.data(), rows=ROWS, values=VALUES)
def test_assignment_reader_equals_reference(text: bytes, data: st.DataObject, rows: int, values: int) -> None:
    start = data.draw(positions(text, (b"[", b"}", b"},")))
    arguments = (text, start, rows, values)
    assert read_assignments(kernels, *arguments) == read_assignments(reference, *arguments)


@given(text=corrupted(responses()), data=st.data(), rows=ROWS, values=VALUES, state=st.integers(0, 1))
def test_kcat_reader_equals_reference(text: bytes, data: st.DataObject, rows: int, values: int, state: int) -> None:
    pieces = (b'"topics": [', b'"topics":[') if state == 0 else (b'"partitions": [', b'"partitions":[')
    start = data.draw(positions(text, pieces))
    arguments = (text, start, rows, values, state)
    assert read_topics(kernels, *arguments) == read_topics(reference, *arguments)


def read_znodes(module: Any, text: bytes, start: int, max_line_bytes: int, rows: int, values: int) -> Any:
    groups, assigned, replicas = (np.zeros(shape, np.int32) for shape in ((6, 7), (3, rows), values))
    line, numbers = np.zeros(rows, np.int32), np.zeros((6, rows), np.int32)
    counts, entries, result = np.zeros(rows, np.int32), np.zeros(values, np.int32), np.zeros(4, np.int32)
    end = module.read_znode_lines(
        text, start, max_line_bytes, groups, assigned, replicas, line, numbers, counts, entries, result
    )
    lines, group_count, partitions, count = result.tolist()
    replica_count, used = assigned[1, :partitions].sum(), counts[:count].sum()
    columns = (
        groups[:group_count],
        assigned[:2, :partitions],
        replicas[:replica_count],
        line[:count],
        numbers[:, :count],
        counts[:count],
        entries[:used],
        assigned[2],
    )
    return end, lines, [column.tolist() for column in columns]


@given(
    text=corrupted(dumps()), data=st.data(), max_line_bytes=st.sampled_from([200, 1 << 20]), rows=ROWS, values=VALUES
)
def test_znode_reader_equals_reference(
    text: bytes, data: st.DataObject, max_line_bytes: int, rows: int, values: int
) -> None:
    starts = [0, *(match.start() for match in re.finditer(rb'\{"path": ?"/brokers/topics/', text))]
    arguments = (text, data.draw(st.sampled_from(starts)), max_line_bytes, rows, values)
    assert read_znodes(kernels, *arguments) == read_znodes(reference, *arguments)
