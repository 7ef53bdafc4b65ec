"""Requests are the same, in the same order, however many threads encode them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.wire import threads
from tests.wire.cases import Case, build, random_case
from tests.wire.content import EVERY_VERSION
from tests.wire.encoding import CASES, body, encoded
from verification.support.properties import examples

pytestmark = pytest.mark.kernel


def check(case: Case, api: str, version: int, part_rows: int, processors: int, byte_limit: int) -> None:
    alone = encoded(*build(case), api, version, byte_limit)
    with mock.patch.multiple(
        threads, BLOCK_ROWS=part_rows // 2 or 1, PART_ROWS=part_rows, _processors=lambda: processors
    ):
        shared = encoded(*build(case), api, version, byte_limit)
    assert [(request[:3], body(request), request.partitions) for request in shared] == [
        (request[:3], body(request), request.partitions) for request in alone
    ]


@examples(0.6)
@given(case=CASES, part_rows=st.integers(1, 8), processors=st.integers(1, 3), byte_limit=st.sampled_from([300, 10**6]))
def test_threaded_encoding_yields_same_requests(case: Case, part_rows: int, processors: int, byte_limit: int) -> None:
    for api, version in EVERY_VERSION:
        check(case, api, version, part_rows, processors, byte_limit)


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_wide_topics_are_encoded_by_multiple_threads(api: str, version: int) -> None:
    case = random_case(Random(5), max_partitions=300)
    with ThreadPoolExecutor(2) as pool, mock.patch.object(threads, "_pool") as used:
        used.return_value = pool
        check(case, api, version, part_rows=50, processors=2, byte_limit=2_000)
    assert used.called


def test_thread_error_is_raised() -> None:
    cluster, requests = build(random_case(Random(5), max_partitions=300))
    with (
        mock.patch.multiple(threads, BLOCK_ROWS=25, PART_ROWS=50, _processors=lambda: 2),
        mock.patch("kframe.kernels.copy_entries", side_effect=MemoryError),
        pytest.raises(MemoryError),
    ):
        encoded(cluster, requests, "LeaderAndIsr", 7)
