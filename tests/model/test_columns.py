"""The partition columns: append, growth, copy and size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.errors import ShapeError
from kframe.model import slot_columns
from kframe.model.arrays import Int32, Ragged, offsets_of, positions_within, ragged_positions
from kframe.model.cluster import ClusterState
from kframe.model.columns import COLUMNS, WIDE, Partitions
from kframe.model.lists import SHORT, distinct, distinct_rows, last_of_equal, members, repeated, same_lists
from kframe.model.slot_columns import REPLICAS_MAX

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=5), max_size=8)


def int32_array(*numbers: int) -> Int32:
    return np.array(numbers, np.int32)


def unpacked(lists: Ragged) -> list[list[int]]:
    return [lists[index].tolist() for index in range(len(lists))]


def two_rows() -> Partitions:
    """Topic 0 with partitions 0 and 1: [0, 1, 2] with ISR [2], and [3] with ISR [3, 4]."""
    p = Partitions()
    p.append(
        int32_array(0, 0),
        int32_array(0, 1),
        Ragged.of([[0, 1, 2], [3]]),
        Ragged.of([[2], [3, 4]]),
        {"leader": int32_array(2, 3)},
    )
    return p


# -- ragged lists


@given(LISTS, st.data())
def test_take_returns_lists_in_requested_order(lists: list[list[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(lists) - 1))) if lists else []
    taken = Ragged.of(lists).take(np.array(chosen, np.int64))
    assert unpacked(taken) == [lists[index] for index in chosen]


@given(LISTS, LISTS)
def test_same_lists(left: list[list[int]], right: list[list[int]]) -> None:
    count = min(len(left), len(right))
    result = same_lists(Ragged.of(left[:count]), Ragged.of(right[:count]))
    assert result.tolist() == [left[index] == right[index] for index in range(count)]
    assert same_lists(Ragged.of(left), Ragged.of(left)).all()


@given(LISTS, st.booleans())
def test_repeated_and_distinct_values(lists: list[list[int]], long: bool) -> None:
    lists = [*lists, list(range(SHORT + 1))] if long else lists
    packed = Ragged.of(lists)
    assert repeated(packed).tolist() == [value in each[:index] for each in lists for index, value in enumerate(each)]
    assert unpacked(distinct(packed)) == [list(dict.fromkeys(values)) for values in lists]


@given(st.lists(st.integers(0, 9)))
def test_last_of_equal(keys: list[int]) -> None:
    for given_keys in (keys, sorted(set(keys))):
        last = {key: index for index, key in enumerate(given_keys)}
        assert last_of_equal(np.array(given_keys, np.int64)).tolist() == [last[key] for key in given_keys]


@given(LISTS, st.data())
def test_masks_equal_loop_over_lists(lists: list[list[int]], data: st.DataObject) -> None:
    """Each value is unique, so that the property identifies its list and position."""
    flat = [(number, index) for number, values in enumerate(lists) for index in range(len(values))]
    mask = data.draw(st.lists(st.booleans(), min_size=len(flat), max_size=len(flat)))
    hit = {key for key, chosen in zip(flat, mask, strict=True) if chosen}
    expected = [
        [value for index, value in enumerate(values) if (number, index) in hit] for number, values in enumerate(lists)
    ]
    packed, given_mask = Ragged.of(lists), np.array(mask, np.bool_)
    assert unpacked(packed.keep(given_mask)) == expected
    assert packed.count(given_mask).tolist() == [len(values) for values in expected]
    assert packed.any(given_mask).tolist() == [values != [] for values in expected]
    assert packed.owners.tolist() == [number for number, _ in flat]
    assert packed.first.tolist() == [index == 0 for _, index in flat]


SIGNED = st.lists(st.lists(st.integers(-2, 3), max_size=5), max_size=6)


@given(SIGNED, SIGNED)
def test_lists_compare_element_by_element(left: list[list[int]], right: list[list[int]]) -> None:
    """Values below 0 are unknown, and match no value of another list."""
    count = min(len(left), len(right))
    pairs = list(zip(left[:count], right[:count], strict=True))
    result = members(Ragged.of(left[:count]), Ragged.of(right[:count]))
    assert result.tolist() == [value in other for values, other in pairs for value in values]


@pytest.mark.parametrize("lengths", [(3, 3), (0, 4)], ids=["equal", "different"])
def test_many_lists_compare_as_few(lengths: tuple[int, int]) -> None:
    """More lists than are compared at a time."""
    random, count = np.random.default_rng(1), 40_000
    counts = random.integers(lengths[0], lengths[1] + 1, (2, count))
    left, right = (Ragged(offsets_of(each), random.integers(0, 6, int(each.sum())).astype(np.int32)) for each in counts)
    lists, others = unpacked(left), unpacked(right)
    assert members(left, right).tolist() == [
        value in other for values, other in zip(lists, others, strict=True) for value in values
    ]
    assert repeated(left).tolist() == [value in each[:index] for each in lists for index, value in enumerate(each)]


@pytest.mark.parametrize("count", [10, 10_000])
@given(st.lists(st.integers(0, 9)))
def test_distinct_rows(count: int, rows: list[int]) -> None:
    """A few rows among many are sorted. Many rows use a mask."""
    assert distinct_rows(np.array(rows, np.int32), count).tolist() == sorted(set(rows))
    repeated_rows = np.array([*rows * 1_000, 9], np.int32)
    assert distinct_rows(repeated_rows, count).tolist() == sorted({*rows, 9})


def test_ragged_positions() -> None:
    assert ragged_positions(int32_array(10, 3, 7), int32_array(2, 0, 3)).tolist() == [10, 11, 7, 8, 9]
    assert ragged_positions(int32_array(), int32_array()).tolist() == []


# -- rows


def test_append_sets_passed_columns_and_initial_values() -> None:
    p = two_rows()
    assert len(p) == 2
    assert [p.replicas_of(row).tolist() for row in (0, 1)] == [[0, 1, 2], [3]]
    assert [p.isr_of(row).tolist() for row in (0, 1)] == [[2], [3, 4]]
    assert (p.leader.tolist(), p.slot_capacity.tolist(), p.slot_start.tolist()) == ([2, 3], [3, 2], [0, 3])
    for column in COLUMNS:
        array = getattr(p, column.name)
        assert array.dtype == column.dtype
        assert len(array) == (2 if column.per == "row" else p.slot_count)
        if column.name in ("leader_epoch", "epoch_number", "partition_epoch", "status"):
            assert array.tolist() == [column.fresh] * 2


@given(st.lists(LISTS, max_size=6))
def test_growth_does_not_move_values(batches: list[list[list[int]]]) -> None:
    p, expected = Partitions(), list[list[int]]()
    for number, lists in enumerate(batches):
        count = len(lists)
        rows = p.append(np.full(count, number, np.int32), np.arange(count, dtype=np.int32), Ragged.of(lists))
        assert rows.tolist() == list(range(len(expected), len(expected) + count))
        expected += lists
    assert [p.replicas_of(row).tolist() for row in range(len(p))] == expected
    assert p.copy().lists("replica", np.arange(len(p))).values.tolist() == [
        value for each in expected for value in each
    ]


@pytest.mark.parametrize(
    "topic, partition, replicas, isr",
    [
        (int32_array(0), int32_array(0, 1), Ragged.empty(1), None),
        (int32_array(0), int32_array(0), Ragged.empty(2), None),
        (int32_array(0), int32_array(0), Ragged.empty(1), Ragged.empty(2)),
    ],
)
def test_different_lengths_raise(topic: Int32, partition: Int32, replicas: Ragged, isr: Ragged | None) -> None:
    p = two_rows()
    with pytest.raises(ShapeError, match="1 topics"):
        p.append(topic, partition, replicas, isr)
    assert len(p) == 2


def test_too_many_replicas_raise() -> None:
    p = Partitions()
    wide = Ragged(int32_array(0, REPLICAS_MAX + 1), np.zeros(REPLICAS_MAX + 1, np.int32))
    with pytest.raises(ShapeError, match="32768 replicas; the maximum is 32767"):
        p.append(int32_array(0), int32_array(0), wide)
    assert (len(p), p.slot_count) == (0, 0)


def test_too_many_slots_raise_and_append_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    p = two_rows()
    monkeypatch.setattr(slot_columns, "SLOTS_MAX", 6)
    with pytest.raises(ShapeError, match="7 replica slots; the maximum is 6"):
        p.append(int32_array(1), int32_array(0), Ragged.of([[0, 1]]))
    assert (len(p), p.slot_count) == (2, 5)


@pytest.mark.parametrize(
    "appended, ordered",
    [
        ([(int32_array(0, 0, 1), int32_array(0, 1, 0))], True),
        ([(int32_array(0), int32_array(0)), (int32_array(1, 2), int32_array(0, 0))], True),
        ([(int32_array(1), int32_array(0)), (int32_array(0), int32_array(0))], False),
        ([(int32_array(0, 1), int32_array(0, 0)), (int32_array(0), int32_array(1))], False),
        ([(int32_array(1, 0), int32_array(0, 0))], False),
        ([(int32_array(), int32_array()), (int32_array(0), int32_array(0)), (int32_array(), int32_array())], True),
    ],
    ids=["one batch", "later topics", "earlier topic", "expansion", "unsorted", "nothing"],
)
def test_in_topic_order(appended: list[tuple[Int32, Int32]], ordered: bool) -> None:
    p = Partitions()
    for topic, partition in appended:
        p.append(topic, partition, Ragged.empty(len(topic)))
    assert p.in_topic_order is ordered
    assert p.copy().in_topic_order is ordered


def test_relocated_row_keeps_contents() -> None:
    p = two_rows()
    p.replica_status[:] = [1, 2, 4, 7, 0]
    p.set_replica_states(slice(None), np.array([1, 2, 3, 4, 5], np.uint8))
    p.ensure_capacity(int32_array(1, 0), int32_array(4, 3))
    assert (p.slot_start.tolist(), p.slot_capacity.tolist(), p.slot_count) == ([0, 5], [3, 4], 9)
    assert (p.replicas_of(1).tolist(), p.isr_of(1).tolist()) == ([3], [3, 4])
    assert p.replica_flags(slice(5, 7)).tolist() == [7, 0]
    assert p.replica_states(slice(5, 7)).tolist() == [4, 5]
    assert (p.replicas_of(0).tolist(), p.isr_of(0).tolist()) == ([0, 1, 2], [2])


def _values(p: Partitions) -> dict[str, list[int]]:
    return {column.name: getattr(p, column.name).tolist() for column in COLUMNS}


def test_copies_share_columns_until_one_of_them_changes() -> None:
    p = two_rows()
    before, copy = _values(p), p.copy()
    assert {name for name in before if np.shares_memory(getattr(p, name), getattr(copy, name))} == Partitions.shared
    with pytest.raises(ValueError, match="read-only"):
        copy.topic[0] = 7
    copy.own(*Partitions.shared)
    for name in Partitions.shared:
        getattr(copy, name)[:] = 7
    assert _values(p) == before


def test_growth_and_relocation_leave_copies_as_they_are() -> None:
    p = two_rows()
    before, copy = _values(p), p.copy()
    p.append(int32_array(), int32_array(), Ragged.empty(0))
    p.append(int32_array(5), int32_array(0), Ragged.empty(1))
    p.ensure_capacity(int32_array(1, 0), int32_array(4, 3))
    assert _values(copy) == before
    assert len(p) == len(copy) + 1


def test_partition_at_rf_3_takes_at_most_100_bytes() -> None:
    """Topics of 100 partitions on 100 brokers, including names, ids and broker columns."""
    cluster, topics, partitions = ClusterState(), 50, 100
    cluster.brokers.index_of(range(100))
    count = topics * partitions
    replicas = Ragged(np.arange(0, 3 * count + 1, 3, dtype=np.int32), (np.arange(3 * count) % 100).astype(np.int32))
    names = [f"topic-{number:04}" for number in range(topics)]
    cluster.add_topics(names, np.full(topics, partitions), replicas, replicas)
    kinds = (cluster.topics, cluster.brokers)
    arrays = [value for kind in kinds for value in vars(kind).values() if isinstance(value, np.ndarray)]
    spoken = sum(len(name) for name in names)
    assert (cluster.partitions.nbytes + sum(array.nbytes for array in arrays) + spoken) / count <= 100


@pytest.mark.parametrize("lists", [[[1, 2], [3, 4]], [[1], [], [2, 3, 4]], [[]], []])
def test_tiled_lists_repeat_all_lists(lists: list[list[int]]) -> None:
    tiled = Ragged.of(lists).tile(3)
    assert [tiled[i].tolist() for i in range(len(tiled))] == lists * 3


@pytest.mark.parametrize("counts", [[2, 2, 2], [1, 0, 3], [0, 0], []])
def test_positions_within_lists(counts: list[int]) -> None:
    positions = positions_within(np.array(counts, np.int32))
    assert positions.dtype == np.int32
    assert positions.tolist() == [position for count in counts for position in range(count)]


def test_wide_rows_keep_their_contents_as_they_move() -> None:
    """A row of WIDE slots or more has their number in a table; copies have it too."""
    p, lists = Partitions(), [[0, 1, 2], [*range(300)], [*range(WIDE)], [*range(WIDE - 1)]]
    rows = p.append(np.zeros(4, np.int32), np.arange(4, dtype=np.int32), Ragged.of(lists))
    assert (p.slot_capacity.tolist(), p.capacity_of(rows).tolist()) == ([3, 255, 255, 254], [3, 300, 255, 254])
    for table in (p, p.copy()):
        table.ensure_capacity(rows[:2], int32_array(300, 300))
        assert (table.capacity_of(rows).tolist(), table.relocations) == ([300, 300, 255, 254], 1)
        table.ensure_capacity(rows, int32_array(1, 600, 256, 255))
        assert (table.capacity_of(rows).tolist(), table.largest_capacity()) == ([300, 600, 256, 255], 600)
        assert [table.replicas_of(row).tolist() for row in rows.tolist()] == lists
