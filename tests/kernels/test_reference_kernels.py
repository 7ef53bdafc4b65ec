"""Each kernel equals its reference on any cluster, and writes nothing but its OUT arrays."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.kernels import _selectors
from kframe.model.arrays import Int32, Ragged
from kframe.model.cluster import ClusterState
from kframe.model.columns import COLUMNS
from kframe.model.ids import ElectionKind
from tests.cluster_strategies import clusters, subset
from tests.kernels.compare import call, check_kernel, parameters
from verification import reference
from verification.reference import (
    assignments,
    core,
    describe,
    kcat_topics,
    kraft_columns,
    kraft_partitions,
    list_checks,
    plan_cycles,
    plans,
    requests,
    restarts,
    selectors,
    stages,
    sweep,
    znode_lines,
)

pytestmark = pytest.mark.kernel


@dataclass(frozen=True, slots=True)
class KernelFixture:
    """A cluster and the other arguments of kernels."""

    cluster: ClusterState
    rows: Int32
    extra: Mapping[str, Any]

    def value(self, name: str) -> Any:
        """Return the argument of that name: a drawn value, or a column."""
        if name in self.extra:
            return self.extra[name]
        cluster = self.cluster
        others = {
            "rows": self.rows,
            "live": cluster.brokers.live,
            "shutting_down": cluster.brokers.shutting_down,
            "deleting": cluster.topics.deleting,
            "old_epoch": cluster.partitions.leader_epoch,
            "ids": cluster.brokers.ids,
            "old_leader": cluster.partitions.leader,
        }
        return others[name] if name in others else getattr(cluster.partitions, name)


@st.composite
def kernel_fixtures(draw: st.DrawFn) -> KernelFixture:
    cluster = draw(clusters())
    rows, brokers = subset(draw, len(cluster)), len(cluster.brokers)
    bits = st.integers(0, 1)
    pairs = draw(st.lists(st.tuples(st.integers(0, brokers - 1), st.integers(0, 99)), max_size=12))
    marks = draw(st.lists(bits, min_size=brokers, max_size=brokers))
    chosen_leaders = draw(st.lists(st.integers(0, brokers - 1), min_size=len(rows), max_size=len(rows)))
    lists = _lists_like(draw, cluster, rows)
    target = st.lists(st.integers(0, brokers - 1), max_size=4)
    targets = Ragged.of([draw(target) for _ in rows])
    unknown = draw(st.lists(st.booleans(), min_size=len(targets.values), max_size=len(targets.values)))
    missing = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    list_flags = draw(st.lists(st.integers(0, 7), min_size=len(lists.values), max_size=len(lists.values)))
    extra = {
        "kind": int(draw(st.sampled_from(ElectionKind))),
        "recovery_supported": draw(st.booleans()),
        "chosen": np.array(marks, np.uint8),
        "allowed_brokers": np.array(marks, np.uint8),
        "skip_flags": draw(st.integers(0, 7)),
        "new_flags": draw(st.integers(0, 7)),
        "target_offsets": targets.offsets,
        "targets": targets.values,
        "targets_or_unknown": np.where(unknown, np.int32(-1), targets.values).astype(np.int32),
        "rows_or_unknown": np.where(missing, np.int32(-1), rows).astype(np.int32),
        "state_mask": draw(st.integers(0, 255)),
        "chosen_leader": np.array(chosen_leaders, np.int32),
        "unclean_allowed": np.array(draw(st.lists(bits, min_size=len(rows), max_size=len(rows))), np.uint8),
        "list_offsets": lists.offsets,
        "list_values": lists.values,
        "list_flags": np.array(list_flags, np.uint8),
        "pair_brokers": np.array([broker for broker, _ in pairs], np.int32),
        "pair_rows": np.array([row for _, row in pairs], np.int32),
        "ranked_rows": np.repeat(rows, cluster.partitions.replica_count[rows]),
        "ranked_brokers": cluster.partitions.lists("replica", rows).values,
        "removed_brokers": np.array(chosen_leaders, np.int32),
        **_proposals(draw, cluster, rows, lists),
        "one_broker": draw(st.integers(0, brokers - 1)),
        "replica_slots": cluster.partitions.slots_of(rows).astype(np.int32),
    }
    return KernelFixture(cluster, rows, extra)


def _proposals(draw: st.DrawFn, cluster: ClusterState, rows: Int32, lists: Ragged) -> dict[str, Any]:
    """Draw ISRs that a leader proposes, many of them under the present epochs, and some the stored ones."""
    p = cluster.partitions
    isr = draw(st.sampled_from((lists, p.lists("isr", rows))))
    unknown = draw(st.lists(st.booleans(), min_size=len(isr.values), max_size=len(isr.values)))

    def drawn(values: st.SearchStrategy[int], size: int) -> Int32:
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), np.int32)

    newer, bits = st.sampled_from((0, 0, 0, -1, 1)), st.sampled_from((0, 0, 0, 1))
    return {
        "sender": int(p.leader[rows[0]]) if len(rows) else 0,
        "new_leader_epoch": p.leader_epoch[rows] + drawn(newer, len(rows)),
        "new_partition_epoch": p.partition_epoch[rows] + drawn(newer, len(rows)),
        "new_recovery": drawn(bits, len(rows)).astype(np.uint8),
        "isr_offsets": isr.offsets,
        "isr_values": np.where(unknown, np.int32(-1), isr.values) if draw(st.booleans()) else isr.values,
        "refused_members": drawn(bits, len(isr.values)).astype(np.uint8),
        "malformed": drawn(bits, len(rows)).astype(np.uint8),
    }


def _lists_like(draw: st.DrawFn, cluster: ClusterState, rows: Int32) -> Ragged:
    """Draw a list of broker indexes for each row: the assignment, reordered, or shortened."""
    lists = cluster.partitions.lists("replica", rows)
    orders = [draw(st.permutations(lists[i].tolist())) for i in range(len(rows))]
    return Ragged.of(
        [
            lists[i].tolist() if draw(st.booleans()) else values[: draw(st.integers(0, len(values)))]
            for i, values in enumerate(orders)
        ]
    )


def _k(fixture: KernelFixture) -> int:
    return len(fixture.rows)


def _n(fixture: KernelFixture) -> int:
    return len(fixture.cluster)


def _s(fixture: KernelFixture) -> int:
    return fixture.cluster.partitions.slot_count


def _b(fixture: KernelFixture) -> int:
    return len(fixture.cluster.brokers)


def _m(fixture: KernelFixture) -> int:
    return len(fixture.extra["pair_rows"])


def _replicas(fixture: KernelFixture) -> int:
    return int(fixture.cluster.partitions.replica_count[fixture.rows].sum())


def _targets_and_replicas(fixture: KernelFixture) -> int:
    return len(fixture.extra["targets"]) + _replicas(fixture)


def _members(fixture: KernelFixture) -> int:
    p = fixture.cluster.partitions
    return int(np.maximum(p.replica_count, p.isr_count)[fixture.rows].sum())


@dataclass(frozen=True, slots=True)
class Case:
    """The call of a kernel: the sizes of OUT arrays, and sources of arguments whose name is not that of a column."""

    out: Mapping[str, Callable[[KernelFixture], int]]
    inputs: Mapping[str, str]


CASES: Final[Mapping[str, Case]] = {
    "choose_leaders": Case({"leader": _k}, {}),
    "mark_offline_isrs": Case({"offline_isr": _k}, {}),
    "plan_elections": Case(
        {"leader_epoch": _k, "recovery": _k, "isr_offsets": lambda fixture: _k(fixture) + 1, "isr_values": _members},
        {"leader": "chosen_leader"},
    ),
    "plan_removals": Case(
        {
            **dict.fromkeys(("changed", "leader", "leader_epoch", "recovery", "expected"), _k),
            "isr_offsets": lambda fixture: _k(fixture) + 1,
            "isr_values": _members,
        },
        {"brokers": "removed_brokers"},
    ),
    "list_replicas_on": Case(dict.fromkeys(("replica_row", "positions", "slots"), _replicas), {}),
    "locate_replicas": Case({"positions": _k, "slots": _k}, {"broker": "one_broker"}),
    "mark_online_replicas": Case({"online": _replicas}, {"slots": "replica_slots"}),
    "mark_rows_of_topics": Case({"mask": _k}, {"chosen_topics": "deleting"}),
    "list_recipients": Case(
        {"brokers": _replicas, "announced": _replicas, "is_new": _replicas}, {"allowed": "allowed_brokers"}
    ),
    "check_isr_proposals": Case({"check": _k}, {"rows": "rows_or_unknown", "eligible": "allowed_brokers"}),
    "list_flagged": Case({"replica_row": _replicas, "positions": _replicas}, {"flags": "skip_flags"}),
    "mark_invalid_targets": Case({"invalid": _k}, {"rows": "rows_or_unknown", "targets": "targets_or_unknown"}),
    "mark_reassignment_progress": Case({"running": _k, "reached": _k}, {}),
    "plan_reassignments": Case(
        {"offsets": lambda fixture: _k(fixture) + 1, "values": _targets_and_replicas, "flags": _targets_and_replicas},
        {},
    ),
    "group_by_broker": Case(
        {"offsets": lambda fixture: _b(fixture) + 1, "grouped": _m, "origin": _m},
        {"brokers": "pair_brokers", "rows": "pair_rows"},
    ),
    "group_by_rank": Case(
        {
            "offsets": lambda fixture: _replicas(fixture) + 1,
            **dict.fromkeys(("origin", "grouped_rows", "grouped_brokers"), _replicas),
        },
        {"rows": "ranked_rows", "brokers": "ranked_brokers", "rank": "ids"},
    ),
    "check_transitions": Case({"valid": _k}, {"positions": "rows", "allowed": "state_mask"}),
    "list_stop_epochs": Case({"epochs": _k}, {}),
    "list_leaderless": Case({"rows": _n}, {}),
    "list_unassigned_isr_members": Case({"rows": _n}, {}),
    "list_in_states": Case({"rows": _n}, {"state_mask": "state_mask"}),
    "copy_assignments": Case(
        {"offsets": lambda fixture: _k(fixture) + 1, "values": _replicas, "flags": _replicas},
        {"flag_mask": "skip_flags", "broker_ids": "ids"},
    ),
    "mark_reassigned": Case(
        {"differs": _k},
        {"offsets": "list_offsets", "values": "list_values", "flags": "list_flags", "compared_flags": "skip_flags"},
    ),
    "count_by_broker": Case(dict.fromkeys(("leads", "preferred", "replicas", "in_sync"), _b), {}),
}

#: Kernels that change columns in place. Other tests compare them with their references.
COMPARED_ELSEWHERE: Final = {
    "assign_replicas",
    "build_replica_index",
    "count_replica_states",
    "initialize_partition_states",
    "initialize_replica_states",
    "read_replica_index",
    "set_replica_states",
    "set_replica_states_on",
    "size_replica_index",
    "store_states",
    "update_partition_counts",
    *assignments.__all__,
    *describe.__all__,
    *kcat_topics.__all__,
    *kraft_columns.__all__,
    *kraft_partitions.__all__,
    *list_checks.__all__,
    *plan_cycles.__all__,
    *plans.__all__,
    *requests.__all__,
    *restarts.__all__,
    *stages.__all__,
    *sweep.__all__,
    *znode_lines.__all__,
}

#: OUT arrays of uint8; all others are int32.
BYTES: Final = {
    "check",
    "offline_isr",
    "differs",
    "flags",
    "reached",
    "invalid",
    "is_new",
    "mask",
    "online",
    "recovery",
    "running",
    "valid",
    *(column.name for column in COLUMNS if column.dtype == np.uint8),
}


def arguments_of(name: str, fixture: KernelFixture) -> tuple[Callable[[str], Any], Mapping[str, int]]:
    """Return the inputs of a kernel by parameter, and the sizes of its OUT arrays."""
    case = CASES[name]
    sizes = {parameter: size(fixture) for parameter, size in case.out.items()}
    return lambda parameter: fixture.value(case.inputs.get(parameter, parameter)), sizes


def kernel_names(module: ModuleType) -> set[str]:
    return {name for name, member in vars(module).items() if inspect.isroutine(member)}


def test_every_kernel_has_reference_and_differential_test() -> None:
    assert kernel_names(reference) == kernel_names(kernels) == set(CASES) | COMPARED_ELSEWHERE
    assert core.DEBUG is False


@pytest.mark.parametrize(
    "name, module, twin",
    [(name, kernels, reference) for name in sorted(kernel_names(kernels))]
    + [(name, _selectors, selectors) for name in selectors.__all__],
)
def test_kernels_have_parameters_of_references(name: str, module: ModuleType, twin: ModuleType) -> None:
    """The stubs of the compiled modules declare the references."""
    assert parameters(module, name) == parameters(twin, name)


@pytest.mark.parametrize("before, outcome", [("", "True"), ("import kframe.kernels; ", "RuntimeError")])
def test_reference_kernels_replace_kernels_before_their_import(before: str, outcome: str) -> None:
    code = (
        f"{before}from verification import reference;"
        "from verification.reference.kernels import use_reference_kernels; use_reference_kernels();"
        "from kframe import kernels;"
        "print(kernels.choose_leaders is reference.choose_leaders)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert outcome in completed.stdout + completed.stderr


@given(fixture=kernel_fixtures())
def test_kernels_equal_references_and_write_only_out_arrays(fixture: KernelFixture) -> None:
    for name in CASES:
        check_kernel(name, *arguments_of(name, fixture), BYTES)


@given(fixture=kernel_fixtures())
def test_group_by_broker_without_origin(fixture: KernelFixture) -> None:
    value_of, sizes = arguments_of("group_by_broker", fixture)
    for module in (kernels, reference):
        with_origin = call(module, "group_by_broker", value_of, sizes, BYTES)
        without_origin = call(module, "group_by_broker", value_of, {**sizes, "origin": 0}, BYTES)
        assert without_origin[0] == with_origin[0]
        assert all((without_origin[1][name] == with_origin[1][name]).all() for name in ("offsets", "grouped"))
