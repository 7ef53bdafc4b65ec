"""The leaders that any selector elects equal those of invariants I4 to I7 in plain Python loops."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kframe.core.selectors.kafka_selectors import SHIPPED
from kframe.core.selectors.lazy_view import election_batch
from kframe.core.selectors.leader_selection import Selection, find_faults, run_selector
from kframe.kernels import _selectors
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag
from kframe.testing.random_elections import random_cluster
from tests.core.equal_rows import OFFLINE_BROKERS, even_cluster, even_rows
from verification.reference import selectors as reference_selectors

BROKERS = 5


@dataclass(frozen=True)
class ElectionCase:
    """A small cluster and an election in all of its partitions."""

    cluster: ClusterState
    kind: ElectionKind
    unclean_allowed: list[int]

    def __len__(self) -> int:
        return len(self.unclean_allowed)

    def flags(self, row: int) -> list[int]:
        p = self.cluster.partitions
        start = int(p.slot_start[row])
        return [int(flag) for flag in p.replica_status[start : start + int(p.replica_count[row])]]

    def candidates(self, row: int) -> list[int]:
        """Return the candidates by the table of strategies (``elections.md`` section 3)."""
        replicas = [int(broker) for broker in self.cluster.partitions.replicas_of(row)]
        if self.kind == ElectionKind.REASSIGN:
            return [
                broker
                for broker, flag in zip(replicas, self.flags(row), strict=True)
                if not flag & ReplicaFlag.REMOVING
            ]
        return replicas[:1] if self.kind == ElectionKind.PREFERRED else replicas

    def online(self, row: int, broker: int) -> bool:
        """Whether the broker is registered, not shutting down, and its log directory is not offline."""
        brokers, replicas = self.cluster.brokers, self.cluster.partitions.replicas_of(row).tolist()
        flag = self.flags(row)[replicas.index(broker)] if broker in replicas else 0
        return (
            bool(brokers.registered[broker])
            and not brokers.shutting_down[broker]
            and not flag & ReplicaFlag.OFFLINE_DIR
        )

    def isr(self, row: int) -> list[int]:
        return [int(broker) for broker in self.cluster.partitions.isr_of(row)]

    def may_lead(self, row: int, broker: int) -> bool:
        """I4 to I7: a candidate, online, and in the ISR unless unclean election is allowed and needed."""
        if broker not in self.candidates(row) or not self.online(row, broker):
            return False
        if self.kind == ElectionKind.INITIAL or broker in self.isr(row):
            return True
        clean = [
            broker
            for broker in self.cluster.partitions.replicas_of(row)
            if broker in self.isr(row) and self.online(row, broker)
        ]
        return self.kind == ElectionKind.OFFLINE and bool(self.unclean_allowed[row]) and not clean

    def kafka_choice(self, row: int) -> int:
        return next((candidate for candidate in self.candidates(row) if self.may_lead(row, candidate)), NO_LEADER)


@st.composite
def election_cases(draw: st.DrawFn) -> ElectionCase:
    cluster = ClusterState()
    cluster.brokers.register([Registration(100 + index, 1) for index in range(BROKERS)])
    states = draw(
        st.lists(st.sampled_from(["live", "live", "leaving", "unregistered"]), min_size=BROKERS, max_size=BROKERS)
    )
    cluster.brokers.shutting_down[[state == "leaving" for state in states]] = 1
    cluster.brokers.unregister(
        np.array([index for index, state in enumerate(states) if state == "unregistered"], np.int32)
    )
    replicas, isr = [], []
    for _ in range(draw(st.integers(1, 5))):
        assigned = draw(st.lists(st.integers(0, BROKERS - 1), unique=True, min_size=1, max_size=4))
        replicas.append(assigned)
        isr.append(draw(st.lists(st.sampled_from(assigned), unique=True)))
    cluster.add_topics(["t"], np.array([len(replicas)]), Ragged.of(replicas), Ragged.of(isr))
    flags = cluster.partitions.replica_status
    flags[:] = draw(st.lists(st.sampled_from([0, 0, 1, 2, 4, 6]), min_size=len(flags), max_size=len(flags)))
    unclean = draw(st.lists(st.integers(0, 1), min_size=len(replicas), max_size=len(replicas)))
    return ElectionCase(cluster, draw(st.sampled_from(ElectionKind)), unclean)


@dataclass
class Anything:
    """Writes arbitrary leaders, and may then also fail."""

    leaders: list[int]
    fault: str
    name: str = "anything"

    def elect(self, batch: ElectionBatch, leader: Int32) -> Any:
        leader[:] = self.leaders[: len(leader)]
        if self.fault == "raise":
            raise RuntimeError("on purpose")
        if self.fault == "return":
            return leader
        if self.fault == "overrun":
            leader.base[:] = 0  # type: ignore[index]  # it is the array with the guards
        if self.fault == "lie":
            for view in (batch.eligible, batch.in_sync, batch.unclean_allowed):
                array = view.base
                array.flags.writeable = True  # type: ignore[union-attr]  # by force
                array[:] = 1  # type: ignore[index]  # by force
        return None


written = st.lists(st.one_of(st.integers(-2, BROKERS), st.sampled_from([-(2**31), 2**31 - 1])), min_size=5, max_size=5)


def choices(case: ElectionCase, selector: LeaderSelector) -> list[int]:
    """Return the leaders of a Selection. The fallback is Kafka's rule in plain loops."""

    def fallback(cluster: ClusterState, kind: ElectionKind, rows: Int32, allowed: UInt8) -> Int32:
        return np.array([case.kafka_choice(row) for row in rows.tolist()], np.int32)

    selection = Selection({case.kind: selector}, fallback)
    rows = np.arange(len(case), dtype=np.int32)
    unclean_allowed = np.array(case.unclean_allowed, np.uint8)
    return [int(leader) for leader in selection.choose(case.cluster, case.kind, rows, unclean_allowed)]


