"""Fuzz ZooKeeper's responses to multi requests: the kernels that split results, their references, and the callers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from kframe_zookeeper.bulk.nodes import Results, names_in
from kframe_zookeeper.kernels import _jute_read
from kframe_zookeeper.session.requests import MultiResponse

from kframe.plugin import StoreError
from verification.fuzz import Base, Batch, Outcome
from verification.reference import jute as reference_jute

#: Byte sequences that are likely to break readers of ZooKeeper's layouts.
PIECES: Final = [
    *(struct.pack(">i", number) for number in (-1, 0, 1, 4, 2**31 - 1, -(2**31))),
    *(reference_jute.HEADER.pack(operation, False, 0) for operation in (-1, 1, 2, 4, 5, 8, 13, 99)),
    reference_jute.HEADER.pack(-1, True, -1),
    reference_jute.STAT.pack(*range(11)),
    b"\xff",
    b"\x00" * 8,
    struct.pack(">i", -101),
    struct.pack(">i", 1) + struct.pack(">i", 1) + b"a",
]


class Replies:
    """Responses to multi requests of one kind. The kind of a case is the number of its operations."""

    pieces: Sequence[bytes] = PIECES
    share = 1

    def __init__(self, name: str, bases: Sequence[Base]) -> None:
        self.name = name
        self.bases = bases
        self._outcome = OUTCOMES[name]

    def evaluate(self, batch: Batch) -> list[Outcome]:
        """The reason why a response or one of its results is refused, or None."""
        return [self._outcome(batch[i], int(batch.kinds[i])) for i in range(len(batch))]


def _reads(raw: bytes, count: int) -> Outcome:
    data = np.frombuffer(raw, np.uint8)
    reference = Results.allocate(data, count)
    reference_count = reference_jute.split_reads(data, 0, *_columns(reference))
    try:
        results = Results.split(MultiResponse(data, 0), count)
    except StoreError as error:
        assert reference_count != count, reference_count
        return str(error)
    assert reference_count == count
    for actual, expected in zip(_columns(results), _columns(reference), strict=True):
        assert np.array_equal(actual, expected)
    try:
        for i in range(count):
            if results.exists(i):
                # Lists of children have no stat.
                _ = results.node(i) if results.version[i] != -1 or results.mzxid[i] != -1 else names_in(results.data(i))
    except StoreError as error:
        return str(error)
    return None


def _columns(results: Results) -> tuple[Any, ...]:
    return (
        results.code,
        results.data_offset,
        results.data_length,
        results.version,
        results.czxid,
        results.mzxid,
        results.owner,
    )


def _writes(raw: bytes, count: int) -> Outcome:
    results = []
    for module in (_jute_read, reference_jute):
        code, version = np.zeros(count, np.int32), np.zeros(count, np.int32)
        result_count = module.split_results(np.frombuffer(raw, np.uint8), 0, code, version)
        # Columns of a truncated response are undefined.
        known = max(result_count, 0)
        results.append((result_count, code[:known].tolist(), version[:known].tolist()))
    assert results[0] == results[1]
    return None if results[0][0] == count else f"a response to {count} writes with {results[0][0]} results"


#: The outcome of a response to so many operations, by kind of request.
OUTCOMES: Final[Mapping[str, Callable[[bytes, int], Outcome]]] = {"multi read": _reads, "multi write": _writes}
