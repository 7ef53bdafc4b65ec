"""Each kernel on the columns of a KRaft cluster equals its reference, and writes nothing but its OUT arrays.

The clusters have many rows, because kernels compare whole blocks of them and prefetch rows ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import Int32, Ragged
from kframe.model.kraft.columns import KraftPartitions, PartitionLists
from tests.kernels.compare import check_kernel, parameters
from verification import reference
from verification.reference import kraft_columns

pytestmark = pytest.mark.kernel

BROKERS: Final = 12


@dataclass(frozen=True, slots=True)
class Fixture:
    """Columns, and the other arguments by name."""

    partitions: KraftPartitions
    arguments: Mapping[str, Any]

    def value(self, name: str) -> Any:
        return self.arguments[name] if name in self.arguments else getattr(self.partitions, name)


def _random_lists(random: np.random.Generator, count: int, longest: int) -> Ragged:
    """Lists of ``longest`` values, a few of other lengths."""
    lengths = np.where(random.random(count) < 0.05, random.integers(0, longest + 1, count), longest)
    return Ragged.of([random.permutation(BROKERS)[:length].tolist() for length in lengths.tolist()])


@st.composite
def fixtures(draw: st.DrawFn) -> Fixture:
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, width = draw(st.integers(1, 400)), draw(st.integers(1, BROKERS))
    replicas, isr, none = _random_lists(random, n, width), _random_lists(random, n, width), Ragged.empty(n)
    members = _random_lists(random, n, draw(st.integers(0, 2)))
    directories = Ragged(replicas.offsets, random.integers(0, 9, len(replicas.values), np.int32))
    p = KraftPartitions()
    topics: Int32 = np.zeros(n, np.int32)
    p.append(
        PartitionLists(replicas, isr, directories, members, none, members, none),
        {"topic": topics, "partition": np.arange(n, dtype=np.int32), "leader": random.integers(-1, BROKERS, n)},
    )
    relocated = random.permutation(n)[: draw(st.integers(0, 3))]
    p.ensure_capacity(relocated, p.slot_capacity[relocated] + 1)
    rows = random.permutation(n)[: draw(st.integers(0, n))].astype(np.int32)
    k, lists = len(rows), _random_lists(random, len(rows), width)
    arguments = {
        "rows": rows,
        "count": p.isr_count,
        "values": p.isr,
        "broker": draw(st.integers(0, BROKERS - 1)),
        "target": draw(st.integers(0, 9)),
        "starts": p.slot_start[rows],
        "copied_offsets": p.lists("isr", rows).offsets,
        "offsets": lists.offsets,
        "members": lists.values,
        "new_leader": random.integers(-1, BROKERS, k).astype(np.int32),
        "new_recovery": random.integers(0, 2, k).astype(np.uint8),
        **{name: random.integers(0, 2, k).astype(np.uint8) for name in ("changed", "writes")},
        **{name: random.integers(0, 2, k).astype(np.uint8) for name in ("writes_leader", "writes_recovery")},
    }
    return Fixture(p, arguments)


def _n(fixture: Fixture) -> int:
    return len(fixture.partitions)


def _k(fixture: Fixture) -> int:
    return len(fixture.arguments["rows"])


#: OUT arrays by kernel with their sizes, and inputs of another name than their argument.
OUT: Final[Mapping[str, Mapping[str, Callable[[Fixture], int]]]] = {
    "copy_lists": {"copied": lambda fixture: int(fixture.arguments["copied_offsets"][-1])},
    "list_rows_in_directory": {"rows": _n},
    "list_rows_with_broker": {"rows": _n},
    "read_partitions": {
        "starts": _k,
        "leaders": _k,
        "replica_offsets": lambda fixture: _k(fixture) + 1,
        "isr_offsets": lambda fixture: _k(fixture) + 1,
    },
    "remove_from_lists": {
        "remaining_offsets": lambda fixture: _k(fixture) + 1,
        "remaining": lambda fixture: len(fixture.arguments["members"]),
    },
}
INPUTS: Final[Mapping[str, Mapping[str, str]]] = {
    "copy_lists": {"offsets": "copied_offsets"},
    "remove_from_lists": {"values": "members"},
}
#: Kernels that change columns, with these columns.
STORED: Final[Mapping[str, tuple[str, ...]]] = {
    "store_changes": ("leader", "leader_epoch", "recovery", "partition_epoch"),
    "store_isrs": ("isr_count", "isr"),
}


@given(fixture=fixtures())
def test_kernels_equal_references_and_write_only_out_arrays(fixture: Fixture) -> None:
    for name, sizes in OUT.items():

        def value(parameter: str, inputs: Mapping[str, str] = INPUTS.get(name, {})) -> Any:
            return fixture.value(inputs.get(parameter, parameter))

        check_kernel(name, value, {parameter: size(fixture) for parameter, size in sizes.items()}, set())


@given(fixture=fixtures())
def test_stored_columns_equal_those_of_references(fixture: Fixture) -> None:
    for name, stored in STORED.items():
        results = []
        for module in (kernels, reference):
            copies = {column: getattr(fixture.partitions, column).copy() for column in stored}
            arguments = [
                copies[parameter] if parameter in copies else fixture.value(parameter)
                for parameter in parameters(reference, name)
            ]
            count = getattr(module, name)(*arguments)
            results.append((count, {column: values.tolist() for column, values in copies.items()}))
        assert results[0] == results[1]


def test_every_kernel_is_compared() -> None:
    assert OUT.keys() | STORED.keys() == set(kraft_columns.__all__)
