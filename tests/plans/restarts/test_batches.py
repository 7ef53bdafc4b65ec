"""The batches of a rolling restart are safe, and as few as any order has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from kframe.errors import InputError
from kframe.model.kraft.ids import MetadataLevel
from kframe.plans.restarts.plan import RestartPlan, plan_restarts
from kframe.plans.restarts.report import report_document
from kframe.plans.restarts.request import RestartRequest
from kframe.snapshot import generate
from kframe.snapshot.facts import KraftFacts
from kframe.snapshot.generate import Health
from kframe.whatif import WhatIf
from tests.plans.restarts.clusters import Sample, cluster, fewest_batches, is_safe

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


@st.composite
def samples(draw: st.DrawFn) -> list[Sample]:
    """Up to 12 partitions on 6 brokers."""
    partitions: list[Sample] = []
    for _ in range(draw(st.integers(1, 12))):
        order = draw(st.permutations(range(1, 7)))
        replicas = order[: draw(st.integers(1, 4))]
        in_sync = draw(st.integers(1, len(replicas)))
        partitions.append((replicas[:in_sync], replicas[in_sync:], draw(st.integers(1, 3))))
    return partitions


def nodes_of(plan: RestartPlan) -> list[list[int]]:
    return [sorted(node for unit in batch for node in plan.units.nodes[unit]) for batch in plan.batches]


def exceeded_limits(plan: RestartPlan) -> list[int]:
    """Numbers of the limits that some batch exceeds."""
    limits, batches = plan.limits, [set(batch) for batch in plan.batches]
    counts = [
        dict(zip(limits.units[number].tolist(), limits.take(np.array([number])).members.tolist(), strict=True))
        for number in range(len(limits))
    ]
    return [
        number
        for number, members in enumerate(counts)
        if any(sum(members[unit] for unit in batch & members.keys()) > limits.capacity[number] for batch in batches)
    ]


@pytest.mark.parametrize("kraft", [False, True], ids=["zookeeper", "kraft"])
@given(data=st.data(), partitions=samples())
def test_batches_are_safe_and_fewest(data: Any, partitions: list[Sample], kraft: bool) -> None:
    request = RestartRequest(
        max_batch=data.draw(st.none() | st.integers(1, 3)),
        max_at_min_isr=data.draw(st.none() | st.integers(0, 4)),
    )
    snapshot = cluster(partitions, RACKS, kraft=kraft)
    plan = plan_restarts(snapshot, request)
    batches = nodes_of(plan)
    restarted = sorted(node for batch in batches for node in batch)
    assert restarted == [broker for broker in RACKS if not plan.blocked[broker - 1]]
    assert all(is_safe(partitions, batch) for batch in batches)
    assert not exceeded_limits(plan)
    for broker in RACKS:
        alone_safe = is_safe(partitions, [broker])
        assert alone_safe or plan.blocked[broker - 1]
    fewest = fewest_batches(partitions, restarted, request)
    assert plan.bound <= fewest == len(batches)
    if request.max_at_min_isr is None and len(batches) > plan.bound:
        exact = plan_restarts(snapshot, RestartRequest(max_batch=request.max_batch, exact=True))
        assert exact.bound == fewest


@given(samples())
def test_outcome_of_a_batch_is_that_of_a_what_if(partitions: list[Sample]) -> None:
    snapshot = cluster(partitions, RACKS)
    document = report_document(plan_restarts(snapshot, RestartRequest()))
    for batch in document.batches:
        assert batch.outcome is not None
        played = WhatIf(snapshot).fail(batch.brokers)
        counts = played.after.counts()
        assert (batch.outcome.offline, batch.outcome.under_min_isr) == (counts["offline"], counts["under_min_isr"])
        assert batch.outcome.at_min_isr == counts["at_min_isr"]
        assert (batch.outcome.newly_offline, batch.outcome.newly_under_min_isr) == (0, 0)


def test_unavoidable_harm_restarts_brokers_of_a_partition_apart() -> None:
    partitions: list[Sample] = [([1, 2], [], 2), ([3], [], 1), ([4, 5, 6], [], 2)]
    strict = plan_restarts(cluster(partitions, RACKS), RestartRequest())
    assert [node for unit in np.flatnonzero(strict.blocked).tolist() for node in strict.units.nodes[unit]] == [1, 2, 3]
    batches = nodes_of(plan_restarts(cluster(partitions, RACKS), RestartRequest(allow_unavoidable=True)))
    assert len(batches) == 3
    assert all(not {1, 2} <= set(batch) and len({4, 5, 6} & set(batch)) == 1 for batch in batches)


@pytest.mark.parametrize(
    ("goals", "batches"),
    [
        pytest.param({}, [[1, 4], [2, 5], [3, 6]], id="brokers-of-a-rack-share-no-partition"),
        pytest.param({"whole_racks": True}, [[1, 4], [2, 5], [3, 6]], id="whole-racks"),
        pytest.param({"max_batch": 1}, [[1], [2], [3], [4], [5], [6]], id="one-at-a-time"),
        pytest.param({"brokers": (1, 2, 4)}, [[1, 4], [2]], id="some-brokers"),
        pytest.param({"voters": (4, 5, 7)}, [[1, 4], [2, 5], [3, 6, 7]], id="quorum-keeps-its-majority"),
    ],
)
def test_requests(goals: dict[str, Any], batches: list[list[int]]) -> None:
    across_racks: list[Sample] = [([a, b, c], [], 2) for a in (1, 4) for b in (2, 5) for c in (3, 6)]
    plan = plan_restarts(cluster(across_racks, RACKS, kraft="voters" in goals), RestartRequest(**goals))
    assert nodes_of(plan) == batches
    assert plan.bound == len(batches)


@pytest.mark.parametrize("voters", [(), (4, 5, 7)])
def test_unknown_quorum_is_noted(voters: tuple[int, ...]) -> None:
    plan = plan_restarts(cluster([], RACKS, kraft=True), RestartRequest(voters=voters))
    note = "the controllers of the quorum are not in this input: --voters names them"
    assert (note in report_document(plan).notes) == (not voters)


def test_voters_of_the_snapshot_keep_their_majority() -> None:
    kraft = KraftFacts(features={"metadata.version": int(MetadataLevel.LATEST)}, voters=(1, 2, 3))
    snapshot = replace(cluster([], RACKS), kraft=kraft)
    plan = plan_restarts(snapshot, RestartRequest())
    assert all(len({1, 2, 3} & set(batch)) == 1 for batch in nodes_of(plan))
    with pytest.raises(InputError, match="voters: found 1, 2, expected those of the snapshot: 1, 2, 3"):
        plan_restarts(snapshot, RestartRequest(voters=(1, 2)))


@pytest.mark.parametrize(
    ("kraft", "config", "release"),
    [
        (True, {}, ("4.4", "assumed", False)),
        (True, {"kframe.kraft.release": "4.2"}, ("4.2", "stated", False)),
        (False, {}, None),
    ],
)
def test_document_has_the_release_of_kraft_clusters(
    kraft: bool, config: dict[str, str], release: tuple[str, str, bool] | None
) -> None:
    plan = plan_restarts(cluster([([1, 2], [], 1)], RACKS, kraft=kraft), RestartRequest(), config)
    record = report_document(plan, config).release
    assert (record and (record.release, record.source, record.matters)) == (release or UNSET)


def test_batches_of_one_rack() -> None:
    unrelated: list[Sample] = []
    assert len(plan_restarts(cluster(unrelated, RACKS), RestartRequest()).batches) == 1
    plan = plan_restarts(cluster(unrelated, RACKS), RestartRequest(same_rack=True))
    assert (nodes_of(plan), plan.bound) == ([[1, 4], [2, 5], [3, 6]], 3)


def test_active_controller_restarts_last() -> None:
    across: list[Sample] = [([1, 2], [], 1), ([2, 3], [], 1)]
    snapshot = replace(cluster(across, {1: None, 2: None, 3: None}), controller_id=1)
    assert nodes_of(plan_restarts(snapshot, RestartRequest())) == [[2], [1, 3]]


def test_partition_under_min_isr_must_stay_online() -> None:
    blocked = plan_restarts(cluster([([1], [2, 3], 2)], {1: None, 2: None, 3: None}), RestartRequest())
    document = report_document(blocked)
    assert [(item.nodes, item.cause) for item in document.blocked] == [([1], "offline")]
    assert not document.complete


@pytest.mark.parametrize(
    ("goals", "error"),
    [
        pytest.param({"brokers": (9,)}, "brokers: found broker 9, expected brokers that are up", id="unknown"),
        pytest.param({"brokers": (6,)}, "brokers: found broker 6, expected brokers that are up", id="down"),
        pytest.param({"whole_racks": True}, "whole_racks: found broker 5 without a rack", id="no-rack"),
        pytest.param({"max_batch": 0}, "max_batch: found 0, expected 1 or more nodes", id="empty-batches"),
        pytest.param({"voters": (1, 1)}, "voters: found node 1 twice", id="repeated"),
        pytest.param({"max_batch": 1, "whole_racks": True}, "max_batch: found whole racks", id="racks-are-whole"),
    ],
)
def test_refused_requests(goals: dict[str, Any], error: str) -> None:
    snapshot = cluster([([1, 2], [], 1)], {1: "a", 2: "b", 5: None, 6: "a"}, dead=[6])
    with pytest.raises(InputError, match=error):
        plan_restarts(snapshot, RestartRequest(**goals))


def test_partitions_with_the_same_isr_are_one_limit() -> None:
    snapshot = generate(100_000, 90, 3, racks=3, health=Health(min_insync=2))
    plan = plan_restarts(snapshot, RestartRequest())
    assert (len(plan.batches), plan.bound) == (3, 3)
    assert len(plan.limits) < 10_000
    assert plan.limits.partitions.sum() == 100_000