@given(election_cases(), written, st.sampled_from(["", "lie", "raise", "return", "overrun"]))
def test_choice_is_elected_exactly_where_eligible(case: ElectionCase, leaders: list[int], fault: str) -> None:
    result = choices(case, Anything(leaders, fault))
    for row, leader in enumerate(result):
        eligible = fault in ("", "lie") and (leaders[row] == NO_LEADER or case.may_lead(row, leaders[row]))
        assert leader == (leaders[row] if eligible else case.kafka_choice(row))


def outputs_of(
    module: ModuleType, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean: UInt8 | None = None
) -> list[Any]:
    """Return all data that the kernels read for a batch, with enough room and with one slot too few."""
    p, count, live = cluster.partitions, len(rows), cluster.brokers.live
    allowed = (rows % 2).astype(np.uint8) if unclean is None else unclean
    capacity = int(p.replica_count[rows].sum())
    read: list[Any] = [module.batch_seed(int(kind), rows, p.topic, p.partition, p.leader_epoch)]
    for size in {capacity, max(capacity - 1, 0)}:
        shapes = [(count + 1, np.int32), (size, np.int32), (size, np.uint8), (count, np.int16)]
        out: list[NDArray[Any]] = [np.full(length, 9, dtype) for length, dtype in shapes]
        read.append(module.gather_candidates(int(kind), rows, p, live, allowed, *out))
        read += [array.tolist() for array in out]
    marks = np.full((2, capacity), 9, np.uint8)
    module.mark_candidates(int(kind), rows, p, live, marks[0], marks[1])
    return [*read, marks.tolist()]


@given(election_cases(), st.data())
def test_kernels_equal_reference_kernels(case: ElectionCase, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(case))))
    rows = np.array(order[: data.draw(st.integers(0, len(case)))], np.int32)
    assert outputs_of(_selectors, case.cluster, case.kind, rows) == outputs_of(
        reference_selectors, case.cluster, case.kind, rows
    )


@pytest.mark.parametrize("kind", ElectionKind, ids=lambda kind: kind.name)
def test_kernels_equal_reference_on_distant_rows(kind: ElectionKind) -> None:
    """Kernels then prefetch the memory of later rows."""
    cluster, rows = random_cluster(3, partitions=400), np.arange(0, 400, 8, dtype=np.int32)
    assert outputs_of(_selectors, cluster, kind, rows) == outputs_of(reference_selectors, cluster, kind, rows)


