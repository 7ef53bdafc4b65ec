"""Nodes of unknown length are read in small requests first, then in requests that fill a response."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from kframe_zookeeper.bulk.nodes import RESPONSE_BYTES, read_results
from kframe_zookeeper.session.fence import Fence
from kframe_zookeeper.session.requests import END, MultiResponse
from kframe_zookeeper.session.session import Session

from verification.reference import jute as reference_jute

pytestmark = pytest.mark.kernel

COUNT, LENGTH = 500, 1_000
FIT = RESPONSE_BYTES // (2 * LENGTH)


class Scripted(Session):
    """Returns for each read nodes of ``LENGTH`` bytes. Their version is their number."""

    def __init__(self) -> None:
        self.fence, self.has_multi_read = Fence(), True
        self.sent: list[int] = []
        self._completed = 0

    def submit(self, request: Any) -> Any:
        self.sent.append(request.count)
        return request

    def wait(self, result: Any) -> MultiResponse:
        numbers = range(self._completed, self._completed + result.count)
        self._completed += result.count
        head = reference_jute.HEADER.pack(4, False, 0) + struct.pack(">i", LENGTH) + bytes(LENGTH)
        stats = (reference_jute.STAT.pack(1, 2, 0, 0, number, 0, 0, 0, LENGTH, 0, 3) for number in numbers)
        return MultiResponse(np.frombuffer(b"".join(head + stat for stat in stats) + END, np.uint8), 0)


@pytest.mark.parametrize(
    "probe_first, first_batch, sent",
    [
        (
            False,
            [16] * 4,
            [*[16] * 5, FIT, COUNT - 80 - FIT],
        ),  # The fifth request is sent before the first response is processed.
        (True, [16], [16, FIT, COUNT - 16 - FIT]),
    ],
)
def test_requests_grow_with_the_known_size_of_nodes(probe_first: bool, first_batch: list[int], sent: list[int]) -> None:
    session = Scripted()
    parts = read_results(session, [f"/{number}" for number in range(COUNT)], 16, probe_first=probe_first)
    assert session.sent == first_batch
    numbers = [first + index for first, results in parts for index in range(len(results.code))]
    assert session.sent == sent
    assert numbers == list(range(COUNT))
