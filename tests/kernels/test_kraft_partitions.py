"""Each kernel of KRaft's decision equals its reference on any cluster, and writes nothing but its OUT arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.arrays import Ragged
from kframe.model.kraft import directories
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.releases import CompletionRule
from tests.architecture.source import ROOT
from tests.kernels.compare import check_kernel
from tests.kraft.strategies import BROKERS, PARTITIONS, TOPICS, clusters
from verification.reference import kraft_partitions

pytestmark = pytest.mark.kernel

ROWS: Final = TOPICS * PARTITIONS


@dataclass(frozen=True, slots=True)
class Fixture:
    """A cluster, targets for some of its rows, and other arguments by name."""

    metadata: ClusterMetadata
    arguments: Mapping[str, Any]

    def value(self, name: str) -> Any:
        return self.arguments[name] if name in self.arguments else getattr(self.metadata.partitions, name)

    def count(self, name: str) -> int:
        return len(self.arguments[name])


@st.composite
def fixtures(draw: st.DrawFn) -> Fixture:
    metadata = draw(clusters())
    rows = np.array(draw(st.lists(st.integers(0, ROWS - 1), unique=True)), np.int32)
    k = len(rows)
    arguments: dict[str, Any] = {
        "rows": rows,
        "min_isr": np.array(draw(st.lists(st.integers(1, 4), min_size=k, max_size=k)), np.int32),
        "unclean_broker": draw(st.integers(-1, BROKERS - 1)),
        "active": metadata.brokers.active,
        "directory_brokers": metadata.directories.brokers,
        "lists_no_directory": metadata.brokers.lists_no_directory,
        "kinds": np.array(draw(st.lists(st.sampled_from(KraftElection), min_size=k, max_size=k)), np.uint8),
        "leader": metadata.partitions.leader[rows].astype(np.int32),
        "last_known_leader": np.array(draw(st.lists(brokers_or_none, min_size=k, max_size=k)), np.int32),
        "rule": draw(st.sampled_from(CompletionRule)),
        "starts": metadata.partitions.slot_start[rows],
    }
    stored = metadata.partitions.lists("replica", rows)
    arguments["stored_offsets"], arguments["stored"] = stored.offsets, stored.values
    bits = st.lists(st.integers(0, 1), min_size=len(stored.values), max_size=len(stored.values))
    arguments["acceptable"] = np.array(draw(bits), np.uint8)
    for name in ("replica", "isr", "elr", "adding", "removing", "target", "list", "other"):
        lists = Ragged.of([draw(st.lists(st.integers(0, BROKERS - 1), unique=True, max_size=4)) for _ in range(k)])
        values = {"replica": "replicas", "target": "target_isr", "list": "values", "other": "other_values"}
        arguments[f"{name}_offsets" if name != "list" else "offsets"] = lists.offsets
        arguments[values.get(name, name)] = lists.values
    return Fixture(metadata, arguments)


brokers_or_none = st.integers(-1, BROKERS - 1)


def _k(fixture: Fixture) -> int:
    return fixture.count("rows")


def _elr_room(fixture: Fixture) -> int:
    p, rows = fixture.metadata.partitions, fixture.arguments["rows"]
    return int(p.elr_count[rows].sum() + p.isr_count[rows].sum())


#: OUT arrays by kernel with their sizes, and inputs that differ from the argument of their name.
OUT: Final[Mapping[str, Mapping[str, Callable[[Fixture], int]]]] = {
    "mark_completed_reassignments": {
        "completed": _k,
        "keeps_replica": lambda fixture: fixture.count("replicas"),
        "keeps_member": lambda fixture: fixture.count("isr"),
    },
    "update_elrs": {"elr_offsets": lambda fixture: _k(fixture) + 1, "elr": _elr_room},
    "mark_acceptable_replicas": {"acceptable": lambda fixture: fixture.count("stored")},
    "choose_kraft_leaders": {"new_leader": _k, "unclean": _k},
    "mark_list_changes": {"differs": _k},
    "mark_missing_members": {"missing": _k},
}
INPUTS: Final[Mapping[str, Mapping[str, Callable[[Fixture], Any]]]] = {
    "mark_acceptable_replicas": {
        "offsets": lambda fixture: fixture.arguments["stored_offsets"],
        "replicas": lambda fixture: fixture.arguments["stored"],
    },
    "update_elrs": {"isr": lambda fixture: fixture.metadata.partitions.isr},
}
BYTES: Final = {"completed", "keeps_replica", "keeps_member", "acceptable", "unclean", "differs", "missing"}


@given(fixture=fixtures())
def test_kernels_equal_references_and_write_only_out_arrays(fixture: Fixture) -> None:
    for name, sizes in OUT.items():

        def value(parameter: str, inputs: Mapping[str, Callable[[Fixture], Any]] = INPUTS.get(name, {})) -> Any:
            return inputs[parameter](fixture) if parameter in inputs else fixture.value(parameter)

        check_kernel(name, value, {parameter: size(fixture) for parameter, size in sizes.items()}, BYTES)


def test_every_kernel_is_compared() -> None:
    assert set(OUT) == set(kraft_partitions.__all__)


def test_kernel_constants_equal_python_constants() -> None:
    text = (ROOT / "kframe" / "kernels" / "_kraft_partitions.pyx").read_text()
    enums = (("ELECTION", KraftElection), ("COMPLETION", CompletionRule), ("DIRECTORY", directories))
    for enum, values in ((name, vars(of)) for name, of in enums):
        constants = re.findall(rf"^    {enum}_(\w+) = (\d+)", text, re.MULTILINE)
        assert constants
        for name, value in constants:
            assert int(value) == values[name]
