"""The kernels of plans equal their references, on lists, loads and limits of any kind."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe import kernels
from kframe.model.arrays import offsets_of
from kframe.plans.generate.cycles import open_targets
from verification.reference import plan_cycles, plans

pytestmark = pytest.mark.kernel


@st.composite
def arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of every kernel of plans, by name: up to 8 brokers, 9 partitions and 4 slots a partition."""
    brokers, partitions = draw(st.integers(1, 8)), draw(st.integers(0, 9))
    numbers, rules = st.integers(0, 3), draw(st.integers(1, 3))

    def column(elements: st.SearchStrategy[Any], dtype: Any, size: int = brokers) -> Any:
        return np.array(draw(st.lists(elements, min_size=size, max_size=size)), dtype)

    lists = [draw(st.permutations(range(brokers)))[: draw(st.integers(0, 4))] for _ in range(partitions)]
    original = [draw(st.permutations(values)) if draw(st.booleans()) else values[::-1][1:] for values in lists]
    vacant = [[-1 if draw(st.integers(0, 5)) == 5 else broker for broker in values] for values in lists]
    flat = [broker for values in lists for broker in values]
    fewest = column(st.integers(0, 2), np.int32, rules * 4)
    lower = column(st.integers(0, 12), np.int64)
    path = draw(st.permutations(range(brokers)))[: draw(st.integers(2, 4))] if brokers > 1 else [0, 0]
    return {
        "order": np.array(draw(st.permutations(range(partitions)))[: draw(st.integers(0, partitions))], np.int32),
        "offsets": offsets_of([len(values) for values in lists]),
        "values": np.array(flat, np.int32),
        "full": np.array(flat, np.int16),
        "replica": np.array([broker for values in vacant for broker in values], np.int16),
        "original_offsets": offsets_of([len(values) for values in original]),
        "original": np.array([broker for values in original for broker in values], np.int16),
        "replication_factor": column(st.integers(1, 4), np.int32, partitions),
        "in_sync": column(st.integers(0, 1), np.uint8, len(flat)),
        "leaving": column(st.integers(0, 1), np.uint8),
        "rack": column(numbers, np.int32),
        "rule": column(st.integers(0, rules - 1), np.int32, partitions),
        "bounds": np.stack([fewest, fewest + column(st.integers(0, 2), np.int32, rules * 4)], 1).reshape(rules, 4, 2),
        "demanded": column(st.integers(0, 4), np.int32, 2 * partitions).reshape(partitions, 2),
        "share": column(st.sampled_from([0.0, 1.0, 1.0, 2.5]), np.float64),
        "cap": column(st.integers(0, 20), np.int64),
        "weight": column(st.sampled_from([1, 1, 2, 7]), np.int64, partitions),
        "load": column(st.integers(0, 20), np.int64),
        "count": column(st.integers(0, 20), np.int64),
        "led": column(st.integers(0, 20), np.int64),
        "lower": lower,
        "upper": lower + column(numbers, np.int64),
        "path": np.array(path, np.int32),
        "moved_only": column(st.integers(0, 1), np.uint8, len(path) - 1),
        "max_shifts": draw(numbers),
        "cursors": np.zeros(len(path) - 1, np.int32),
        "rows": np.zeros(len(path) - 1, np.int32),
        "spread": np.full((partitions, 2), 9, np.int32),
        "arcs": np.zeros((brokers, brokers), np.uint8),
        "slots": np.array(draw(st.permutations(range(len(flat)))), np.int32),
        "owner": np.repeat(np.arange(partitions, dtype=np.int32), [len(values) for values in lists]),
        "used": column(st.integers(0, 1), np.uint8, partitions),
        "source": draw(st.integers(0, brokers - 1)),
        "target": draw(st.integers(0, brokers - 1)),
        "rate": draw(st.integers(0, 2)),
        "weight_limit": draw(st.integers(0, 20)),
        "rates": np.full((brokers, brokers), 3, np.uint8),
        "surplus": column(numbers, np.int32, 2 * partitions).reshape(partitions, 2),
        "price": column(st.integers(-2, 2), np.int64),
        "targets": np.array(draw(st.permutations(range(brokers)))[: draw(st.integers(0, brokers))], np.int32),
        **{
            name: draw(st.booleans()) for name in ("over_only", "under_only", "within_limits", "first_slots", "leaders")
        },
    }


@given(inputs=arguments())
def test_each_kernel_equals_its_reference(inputs: dict[str, Any]) -> None:
    for reference in (plans, plan_cycles):
        for name in reference.__all__:
            check(reference, name, inputs)


def check(reference: ModuleType, name: str, inputs: dict[str, Any]) -> None:
    """Assert that a kernel returns and writes what its reference does."""
    # Leaders have lists without vacant slots.
    full = name in ("mark_leaders", "shift_leaders", "reorder_leaders")
    inputs = inputs | {
        "chosen": chosen_of(name, inputs),
        "costlier_targets": open_targets(inputs["rack"], inputs["share"]),
    }
    inputs["targets"] = inputs["targets"][np.argsort(inputs["price"][inputs["targets"]], kind="stable")]
    # Each list has slots for the replication factor.
    if name == "assign_at_prices":
        inputs["replication_factor"] = np.minimum(inputs["replication_factor"], np.diff(inputs["offsets"])).astype(
            np.int32
        )
    results = []
    for module in (kernels, reference):
        names = inspect.signature(getattr(reference, name)).parameters
        values = {key: inputs["full" if full and key == "replica" else key] for key in names}
        copies = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in values.items()}
        result = getattr(module, name)(*copies.values())
        results.append((result, copies))
    assert results[0][0] == results[1][0]
    for key, value in results[0][1].items():
        scratch = {"cursors", "rows", *(() if name == "collect_transfers" else ("chosen",))}
        if isinstance(value, np.ndarray) and key not in scratch:
            assert value.tolist() == results[1][1][key].tolist(), key


def chosen_of(name: str, inputs: dict[str, Any]) -> Any:
    """The OUT column of chosen slots, or of chosen brokers."""
    return np.full(len(inputs["slots"]), -1, np.int32) if name == "collect_transfers" else np.zeros(4, np.int16)