@pytest.mark.parametrize("width", range(1, 10))
@pytest.mark.parametrize("kind", ElectionKind, ids=lambda kind: kind.name)
def test_kernels_equal_reference_on_equal_rows(kind: ElectionKind, width: int) -> None:
    """Kernels then process many rows at a time."""
    cluster = even_cluster(width, width, OFFLINE_BROKERS[width % 3], fault_rate=(0.01, 0.03, 0.5)[width // 3 % 3])
    for rows, allowed in even_rows(width, cluster):
        seen = [outputs_of(module, cluster, kind, rows, allowed) for module in (_selectors, reference_selectors)]
        assert seen[0] == seen[1]


def test_short_isr_among_full_isrs_is_detected() -> None:
    """Removed members are still in the slots behind the ISR."""
    cluster, none_allowed = even_cluster(1, width=3, unregistered=0, fault_rate=0.0), np.zeros(64, np.uint8)
    cluster.partitions.isr_count[40] = 2
    rows = np.arange(64, dtype=np.int32)
    seen = [
        outputs_of(module, cluster, ElectionKind.OFFLINE, rows, none_allowed)
        for module in (_selectors, reference_selectors)
    ]
    assert seen[0] == seen[1]


@given(election_cases(), written)
def test_faults_are_counted_by_kind(case: ElectionCase, leaders: list[int]) -> None:
    rows = np.arange(len(case), dtype=np.int32)
    batch = election_batch(case.cluster, case.kind, rows, np.array(case.unclean_allowed, np.uint8))
    leader = np.array(leaders[: len(case)], np.int32)
    fault_count = sum(len(positions) for positions in find_faults(batch, leader).values())
    for module in (_selectors, reference_selectors):
        assert fault_count == violations(module, case, leader)


def violations(module: ModuleType, case: ElectionCase, leader: Int32) -> Any:
    """Return the violation count of a module."""
    p, live, count = case.cluster.partitions, case.cluster.brokers.live, len(case)
    rows, allowed = np.arange(count, dtype=np.int32), np.array(case.unclean_allowed, np.uint8)
    offsets, first = np.empty(count + 1, np.int32), np.empty(count, np.int16)
    values, may_lead = np.empty(p.slot_count, np.int32), np.empty(p.slot_count, np.uint8)
    module.gather_candidates(int(case.kind), rows, p, live, allowed, offsets, values, may_lead, first)
    return module.count_violations(int(case.kind), rows, p, live, allowed, first, leader)


@given(st.lists(st.lists(st.integers(0, 1), max_size=4), max_size=5), st.integers(-2, 2))
def test_take_first_equals_reference(lists: list[list[int]], beyond: int) -> None:
    """Also where list offsets exceed the values."""
    assigned, mask = Ragged.of(lists), np.array([hit for positions in lists for hit in positions], np.uint8)
    values, mask = np.arange(len(mask) + 2, dtype=np.int32), mask[: max(len(mask) + beyond, 0)].copy()
    outs = [np.full(len(lists), NO_LEADER, np.int32) for _ in range(2)]
    results = [
        module.take_first(assigned.offsets, values, mask, out)
        for module, out in zip((_selectors, reference_selectors), outs, strict=True)
    ]
    assert results[0] == results[1]
    assert outs[0].tolist() == outs[1].tolist()


@given(election_cases())
def test_shipped_selectors_equal_plain_loops(case: ElectionCase) -> None:
    rows = np.arange(len(case), dtype=np.int32)
    batch = election_batch(case.cluster, case.kind, rows, np.array(case.unclean_allowed, np.uint8))
    for selector, kinds in SHIPPED.items():
        if case.kind in kinds and selector.name != "controlled-shutdown-0.8.2":
            leader = run_selector(selector.name, selector, batch)
            assert leader.tolist() == [case.kafka_choice(row) for row in range(len(case))], selector.name


@given(election_cases())
def test_0_8_2_selector_elects_first_isr_member_not_shutting_down(case: ElectionCase) -> None:
    rows = np.arange(len(case), dtype=np.int32)
    batch = election_batch(case.cluster, case.kind, rows, np.array(case.unclean_allowed, np.uint8))
    (selector,) = (selector for selector in SHIPPED if selector.name == "controlled-shutdown-0.8.2")
    leaving = case.cluster.brokers.shutting_down
    expected = [
        next((broker for broker in batch.isr[row].tolist() if not leaving[broker]), NO_LEADER)
        for row in range(len(case))
    ]
    assert run_selector(selector.name, selector, batch).tolist() == expected
