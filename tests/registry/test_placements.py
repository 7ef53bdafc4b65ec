"""Cost terms and goals: equal functions of the three tiers are equal, and each invalid result is an error."""

from __future__ import annotations

import ctypes
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kframe.errors import PluginError
from kframe.kernels import _placements
from kframe.model.arrays import Int64
from kframe.model.lists import same_lists
from kframe.model.placements import COST_MAX, FORBIDDEN, GoalTotals, PlacementBatch
from kframe.plans.generate import plan
from kframe.registry.native import SIGNATURE, NativeFunction
from kframe.registry.placements import (
    PLACEMENT_SIGNATURE,
    CostTerm,
    PartitionPlacement,
    PlanGoal,
    make_cost_term,
    make_goal,
)
from kframe.registry.specs import CostTermSpec, GoalSpec, Tier
from kframe.snapshot.generate import generate
from kframe.testing.placement_checks import run_placement_checks
from kframe.testing.placement_contract import CostTermContract, GoalContract, random_placement
from tests.cli.running import kframe
from tests.registry import placement_reference
from tests.registry.conftest import Compiled
from tests.schemas import assert_valid

#: What native functions read as user data.
SHIFT = ctypes.c_int64(3)


def bulk_cost(batch: PlacementBatch) -> Int64:
    ids = batch.broker_ids
    replicas = np.bincount(batch.replicas.owners, ids[batch.replicas.values] % 3, minlength=len(batch)).astype(np.int64)
    row = SHIFT.value + batch.partition % 7 + batch.weight % 5 + replicas
    cost = (row[:, None] + ids[None, :]) % 11
    if len(ids) and batch.broker_rack[0] >= 0:
        cost[:, batch.broker_rack == batch.broker_rack[0]] = FORBIDDEN
    return cost.astype(np.int64)


def scalar_cost(placement: PartitionPlacement) -> dict[int, int]:
    first, *_ = placement.racks.values()
    replicas = sum(broker % 3 for broker in placement.replicas)
    row = SHIFT.value + placement.partition % 7 + placement.weight % 5 + replicas
    return {
        broker: FORBIDDEN if rack == first is not None else (row + broker) % 11
        for broker, rack in placement.racks.items()
    }


def bulk_weight(batch: PlacementBatch) -> Int64:
    return (SHIFT.value + batch.partition % 7 + batch.weight % 5 + batch.replicas.counts + 1).astype(np.int64)


def scalar_weight(placement: PartitionPlacement) -> int:
    return SHIFT.value + placement.partition % 7 + placement.weight % 5 + len(placement.replicas) + 1


@pytest.fixture(scope="session")
def native(compiled: Compiled) -> dict[str, NativeFunction]:
    address = ctypes.addressof(SHIFT)
    names = ("cost_by_everything", "weight_by_everything")
    return {name: compiled.function(name, address, PLACEMENT_SIGNATURE) for name in names}


def cost_terms(native: dict[str, NativeFunction]) -> dict[Tier, CostTerm]:
    functions = {Tier.BULK: bulk_cost, Tier.SCALAR: scalar_cost, Tier.NATIVE: native["cost_by_everything"]}
    return {
        tier: make_cost_term(CostTermSpec(tier, tier, lambda function=function: function, ""))  # type: ignore[misc]
        for tier, function in functions.items()
    }


