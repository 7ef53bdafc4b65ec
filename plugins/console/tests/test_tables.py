"""Tables: each sort order and filter beside plain Python, windows, and the bound of the cache."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_console.tables.cache import ResultCache
from kframe_console.tables.columns import (
    DataColumn,
    FlagsColumn,
    ListsColumn,
    NamedColumn,
    NumericColumn,
    UnknownColumn,
)
from kframe_console.tables.order import stable_order
from kframe_console.tables.query import TableQuery, table_query
from kframe_console.tables.table import ColumnTable
from numpy.typing import NDArray

from kframe.plugin import ParameterError
from kframe.plugin.columns import Ragged

TOPICS = ("audit", "Orders", "orders-dlq", "users")
ROWS: list[dict[str, Any]] = [
    {"topic": "audit", "leader": 1, "isr": [1, 2], "epoch": 70_000, "health": []},
    {"topic": "audit", "leader": -1, "isr": [], "epoch": 3, "health": ["offline"]},
    {"topic": "Orders", "leader": 2, "isr": [2], "epoch": 70_000, "health": ["short"]},
    {"topic": "orders-dlq", "leader": 1, "isr": [1, 2, 3], "epoch": -5, "health": []},
    {"topic": "users", "leader": 3, "isr": [1, 3], "epoch": 9_000_000_000, "health": ["short", "offline"]},
    {"topic": None, "leader": 2, "isr": [2, 1], "epoch": 0, "health": []},
]
HEALTH = ("short", "offline")


def small_table() -> ColumnTable:
    index = [-1 if row["topic"] is None else TOPICS.index(row["topic"]) for row in ROWS]
    bits = [sum(1 << HEALTH.index(name) for name in row["health"]) for row in ROWS]
    columns: dict[str, DataColumn] = {
        "topic": NamedColumn(TOPICS, np.array(index, np.int32)),
        "leader": NumericColumn(np.array([row["leader"] for row in ROWS], np.int32), {-1: "none"}),
        "isr": ListsColumn(Ragged.of([row["isr"] for row in ROWS])),
        "epoch": NumericColumn(np.array([row["epoch"] for row in ROWS], np.int64)),
        "health": FlagsColumn(HEALTH, np.array(bits, np.uint8)),
        "elr": UnknownColumn(len(ROWS), "list"),
    }
    return ColumnTable("small", columns, len(ROWS))


@pytest.mark.parametrize(
    "parameters, rows",
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"leader": "1"}, [0, 3]),
        ({"leader": "1,3"}, [0, 3, 4]),
        ({"leader": "none"}, [1]),
        ({"leader": "none, 2"}, [1, 2, 5]),
        ({"leader": "1..2"}, [0, 2, 3, 5]),
        ({"leader": ">2"}, [4]),
        ({"leader": ">=2"}, [2, 4, 5]),
        ({"leader": "<0"}, [1]),
        ({"leader": "<=1"}, [0, 1, 3]),
        ({"leader": "9223372036854775807"}, []),
        ({"epoch": "-5"}, [3]),
        ({"topic": "orders"}, [2, 3]),
        ({"topic": "=orders-dlq"}, [3]),
        ({"topic": "o*q"}, [3]),
        ({"topic": "u?ers"}, [4]),
        ({"topic": "  "}, [0, 1, 2, 3, 4, 5]),
        ({"isr": "3"}, [3, 4]),
        ({"isr": "3,1"}, [0, 3, 4, 5]),
        ({"isr": "none"}, [1]),
        ({"health": "offline"}, [1, 4]),
        ({"health": "short,offline"}, [1, 2, 4]),
        ({"health": "none"}, [0, 3, 5]),
        ({"leader": "1", "isr": "3"}, [3]),
        ({"sort": "leader"}, [1, 0, 3, 2, 5, 4]),
        ({"sort": "-leader"}, [4, 2, 5, 0, 3, 1]),
        ({"sort": "epoch"}, [3, 5, 1, 0, 2, 4]),
        ({"sort": "-epoch,-topic"}, [4, 0, 2, 1, 5, 3]),
        ({"sort": "topic"}, [5, 2, 0, 1, 3, 4]),
        ({"sort": "isr"}, [1, 0, 3, 4, 2, 5]),
        ({"sort": "-health,leader"}, [4, 1, 2, 0, 3, 5]),
        ({"sort": "-leader", "isr": "1"}, [4, 5, 0, 3]),
    ],
    ids=str,
)
def test_query_selects_and_sorts(parameters: dict[str, str], rows: list[int]) -> None:
    table = small_table()
    assert table.rows(table_query(parameters, tuple(table.columns)), ResultCache(1 << 20)).tolist() == rows


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"leader": "x"}, "leader: found 'x', expected a number, several with commas"),
        ({"leader": "1.."}, "leader: found '1..'"),
        ({"leader": "٣"}, "leader: found '٣'"),
        ({"leader": ">"}, "leader: found '>'"),
        ({"leader": "9" * 30}, "leader: found"),
        ({"leader": ",".join("1" * 200)}, "leader: found 200 values, expected at most 100"),
        ({"isr": "all"}, "isr: found 'all', expected broker ids with commas, none, or some"),
        ({"health": "ill"}, "health: found 'ill', expected none, or some of short, offline"),
        ({"elr": "1"}, "elr: found '1', expected no filter: the source does not have this column"),
        ({"topic": "x" * 2000}, "topic: found 2000 characters, expected at most 1000"),
        ({"tpoic": "a"}, "tpoic: no such column, expected 'topic' perhaps"),
        ({"sort": "led"}, "sort: found 'led', expected 'leader' perhaps"),
        ({"sort": "leader,topic,isr,epoch,health"}, "sort: found 5 columns, expected at most 4"),
        ({"sort": "elr"}, "sort: found 'elr', expected a column that the source has"),
        ({"first": "-1"}, "first: found '-1', expected a whole number from 0 to 2147483647"),
        ({"count": "5000"}, "count: found '5000', expected a whole number from 0 to 1000"),
    ],
    ids=str,
)
def test_bad_query_is_refused_by_parameter(parameters: dict[str, str], message: str) -> None:
    table = small_table()
    with pytest.raises(ParameterError) as raised:
        table.rows(table_query(parameters, tuple(table.columns)), ResultCache(1 << 20))
    assert str(raised.value).startswith(message)


def test_records_have_the_values_of_rows() -> None:
    records = list(small_table().records(np.arange(len(ROWS))))
    assert [{name: record[name] for name in ROWS[0]} for record in records] == ROWS
    assert {record["elr"] for record in records} == {None}


def test_arrow_columns_have_the_values_of_json() -> None:
    rows = np.array([4, 1, 5])
    for name, column in small_table().columns.items():
        assert column.arrow_column(rows).to_pylist() == column.values(rows), name


NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**40), 2**40) | st.integers(0, 5), max_size=60)


@given(NUMBERS, st.lists(st.integers(-2, 2), max_size=60), st.booleans(), st.booleans())
def test_order_is_that_of_a_stable_sort(first: list[int], second: list[int], down: bool, down_second: bool) -> None:
    count = min(len(first), len(second))
    keys: list[tuple[NDArray[Any], bool]] = [
        (np.array(first[:count], np.int64), down),
        (np.array(second[:count], np.int8), down_second),
    ]
    signs = [-1 if descending else 1 for _, descending in keys]
    expected = sorted(range(count), key=lambda row: (signs[0] * first[row], signs[1] * second[row]))
    assert stable_order(keys, count).tolist() == expected


def test_cache_drops_the_least_recently_used_beyond_its_bound() -> None:
    cache, computed = ResultCache(100_000), list[str]()

    def get(key: str, size: int = 40_000) -> None:
        cache.get(key, lambda: computed.append(key), lambda _: size)

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert computed == ["a", "b", "c", "b"]
    assert 80_000 < cache.nbytes < 100_000
    nbytes = cache.nbytes
    get("large", 101_000)
    assert cache.nbytes == nbytes, "a result larger than the bound is not kept"


def test_cache_is_bounded_for_results_without_bytes() -> None:
    cache = ResultCache(1 << 20)
    for number in range(5_000):
        cache.get(("mask", "x" * 1_000, number), lambda: None, lambda _: 0)
    assert len(cache._results) <= (1 << 20) / 2_000


def test_cache_makes_a_result_once_for_threads_that_ask_at_once() -> None:
    cache, computed, begun, may_end = ResultCache(10_000), [], threading.Event(), threading.Event()

    def make() -> int:
        computed.append(1)
        begun.set()
        assert may_end.wait(60)
        return 7

    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(cache.get("k", make, lambda _: 1))) for _ in range(4)]
    threads[0].start()
    assert begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join()
    assert (computed, results) == ([1], [7, 7, 7, 7])


def test_failure_is_raised_and_not_kept() -> None:
    cache = ResultCache(10_000)
    with pytest.raises(ZeroDivisionError):
        cache.get("k", lambda: 1 // 0, lambda _: 1)
    assert cache.get("k", lambda: 5, lambda _: 1) == 5


def test_window_is_a_part_of_the_rows() -> None:
    table = small_table()
    query = table_query({"sort": "-leader", "first": "1", "count": "2"}, tuple(table.columns))
    assert query == TableQuery((("leader", True),), (), 1, 2)
    rows = table.rows(query, ResultCache(1 << 20))[query.first : query.first + query.count]
    assert [record["leader"] for record in table.records(rows)] == [2, 2]
