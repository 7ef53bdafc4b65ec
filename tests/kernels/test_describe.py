"""The kernel of ``kafka-topics`` listings equals its reference on any text, and writes only within its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from tests.snapshot.corrupted import corrupted, listings
from verification import reference

pytestmark = pytest.mark.kernel


def read(module: Any, text: bytes, start: int, max_line_bytes: int, topic: bytes, rows: int, values: int) -> Any:
    """Return the offset, and what was read. Arrays have the requested lengths."""
    headers, columns = np.zeros((2, 6), np.int32), np.zeros((4, rows), np.int32)
    counts, entries, result = np.zeros((7, rows), np.int32), np.zeros((7, values), np.int32), np.zeros(3, np.int32)
    end = module.read_describe_lines(text, start, max_line_bytes, topic, headers, *columns, counts, entries, result)
    lines, topics, count = result.tolist()
    used = counts[:, :count].sum(axis=1).tolist()
    lists = [entries[k, :size].tolist() for k, size in enumerate(used)]
    return end, lines, headers[:topics].tolist(), columns[:, :count].tolist(), counts[:, :count].tolist(), lists


@given(
    text=corrupted(listings()),
    start=st.integers(0, 3),
    max_line_bytes=st.sampled_from([60, 1 << 20]),
    topic=st.sampled_from([b"", b"t", b"u"]),
    rows=st.integers(0, 5),
    values=st.integers(0, 9),
)
def test_describe_reader_equals_reference(
    text: bytes, start: int, max_line_bytes: int, topic: bytes, rows: int, values: int
) -> None:
    arguments = (text, min(start, len(text)), max_line_bytes, topic, rows, values)
    assert read(kernels, *arguments) == read(reference, *arguments)
