"""The native tier: valid functions, equal content in C and in the batch, and a loop that equals its reference."""

from __future__ import annotations

import copy
import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kframe.core.selectors.lazy_view import election_batch
from kframe.core.selectors.leader_selection import Selection, choose_natively, find_faults
from kframe.errors import PluginError, ShapeError
from kframe.kernels import _selectors
from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.elections import ElectionBatch
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.registry.native import SIGNATURE, NativeFunction, NativeSelector
from kframe.testing.random_elections import random_cluster, random_election
from kframe.testing.selector_contract import SelectorContract
from tests.core.equal_rows import OFFLINE_BROKERS, even_cluster, even_rows
from tests.registry import native_reference
from tests.registry.conftest import Compiled

pytestmark = pytest.mark.kernel

KINDS = pytest.mark.parametrize("kind", ElectionKind, ids=lambda kind: kind.name)


def capsule_of(address: int, name: bytes | None, context: int = 0) -> object:
    """Return a PyCapsule as a C extension creates it. The capsule does not copy ``name``."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsule = new(address, name, None)
    set_context = ctypes.pythonapi.PyCapsule_SetContext
    set_context.argtypes = [ctypes.py_object, ctypes.c_void_p]
    set_context(capsule, context)
    return capsule


def elect(selector: NativeSelector, batch: ElectionBatch) -> Int32:
    leader = np.full(len(batch), NO_LEADER, np.int32)
    selector.elect(batch, leader)
    return leader


class TestLastInSync(SelectorContract):
    kinds = (ElectionKind.OFFLINE, ElectionKind.INITIAL, ElectionKind.REASSIGN, ElectionKind.CONTROLLED_SHUTDOWN)

    @pytest.fixture(autouse=True)
    def _function(self, compiled: Compiled) -> None:
        self._compiled = compiled

    def make_selector(self) -> NativeSelector:
        return NativeSelector("last-in-sync", self._compiled.function("last_in_sync"))


def test_election_struct_size_equals_reference() -> None:
    assert ctypes.sizeof(native_reference.Election) == _selectors.ELECTION_SIZE


@KINDS
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["last_in_sync", "from_everything", "always_out_of_range"])
def test_compiled_loop_equals_reference(compiled: Compiled, name: str, kind: ElectionKind, seed: int) -> None:
    batch = random_election(seed, kind)
    results = []
    for module in (_selectors, native_reference):
        counter, leader = ctypes.c_uint64(0), np.full(len(batch), 77, np.int32)
        count = module.elect(compiled.address(name), ctypes.addressof(counter), batch, leader)
        results.append((count, leader.tolist(), counter.value))
    assert results[0] == results[1]
    if name == "from_everything":
        leaders = results[0][1]
        assert len({*leaders} - {NO_LEADER, _selectors.INVALID_POSITION}) > 1
        assert {NO_LEADER, _selectors.INVALID_POSITION} < {*leaders}, "the draw covers every branch"


class ByBatch:
    """Return the same selector without its fast path, so that it receives batches as other tiers do."""

    def __init__(self, selector: NativeSelector) -> None:
        self.name = selector.name
        self.elect = selector.elect


@KINDS
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["last_in_sync", "from_everything", "always_out_of_range", "vandal"])
def test_column_choice_equals_batch_choice(compiled: Compiled, name: str, kind: ElectionKind, seed: int) -> None:
    """The selector ``vandal`` writes into its input, and the columns stay unchanged."""
    rows = np.random.default_rng(seed).permutation(200)[:150].astype(np.int32)
    allowed = (rows % 3 == 0).astype(np.uint8)
    results = []
    for short_cut in (True, False):
        cluster, untouched = random_cluster(seed), random_cluster(seed)
        native = NativeSelector("x", compiled.function(name))
        selection = Selection(
            {kind: native if short_cut else ByBatch(native)},
            lambda cluster, kind, rows, allowed: np.full(len(rows), -7, np.int32),
        )
        leader = selection.choose(cluster, kind, rows, allowed)
        results.append((leader.tolist(), dict(selection.faults)))
        for column in ("replica", "isr", "replica_status", "leader", "isr_count"):
            assert np.array_equal(getattr(cluster.partitions, column), getattr(untouched.partitions, column))
        assert cluster.brokers.ids.tolist() == untouched.brokers.ids.tolist()
    assert results[0] == results[1]


@KINDS
@pytest.mark.parametrize("unregistered", OFFLINE_BROKERS)
@pytest.mark.parametrize("width", [1, 3, 4, 9])
@pytest.mark.parametrize("name", ["last_in_sync", "from_everything", "always_out_of_range", "vandal"])
def test_bulk_choice_equals_batch_choice(
    compiled: Compiled, name: str, width: int, unregistered: int, kind: ElectionKind
) -> None:
    cluster = even_cluster(width, width, unregistered, fault_rate=0.05)
    for rows, allowed in even_rows(width, cluster):
        batch = election_batch(cluster, kind, rows, allowed)
        counters = [ctypes.c_uint64(0), ctypes.c_uint64(0)]
        calls = [NativeSelector("x", compiled.function(name, ctypes.addressof(counter))) for counter in counters]
        expected, leader = np.full(len(rows), 77, np.int32), np.full(len(rows), 77, np.int32)
        calls[0].elect(batch, expected)
        violations = choose_natively(calls[1].native, cluster, kind, rows, allowed, leader)
        faults = find_faults(election_batch(cluster, kind, rows, allowed), expected)
        assert violations == sum(len(positions) for positions in faults.values())
        assert counters[0].value == counters[1].value
        wrong = np.concatenate([rows[:0], *faults.values()])
        assert np.delete(leader, wrong).tolist() == np.delete(expected, wrong).tolist()


@pytest.mark.parametrize(
    "spelling",
    [
        SIGNATURE,
        "int32_t (kframe_election const *, void *)",
        "int32_t (*)(const struct kframe_election *election, void *user_data)",
        "int32_t(const kframe_election*,void*)",
    ],
)
def test_capsule_is_accepted_under_any_spelling(compiled: Compiled, spelling: str) -> None:
    counter, name = ctypes.c_uint64(0), spelling.encode()
    capsule = capsule_of(compiled.address("from_everything"), name, ctypes.addressof(counter))
    batch = random_election(1, ElectionKind.OFFLINE)
    reference = NativeSelector("x", compiled.function("from_everything"))
    assert elect(NativeSelector("x", capsule), batch).tolist() == elect(reference, batch).tolist()
    assert counter.value, "the capsule's context is the user data"


@pytest.mark.parametrize(
    "signature",
    [
        "int (const kframe_election *, void *)",
        "int32_t (kframe_election *, void *)",
        "int32_t (const kframe_election *)",
        "int32_t (const kframe_election *, void *, int32_t)",
        "int32_t (const kframe_election **, void *)",
        "double (double, void *)",
        "kframe.selector",
        "int32_t (,)",
        "",
    ],
)
def test_another_signature_is_refused(compiled: Compiled, signature: str) -> None:
    address, name = compiled.address("last_in_sync"), signature.encode()
    for source in (capsule_of(address, name), NativeFunction(address, signature)):
        with pytest.raises(PluginError) as caught:
            NativeSelector("odd", source)
        assert str(caught.value) == f"native selector 'odd': its signature is {signature!r}, expected {SIGNATURE!r}"


@pytest.mark.parametrize(
    "source", [None, 4711, "last_in_sync", lambda election: 0], ids=lambda source: type(source).__name__
)
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(PluginError, match="expected a PyCapsule or NativeFunction"):
        NativeSelector("odd", source)


def test_capsule_without_name_is_refused(compiled: Compiled) -> None:
    with pytest.raises(PluginError, match="the capsule has no name"):
        NativeSelector("odd", capsule_of(compiled.address("last_in_sync"), None))


def test_null_pointer_is_refused() -> None:
    with pytest.raises(PluginError, match="its address is 0"):
        NativeSelector("odd", NativeFunction(0, SIGNATURE))


def test_ctypes_callback_is_accepted() -> None:
    """A ctypes callback is slow and takes the GIL for every partition, but it is a C function."""
    last = native_reference.SELECT(lambda election, user_data: election.contents.candidate_count - 1)
    address = ctypes.cast(last, ctypes.c_void_p).value
    assert address
    batch = random_election(5, ElectionKind.OFFLINE)
    leader = elect(NativeSelector("last", NativeFunction(address, SIGNATURE, owner=last)), batch)
    assert leader.tolist() == [batch.candidates[index][-1] for index in range(len(batch))]


def shortened(lists: Ragged) -> list[Ragged]:
    """Lists with one too few, and lists without a value."""
    return [Ragged(lists.offsets[:-1], lists.values), Ragged(lists.offsets, lists.values[:-1])]


@pytest.mark.parametrize(
    "field",
    [
        "topic",
        "partition",
        "leader",
        "leader_epoch",
        "unclean_allowed",
        "eligible",
        "in_sync",
        "may_lead",
        "broker_live",
        "candidates",
        "isr",
    ],
)
def test_inconsistent_batch_is_not_passed_to_c(compiled: Compiled, field: str) -> None:
    batch = random_election(7, ElectionKind.OFFLINE)
    column: Any = getattr(batch, field)
    for short in shortened(column) if isinstance(column, Ragged) else [column[:-1]]:
        changed: dict[str, Any] = {field: short}
        with pytest.raises(ShapeError, match="contradict"):
            elect(NativeSelector("x", compiled.function("crash")), replace(batch, **changed))


def elect_none(cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
    return np.full(len(rows), NO_LEADER, np.int32)


def test_write_through_const_cannot_make_a_choice_eligible(compiled: Compiled) -> None:
    cluster, rows = random_cluster(8), np.arange(200, dtype=np.int32)
    before = copy.deepcopy(cluster)
    selection = Selection({ElectionKind.OFFLINE: NativeSelector("vandal", compiled.function("vandal"))}, elect_none)
    batch = random_election(8, ElectionKind.OFFLINE)
    leader = selection.choose(cluster, ElectionKind.OFFLINE, rows, batch.unclean_allowed)
    assert selection.faults.total() > 0
    assert find_faults(batch, leader) == {}
    assert np.array_equal(before.partitions.replica, cluster.partitions.replica)