def goals(native: dict[str, NativeFunction]) -> dict[Tier, PlanGoal]:
    functions = {Tier.BULK: bulk_weight, Tier.SCALAR: scalar_weight, Tier.NATIVE: native["weight_by_everything"]}
    return {
        tier: make_goal(GoalSpec(tier, tier, lambda function=function: function, ""))  # type: ignore[misc]
        for tier, function in functions.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_tiers_return_equal_results(native: dict[str, NativeFunction], seed: int) -> None:
    batch = random_placement(seed)
    expected = bulk_cost(batch)
    assert FORBIDDEN in expected or batch.broker_rack[0] < 0
    for term in cost_terms(native).values():
        assert np.array_equal(term.costs(batch), expected)
    for goal in goals(native).values():
        assert np.array_equal(goal.weights(batch), bulk_weight(batch))


def test_tiers_give_equal_plans(native: dict[str, NativeFunction]) -> None:
    snapshot = generate(120, 6, racks=3, seed=5)
    sizes = 50 + np.arange(len(snapshot), dtype=np.int64) % 40
    by_cost = [
        plan(snapshot, remove_brokers=(2,), rebalance=True, weights=sizes, tolerance=10.0, cost_terms=(term,))
        for term in cost_terms(native).values()
    ]
    by_goal = [plan(snapshot, remove_brokers=(2,), goal=goal, tolerance=10.0) for goal in goals(native).values()]
    for first, *others in (by_cost, by_goal):
        assert first.moves > 0
        for other in others:
            assert same_lists(first.after, other.after).all()
            assert (first.cost, first.bound, first.limits is None) == (other.cost, other.bound, other.limits is None)
    assert by_cost[0].term_cost > 0


@pytest.mark.parametrize("name, by_broker", [("cost_by_everything", True), ("weight_by_everything", False)])
def test_native_loop_equals_reference(native: dict[str, NativeFunction], name: str, by_broker: bool) -> None:
    assert ctypes.sizeof(placement_reference.Placement) == _placements.PLACEMENT_SIZE
    function = native[name]
    for batch in (random_placement(1, 30), random_placement(2, 0), random_placement(3, 4, 1, 0)):
        outputs = [np.zeros((len(batch), len(batch.broker_ids) if by_broker else 1), np.int64) for _ in range(2)]
        for call, output in zip((_placements.call_native, placement_reference.call_native), outputs, strict=True):
            call(
                function.address,
                function.user_data,
                batch.topic,
                batch.partition,
                batch.weight,
                batch.replicas.offsets,
                batch.replicas.values,
                batch.broker_ids,
                batch.broker_rack,
                by_broker,
                output,
            )
        assert np.array_equal(outputs[0], outputs[1])


def cost_term_returning(value: Any) -> CostTerm:
    return CostTerm("mine", lambda batch: value(batch) if callable(value) else value)


def zeros(batch: PlacementBatch) -> Int64:
    return np.zeros((len(batch), len(batch.broker_ids)), np.int64)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, r"found NoneType, expected an array int64 \(200, 12\)"),
        (lambda batch: zeros(batch).tolist(), "found list, expected an array"),
        (lambda batch: zeros(batch).astype(float), r"found an array float64 \(200, 12\), expected int64"),
        (lambda batch: np.full((200, 12), np.nan), r"found an array float64"),
        (lambda batch: zeros(batch).T, r"found an array int64 \(12, 200\), expected int64 \(200, 12\)"),
        (lambda batch: zeros(batch) - 1, r"found -1, expected 0 to 2\^53, or FORBIDDEN"),
        (lambda batch: zeros(batch) + COST_MAX + 1, r"found 9007199254740993, expected 0 to 2\^53"),
        (lambda batch: zeros(batch)[:, 99], "raised IndexError"),
        (lambda batch: batch.weight.fill(0), "raised ValueError: assignment destination is read-only"),
    ],
    ids=["none", "list", "floats", "nan", "shape", "negative", "large", "raises", "writes"],
)
def test_invalid_costs_name_term(value: Any, message: str) -> None:
    batch = random_placement(0)
    batch.weight.flags.writeable = False
    with pytest.raises(PluginError, match=f"cost term 'mine':? ?{message}"):
        cost_term_returning(value).costs(batch)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda placement: {0: 1.5}, "raised TypeError: audit-0: found 1.5, expected an integer"),
        (lambda placement: {-1: 1}, "raised ValueError: audit-0: found broker -1, expected one of racks"),
        (lambda placement: dict.fromkeys(placement.racks, -1), r"found -1, expected 0 to 2\^53"),
        (lambda placement: 3, "raised AttributeError"),
    ],
    ids=["float", "unknown broker", "negative", "no mapping"],
)
def test_invalid_scalar_costs_name_partition(function: Any, message: str) -> None:
    batch = replace(random_placement(0), broker_ids=np.arange(12, dtype=np.int32))
    term = make_cost_term(CostTermSpec("mine", Tier.SCALAR, lambda: function, ""))
    with pytest.raises(PluginError, match=f"cost term 'mine'.*{message}"):
        term.costs(batch)


