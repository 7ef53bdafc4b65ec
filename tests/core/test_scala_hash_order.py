"""The order of a Scala 2.13 hash map, compared with the observed order of Kafka 3.9.1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.core.state_machines.scala_hash_order import scala_hash_order


@pytest.mark.parametrize(
    "broker_ids, expected",
    [
        ([], []),
        ([7], [7]),
        ([1, 2, 3, 4], [1, 2, 3, 4]),
        ([4, 3, 2, 1, 1], [1, 2, 3, 4]),
        (list(range(1, 13)), [5, 10, 1, 6, 9, 2, 12, 7, 3, 11, 8, 4]),
        ([1001, 1002, 1003], [1001, 1002, 1003]),
    ],
    ids=str,
)
def test_order_equals_recorded_order(broker_ids: list[int], expected: list[int]) -> None:
    assert scala_hash_order(broker_ids) == expected


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_order_has_each_broker_once(broker_ids: list[int]) -> None:
    ordered = scala_hash_order(broker_ids)
    assert sorted(ordered) == sorted(set(broker_ids))
    assert scala_hash_order(reversed(broker_ids)) == ordered
