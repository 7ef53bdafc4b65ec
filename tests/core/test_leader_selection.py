"""The input of a leader selector, and the handling of a selector that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from kframe.core.selectors.kafka_selectors import take_first
from kframe.core.selectors.lazy_view import election_batch, lazy_batch
from kframe.core.selectors.leader_selection import FaultKind, Selection
from kframe.errors import ShapeError
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag
from kframe.testing.random_elections import random_cluster, random_election

OFFLINE = ElectionKind.OFFLINE


class Sly:
    """A selector with a given behaviour."""

    name = "sly"

    def __init__(self, act: Callable[[ElectionBatch, Int32], Any]) -> None:
        self._act = act

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        returned: None = self._act(batch, leader)
        return returned


def small_cluster() -> ClusterState:
    """Brokers 10 to 13 have indexes 0 to 3. 13 is not registered. ``orders`` has 4 partitions on 10, 11 and 12. 12 is
    out of sync."""
    cluster = ClusterState()
    cluster.brokers.register(
        [Registration(10 + index, 1, rack="ba"[index % 2] if index else None) for index in range(4)]
    )
    cluster.brokers.unregister(np.array([3], np.int32))
    isr = Ragged.of([[1, 0], [0, 1], [0, 1], [0, 1]])
    rows = cluster.add_topics(["orders"], np.array([4]), Ragged.of([[0, 1, 2]] * 4), isr)
    cluster.partitions.leader[rows] = 3
    cluster.partitions.leader_epoch[rows] = [5, 6, 7, 8]
    return cluster


ROWS = np.arange(4, dtype=np.int32)
NONE_UNCLEAN = np.zeros(4, np.uint8)


def electing(selectors: dict[ElectionKind, LeaderSelector], fallback: int = 0) -> Selection:
    """Return a selection whose fallback elects the broker of index ``fallback``."""
    return Selection(selectors, lambda cluster, kind, rows, allowed: np.full(len(rows), fallback, np.int32))


def choose(selection: Selection, kind: ElectionKind = OFFLINE, unclean: UInt8 = NONE_UNCLEAN) -> list[int]:
    """Return the leaders of the small cluster."""
    leader = selection.choose(small_cluster(), kind, ROWS, unclean)
    return [int(value) for value in leader]


def test_batch_equals_columns() -> None:
    cluster = small_cluster()
    cluster.brokers.shutting_down[1] = 1
    cluster.flag_replicas(2, np.array([2]), ReplicaFlag.OFFLINE_DIR)
    batch = election_batch(cluster, OFFLINE, np.array([2, 0], np.int32), np.array([1, 1], np.uint8))
    assert [batch.topic_names[topic] for topic in batch.topic] == ["orders", "orders"]
    assert batch.partition.tolist() == [2, 0]
    assert [positions.tolist() for positions in (batch.candidates[0], batch.candidates[1])] == [[0, 1, 2], [0, 1, 2]]
    assert batch.eligible.tolist() == [1, 0, 0, 1, 0, 1]
    assert batch.in_sync.tolist() == [1, 1, 0, 1, 1, 0]
    assert [positions.tolist() for positions in (batch.isr[0], batch.isr[1])] == [[0, 1], [1, 0]]
    assert batch.leader.tolist() == [3, 3]
    assert batch.leader_epoch.tolist() == [7, 5]
    assert batch.broker_ids.tolist() == [10, 11, 12, 13]
    assert batch.racks == ("a", "b")
    assert batch.broker_rack.tolist() == [-1, 0, 1, 0]
    assert batch.broker_live.tolist() == [1, 0, 1, 0]
    assert batch.broker_shutting_down.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("kind", ElectionKind, ids=lambda kind: kind.name)
def test_batch_arrays_are_read_only(kind: ElectionKind) -> None:
    cluster = random_cluster(1)
    batch = election_batch(cluster, kind, np.arange(200, dtype=np.int32), np.zeros(200, np.uint8))
    values = [getattr(batch, field.name) for field in fields(batch)]
    arrays = [
        array for value in values for array in ([value.offsets, value.values] if isinstance(value, Ragged) else [value])
    ]
    for array in arrays:
        if isinstance(array, np.ndarray):
            assert not array.flags.writeable
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True


def test_batch_reads_fields_during_election_only() -> None:
    """The batch reads each part once, on first access. Later accesses return the saved part and do not read the
    columns."""
    cluster = small_cluster()
    batch, _ = lazy_batch(cluster, OFFLINE, ROWS, NONE_UNCLEAN, cluster.brokers.live)
    assert len(batch) == 4
    assert batch.topic is batch.topic
    whole = batch.whole()
    batch.close()
    assert batch.leader_epoch.tolist() == whole.leader_epoch.tolist() == [5, 6, 7, 8]
    batch, _ = lazy_batch(cluster, OFFLINE, ROWS, NONE_UNCLEAN, cluster.brokers.live)
    batch.close()
    assert batch.may_lead.tolist() == whole.may_lead.tolist()
    with pytest.raises(AttributeError, match=r"no isr in this ElectionBatch; the election is over"):
        batch.isr  # noqa: B018  # to ask is all
    with pytest.raises(AttributeError, match=r"no colour in this ElectionBatch$"):
        batch.colour  # noqa: B018  # to ask is all


def test_retained_batch_cannot_be_read_after_election() -> None:
    saved: list[ElectionBatch] = []
    selection = electing({OFFLINE: Sly(lambda batch, leader: saved.append(batch))})
    assert choose(selection) == [NO_LEADER] * 4
    assert saved[0].candidates[0].tolist() == [0, 1, 2]
    with pytest.raises(AttributeError, match="the election is over"):
        saved[0].leader  # noqa: B018  # to ask is all


@pytest.mark.parametrize("kind", ElectionKind, ids=lambda kind: kind.name)
def test_batch_fields_do_not_depend_on_access_order(kind: ElectionKind) -> None:
    cluster, rows = random_cluster(9), np.arange(150, dtype=np.int32)
    allowed = (rows % 2).astype(np.uint8)
    whole = election_batch(cluster, kind, rows, allowed)
    for field in fields(ElectionBatch):
        alone = getattr(lazy_batch(cluster, kind, rows, allowed, cluster.brokers.live)[0], field.name)
        left, right = (
            [value.offsets.tolist(), value.values.tolist()]
            if isinstance(value, Ragged)
            else value.tolist()
            if isinstance(value, np.ndarray)
            else value
            for value in (alone, getattr(whole, field.name))
        )
        assert left == right, field.name


def test_rows_may_have_more_replicas_than_first_row() -> None:
    cluster = ClusterState()
    cluster.brokers.register([Registration(index, 1) for index in range(20)])
    lists = Ragged.of([[0], list(range(20)), [3, 4]])
    cluster.add_topics(["t"], np.array([3]), lists, lists)
    for rows in ([0, 1, 2], [1, 0, 2], [0], []):
        batch = election_batch(cluster, OFFLINE, np.array(rows, np.int32), np.zeros(len(rows), np.uint8))
        assert [batch.candidates[index].tolist() for index in range(len(rows))] == [lists[row].tolist() for row in rows]
        assert batch.may_lead.tolist() == [1] * len(batch.candidates.values)


@pytest.mark.parametrize(
    "lists, mask, out",
    [
        (Ragged.of([[1], [2]]), [1], 2),
        (Ragged.of([[1], [2]]), [1, 1], 3),
        (Ragged(np.array([0, 9], np.int32), np.array([1], np.int32)), [1], 1),
        (Ragged(np.array([-1, 1], np.int32), np.array([1], np.int32)), [1], 1),
    ],
    ids=["mask", "out", "beyond the values", "before them"],
)
def test_take_first_rejects_mask_of_other_length(lists: Ragged, mask: list[int], out: int) -> None:
    with pytest.raises(ShapeError, match="lists of"):
        take_first(lists, np.array(mask, np.uint8), np.zeros(out, np.int32))


def test_batch_seed_depends_on_content_only() -> None:
    seeds = [random_election(seed, kind).seed for seed in (1, 2) for kind in (OFFLINE, ElectionKind.INITIAL)]
    assert len(set(seeds)) == 4
    assert random_election(1, OFFLINE).seed == seeds[0]
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_out_of_sync_choice_is_elected_if_unclean_allowed() -> None:
    cluster = small_cluster()
    cluster.partitions.isr_count[:] = 0
    selection = electing({OFFLINE: Sly(lambda batch, leader: leader.fill(2))}, NO_LEADER)
    unclean = np.array([1, 0, 1, 0], np.uint8)
    leader = selection.choose(cluster, OFFLINE, ROWS, unclean)
    assert leader.tolist() == [2, NO_LEADER, 2, NO_LEADER]
    assert selection.faults == {("sly", FaultKind.NOT_IN_SYNC): 2}


@pytest.mark.parametrize(
    "kind, written, leaders, faults",
    [
        pytest.param(OFFLINE, [1, 2, 1, 2], [1, 0, 1, 0], {FaultKind.NOT_IN_SYNC: 2}, id="out of sync"),
        pytest.param(OFFLINE, [1, 3, 1, 1], [1, 0, 1, 1], {FaultKind.NOT_A_CANDIDATE: 1}, id="no replica"),
        pytest.param(OFFLINE, [1, 1, 99, -2], [1, 1, 0, 0], {FaultKind.NOT_A_CANDIDATE: 2}, id="no broker"),
        pytest.param(OFFLINE, [-(2**31), 2**31 - 1, 1, 1], [0, 0, 1, 1], {FaultKind.NOT_A_CANDIDATE: 2}, id="extremes"),
        pytest.param(
            OFFLINE, [3, 2, 1, 1], [0, 0, 1, 1], {FaultKind.NOT_A_CANDIDATE: 1, FaultKind.NOT_IN_SYNC: 1}, id="two"
        ),
        pytest.param(
            ElectionKind.PREFERRED, [0, 1, -1, 0], [0, 0, -1, 0], {FaultKind.NOT_PREFERRED: 1}, id="not preferred"
        ),
        pytest.param(ElectionKind.INITIAL, [2, 2, 2, 3], [2, 2, 2, 0], {FaultKind.NOT_A_CANDIDATE: 1}, id="initial"),
    ],
)
def test_only_ineligible_choices_are_replaced(
    kind: ElectionKind, written: list[int], leaders: list[int], faults: dict[FaultKind, int]
) -> None:
    def write(batch: ElectionBatch, leader: Int32) -> None:
        leader[:] = written

    selection = electing({kind: Sly(write)})
    assert choose(selection, kind) == leaders
    assert selection.faults == {("sly", fault): count for fault, count in faults.items()}


def raise_it(batch: ElectionBatch, leader: Int32) -> None:
    leader[:] = 1
    raise LookupError("no such rack")


def write_before(batch: ElectionBatch, leader: Int32) -> None:
    leader.base[0] = 7  # type: ignore[index]  # base is an array here


def write_after(batch: ElectionBatch, leader: Int32) -> None:
    leader.base[-1] = 7  # type: ignore[index]  # base is an array here


def reshape(batch: ElectionBatch, leader: Int32) -> None:
    leader.shape = (2, 2)


def write_text(batch: ElectionBatch, leader: Any) -> None:
    leader[:] = "first"


def write_too_much(batch: ElectionBatch, leader: Int32) -> None:
    leader[:] = np.zeros(5, np.int32)


def write_to_the_batch(batch: ElectionBatch, leader: Int32) -> None:
    batch.eligible[:] = 1


@pytest.mark.filterwarnings("ignore:Setting the shape")
@pytest.mark.parametrize(
    "act, fault, says",
    [
        (raise_it, FaultKind.RAISED, "LookupError: no such rack"),
        (write_text, FaultKind.RAISED, "ValueError"),
        (write_too_much, FaultKind.RAISED, "ValueError"),
        (write_to_the_batch, FaultKind.RAISED, "read-only"),
        (lambda batch, leader: np.ones(4, np.int32), FaultKind.OVERREACHED, "it returned ndarray, expected None"),
        (reshape, FaultKind.OVERREACHED, "the array is int32 (2, 2) now, expected int32 (4,)"),
        (write_before, FaultKind.OVERREACHED, "it wrote before the first or after the last partition"),
        (write_after, FaultKind.OVERREACHED, "it wrote before the first or after the last partition"),
    ],
)
def test_failed_selector_is_logged_and_replaced_by_built_in_rule(
    act: Callable[[ElectionBatch, Int32], Any], fault: FaultKind, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    selection = electing({OFFLINE: Sly(act)})
    assert choose(selection) == [0, 0, 0, 0]
    assert selection.faults == {("sly", fault): 4}
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "leader selector 'sly'" in record.message
    assert says in record.message
    assert "the built-in rule decided instead" in record.message
    assert bool(record.exc_info) is (fault is FaultKind.RAISED)


def test_fault_is_logged_once_per_batch_with_samples(caplog: pytest.LogCaptureFixture) -> None:
    selection = electing({OFFLINE: Sly(lambda batch, leader: leader.fill(2))})
    choose(selection)
    (record,) = caplog.records
    assert record.message == (
        "leader selector 'sly': chose an out-of-sync replica where that is not allowed for 4 of 4 partitions "
        "(orders-0 → broker 12, orders-1 → broker 12, orders-2 → broker 12, ...); the built-in rule decided instead"
    )
    choose(selection)
    assert len(caplog.records) == 2
    assert selection.faults == {("sly", FaultKind.NOT_IN_SYNC): 8}


def test_write_after_election_has_no_effect() -> None:
    saved: list[Int32] = []

    def keep(batch: ElectionBatch, leader: Int32) -> None:
        leader[:] = 1
        saved.append(leader)

    cluster, selection = small_cluster(), electing({OFFLINE: Sly(keep)})
    leader = selection.choose(cluster, OFFLINE, ROWS, NONE_UNCLEAN)
    saved[0][:] = 2
    assert leader.tolist() == [1, 1, 1, 1]


def test_selector_cannot_write_to_columns() -> None:
    cluster = small_cluster()
    batch = election_batch(cluster, OFFLINE, ROWS, NONE_UNCLEAN)
    owned = [
        cluster.partitions.leader,
        cluster.partitions.isr,
        cluster.partitions.replica,
        cluster.brokers.ids,
        cluster.brokers.shutting_down,
        ROWS,
    ]
    for field in fields(batch):
        value = getattr(batch, field.name)
        for array in [value.offsets, value.values] if isinstance(value, Ragged) else [value]:
            assert not any(isinstance(array, np.ndarray) and np.shares_memory(array, column) for column in owned), (
                field.name
            )


def test_rows_and_unclean_allowed_must_have_equal_length() -> None:
    with pytest.raises(ShapeError, match="4 rows, 3 unclean_allowed"):
        electing({}).choose(small_cluster(), OFFLINE, ROWS, np.zeros(3, np.uint8))