@pytest.mark.parametrize("value", [None, True, 1.5])
def test_invalid_scalar_weights_name_goal(value: Any) -> None:
    goal = make_goal(GoalSpec("mine", Tier.SCALAR, lambda: lambda placement: value, ""))
    with pytest.raises(PluginError, match=f"goal 'mine' raised TypeError: audit-0: found {value}, expected an integer"):
        goal.weights(random_placement(0))


@pytest.mark.parametrize(
    ("tier", "factory", "message"),
    [
        (Tier.BULK, lambda: 3, "cost term 'mine': its factory returned int, expected a function"),
        (Tier.SCALAR, lambda: None, "its factory returned NoneType"),
        (Tier.BULK, lambda: 1 // 0, "'mine' cannot be made: ZeroDivisionError"),
        (Tier.NATIVE, lambda: 3, "cost term 'mine': found int, expected a PyCapsule or NativeFunction"),
        (Tier.NATIVE, lambda: NativeFunction(1, SIGNATURE), "its signature is 'int32_t"),
        (Tier.NATIVE, lambda: NativeFunction(0, PLACEMENT_SIGNATURE), "its address is 0"),
    ],
)
def test_factory_of_another_tier_is_an_error(tier: Tier, factory: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        make_cost_term(CostTermSpec("mine", tier, factory, ""))


class TestScalarCost(CostTermContract):
    spec = CostTermSpec("scalar", Tier.SCALAR, lambda: scalar_cost, "")


class TestBulkWeight(GoalContract):
    spec = GoalSpec("bulk", Tier.BULK, lambda: bulk_weight, "")


def changing(batch: PlacementBatch) -> Int64:
    batch.weight[:] = 1
    return zeros(batch)


def counting() -> Any:
    calls: list[int] = []

    def costs(batch: PlacementBatch) -> Int64:
        calls.append(1)
        return zeros(batch) + len(calls)

    return costs


def by_topic_index(batch: PlacementBatch) -> Int64:
    return zeros(batch) + batch.topic[:, None]


@pytest.mark.parametrize(
    ("factory", "failed"),
    [
        (lambda: lambda batch: zeros(batch)[:1], "answers-are-valid"),
        (counting, "same-placements-same-answer"),
        (lambda: changing, "leaves-the-placements-alone"),
        (lambda: lambda batch: zeros(batch) + 1 // len(batch), "small-clusters"),
        (lambda: by_topic_index, "single-partition-as-in-a-batch"),
    ],
    ids=["shape", "counting", "changing", "empty", "topic index"],
)
def test_each_check_fails_for_a_term_that_breaks_its_rule(factory: Any, failed: str) -> None:
    spec = CostTermSpec("mine", Tier.BULK, factory, "")
    findings = run_placement_checks(lambda: make_cost_term(spec))
    assert failed in {finding.check for finding in findings if finding.problem is not None}


def test_placement_batch_is_read_only_and_has_scope() -> None:
    received: list[PlacementBatch] = []

    def costs(batch: PlacementBatch) -> Int64:
        received.append(batch)
        return zeros(batch)

    snapshot = generate(30, 4, racks=2, seed=1)
    plan(snapshot, remove_brokers=(1,), topics=(snapshot.topics.names[0],), cost_terms=(CostTerm("mine", costs),))
    (batch,) = received
    assert {batch.topic_names[topic] for topic in batch.topic.tolist()} == {snapshot.topics.names[0]}
    assert len(batch) == snapshot.topics.partition_counts[0]
    assert batch.broker_receives.tolist() == [int(broker.broker_id != 1) for broker in snapshot.brokers]
    arrays = (
        batch.topic,
        batch.partition,
        batch.weight,
        batch.replicas.values,
        batch.replicas.offsets,
        batch.broker_ids,
        batch.broker_rack,
        batch.broker_receives,
    )
    assert not any(array.flags.writeable for array in arrays)


PLUGIN = """
import ctypes
import numpy as np
from kframe.plugin import CostTermSpec, GoalSpec, NativeFunction, PLACEMENT_SIGNATURE, Tier, hookimpl

LIBRARY = ctypes.CDLL({library!r})


def crashing():
    address = ctypes.cast(LIBRARY.crashing_cost, ctypes.c_void_p).value
    return NativeFunction(address, PLACEMENT_SIGNATURE, 0, LIBRARY)


def evens(placement):
    return {{broker: 2 for broker in placement.racks if broker % 2}}


def wrong(batch):
    return np.zeros(len(batch))


def ordinals(placement):
    return placement.partition + 1


@hookimpl
def kframe_cost_terms():
    return [
        CostTermSpec("evens", Tier.SCALAR, lambda: evens, "Even brokers are cheaper."),
        CostTermSpec("crashing", Tier.NATIVE, crashing, "Ends the process."),
        CostTermSpec("wrong", Tier.BULK, lambda: wrong, "Returns floats."),
    ]


@hookimpl
def kframe_goals():
    return [GoalSpec("ordinals", Tier.SCALAR, lambda: ordinals, "By number.", unit="points")]
"""


@pytest.fixture
def folder(compiled: Compiled, tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(PLUGIN.format(library=str(compiled.path)))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "code", "kind", "tier", "text"),
    [
        ("evens", 0, "cost term", "scalar", ""),
        ("ordinals", 0, "goal", "scalar", ""),
        ("crashing", 1, "cost term", "native", "the process crashed: SIGABRT"),
        ("wrong", 1, "cost term", "bulk", "found an array float64"),
    ],
)
def test_command_checks_terms_and_goals(folder: Path, name: str, code: int, kind: str, tier: str, text: str) -> None:
    result = kframe("plugins", "check", name, "--plugins-dir", folder, "-o", "json")
    assert result.exit_code == code, result.output
    assert text in result.stdout
    document = json.loads(result.stdout)
    assert_valid(document, "kframe.plugins.check/v1")
    assert [(row["offer"], row["kind"], row["tier"]) for row in document["rows"]] == [(name, kind, tier)] * 5


def test_commands_name_terms_and_goals(folder: Path) -> None:
    snapshot = "examples/clusters/kafka-3.9.1-six-brokers/healthy.zookeeper.jsonl.gz"
    options = ("--plugins-dir", folder, "--cost", "evens")
    result = kframe("plan", "generate", snapshot, "--remove-brokers", "4", "--goal", "ordinals", *options)
    assert result.exit_code == 0, result.output
    assert "with evens" in result.stdout
    assert "ordinals" in result.stdout
    assert "GOAL-BEFORE" in result.stdout
    shown = kframe("plugins", "show", "evens", "--plugins-dir", folder)
    assert "Even brokers are cheaper." in shown.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rebalance", "--cost", "eevns"), "no cost term 'eevns'; did you mean 'evens'?"),
        (("--goal", "ordinal"), "no goal 'ordinal'; did you mean 'ordinals'?"),
        (("--rebalance", "--goal", "ordinals"), "--goal: found rebalance, added brokers or weights"),
        (("--rebalance", "--cost", "wrong"), "cost term 'wrong': found an array float64"),
    ],
)
def test_errors_of_terms_end_command(folder: Path, options: tuple[str, ...], message: str) -> None:
    snapshot = "examples/clusters/kafka-3.9.1-six-brokers/healthy.zookeeper.jsonl.gz"
    result = kframe("plan", "generate", snapshot, "--plugins-dir", folder, *options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_goal_totals_cover_participating_brokers() -> None:
    received: list[GoalTotals] = []

    def limits(totals: GoalTotals) -> tuple[Int64, Int64]:
        received.append(totals)
        return np.zeros(len(totals.broker_ids), np.int64), np.full(len(totals.broker_ids), totals.total, np.int64)

    snapshot = generate(30, 4, racks=2, seed=1)
    goal = PlanGoal("mine", "points", lambda batch: np.full(len(batch), 2, np.int64), limits)
    proposal = plan(snapshot, goal=goal, exclude_brokers=(3,))
    part = proposal.problem.brokers.share > 0
    assert received[-1].total == int(proposal.loads()["goal_after"][part].sum())
    assert (received[-1].capacity > 0).tolist() == part.tolist()
