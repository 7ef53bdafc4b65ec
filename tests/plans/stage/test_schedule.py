"""A plan in stages keeps every limit in every stage, and has each reassignment of the plan once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.errors import InputError
from kframe.model.plan import Plan
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.file.read import plan_of
from kframe.plans.stage.manifest import StageManifest, manifest_text
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.stages import StagedPlan, stage_plan
from kframe.plans.stage.windows import parse_windows
from kframe.snapshot import generate
from tests.plans.generate.clusters import snapshot_of

BROKERS = 5
SNAPSHOT = generate(12, BROKERS, 2, racks=2, seed=3)
NAMES = [(SNAPSHOT.topics.name_of_row(row).rsplit("-", 1)) for row in range(len(SNAPSHOT))]
PARTITIONS = [(topic, int(number)) for topic, number in NAMES]
BEFORE = [SNAPSHOT.partitions.replicas[row].tolist() for row in range(len(SNAPSHOT))]


@st.composite
def plans(draw: st.DrawFn) -> tuple[Plan, dict[str, Any]]:
    chosen = draw(st.lists(st.sampled_from(PARTITIONS), unique=True, min_size=1))
    targets = [draw(st.permutations(range(BROKERS)))[: draw(st.integers(1, 4))] for _ in chosen]
    limits = {
        "moves_per_broker": draw(st.none() | st.integers(1, 3)),
        "moves": draw(st.none() | st.integers(1, 6)),
        "bytes_per_broker": draw(st.none() | st.integers(5, 20)),
        "bytes_in_flight": draw(st.none() | st.integers(5, 40)),
        "disk_capacity": {None: draw(st.integers(20, 80))} if draw(st.booleans()) else {},
        "weights": np.array(draw(st.lists(st.integers(0, 9), min_size=len(SNAPSHOT), max_size=len(SNAPSHOT)))),
    }
    return Plan.of(list(zip(chosen, targets, strict=True))), limits


def staged(plan: Plan, limits: dict[str, Any]) -> StagedPlan:
    return stage_plan(resolve_plan(plan, SNAPSHOT), StageRequest(**limits), {"min.insync.replicas": 1}, files=True)


@given(plans())
def test_every_stage_is_within_limits(case: tuple[Plan, dict[str, Any]]) -> None:
    plan, limits = case
    manifest = staged(plan, limits).manifest
    used = [sum(int(limits["weights"][row]) for row, list_ in enumerate(BEFORE) if b in list_) for b in range(BROKERS)]
    capacity = limits["disk_capacity"].get(None, 10**9)
    for stage in manifest.stages:
        copies = [(row, set(row.replicas) - set(row.before)) for row in stage.reassignments]
        moves = sum(len(added) for _, added in copies)
        size = sum(len(added) * (row.bytes or 0) for row, added in copies)
        assert (stage.moves, stage.bytes) == (moves, size)
        if stage.alone:
            assert len(stage.reassignments) == 1
        loads = [loads_of(broker, copies) for broker in range(BROKERS)]
        for broker, (moves_in, moves_out, bytes_in, bytes_out) in enumerate(loads):
            if not stage.alone:
                assert max(moves_in, moves_out) <= (limits["moves_per_broker"] or 10**9)
                assert max(bytes_in, bytes_out) <= (limits["bytes_per_broker"] or 10**9)
            assert not bytes_in or used[broker] + bytes_in <= capacity
            used[broker] += bytes_in - sum(
                row.bytes or 0 for row, _ in copies if broker in set(row.before) - set(row.replicas)
            )
        if not stage.alone:
            assert moves <= (limits["moves"] or 10**9)
            assert size <= (limits["bytes_in_flight"] or 10**9)


def loads_of(broker: int, copies: list[tuple[Any, set[int]]]) -> tuple[int, int, int, int]:
    """Replicas and bytes into a broker and out of it; the leader is the source."""
    assert SNAPSHOT.partitions.leader is not None
    received = [row.bytes for row, added in copies if broker in added]
    sent = [
        row.bytes
        for row, added in copies
        for _ in added
        if int(SNAPSHOT.partitions.leader[PARTITIONS.index((row.topic, row.partition))]) == broker
    ]
    return len(received), len(sent), sum(received), sum(sent)


@given(plans())
def test_stages_together_equal_plan(case: tuple[Plan, dict[str, Any]]) -> None:
    plan, limits = case
    result = staged(plan, limits)
    texts = dict(result.documents())
    assert list(texts) == [stage.file for stage in result.manifest.stages]
    rows = [row for stage in result.manifest.stages for row in stage.reassignments]
    files = [plan_of(text.encode(), name, name).targets for name, text in texts.items()]
    written = [(name, list(targets.replicas[i])) for targets in files for i, name in enumerate(targets.partitions())]
    assert written == [((row.topic, row.partition), row.replicas) for row in rows]
    unstaged = {(row.topic, row.partition) for row in result.manifest.unstaged}
    planned = {name: plan.targets.replicas[i].tolist() for i, name in enumerate(plan.targets.partitions())}
    assert len(rows) + len(unstaged) == len(planned)
    assert dict(written) == {name: replicas for name, replicas in planned.items() if name not in unstaged}
    assert all(row.reason == "disk" for row in result.manifest.unstaged)


@given(plans())
def test_schedule_is_deterministic_and_at_least_its_bound(case: tuple[Plan, dict[str, Any]]) -> None:
    first, second = (staged(*case).manifest for _ in range(2))
    assert manifest_text(first) == manifest_text(second)
    assert first.bound <= len(first.stages)
    assert first.gap == pytest.approx(len(first.stages) / first.bound - 1 if first.bound else 0)


def manifest_of(rows: dict[int, list[int]], size: int = 10, **limits: Any) -> StageManifest:
    plan = Plan.of([(PARTITIONS[row], replicas) for row, replicas in rows.items()])
    return staged(plan, {"weights": np.full(len(SNAPSHOT), size), **limits}).manifest


def test_full_disk_is_relieved_first() -> None:
    full = BEFORE[0][0]
    free = next(b for b in range(BROKERS) if b not in BEFORE[0])
    mover = next(row for row, list_ in enumerate(BEFORE) if full not in list_ and free not in list_)
    rows = {mover: [full, *BEFORE[mover][1:]], 0: [free, *BEFORE[0][1:]]}
    used = 10 * sum(full in list_ for list_ in BEFORE)
    manifest = manifest_of(rows, disk_capacity={full: used})
    assert [[row.partition for row in stage.reassignments] for stage in manifest.stages] == [
        [PARTITIONS[0][1]],
        [PARTITIONS[mover][1]],
    ]
    assert manifest.unstaged == []


def test_overfilled_disk_is_reported_with_missing_bytes() -> None:
    target = next(b for b in range(BROKERS) if b not in BEFORE[0])
    used = 10 * sum(target in list_ for list_ in BEFORE)
    manifest = manifest_of({0: [*BEFORE[0], target]}, disk_capacity={target: used + 3})
    assert [row.detail for row in manifest.unstaged] == [f"broker {target} lacks 7 bytes"]
    assert f"no order exists: after the plan broker {target} needs 7 bytes more than its capacity" in manifest.notes


def test_windows_limit_stage_length_and_set_begin() -> None:
    rows = {row: [next(b for b in range(BROKERS) if b not in BEFORE[row]), *BEFORE[row][1:]] for row in range(6)}
    windows = parse_windows(["23:00-01:00"])
    manifest = manifest_of(rows, size=3600, rate=1, windows=windows)
    assert manifest.limits.bytes_per_broker == 7200
    for stage in manifest.stages:
        assert stage.seconds is not None
        assert stage.seconds <= 7200
        assert stage.window is not None
    assert manifest.stages[0].window.begin == "23:00:00"  # type: ignore[union-attr]


@pytest.mark.parametrize("texts", [["22:00"], ["25:00-26:00"], ["01:00-01:00"], ["22:00-02:00", "01:00-03:00"]])
def test_malformed_or_overlapping_windows_are_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match="window"):
        parse_windows(texts)


def test_rack_gaining_reassignments_come_first_and_losing_last() -> None:
    """Brokers 1, 3 and 5 are in rack a, 2 and 4 in rack b."""
    racks = {broker: "a" if broker % 2 else "b" for broker in range(1, 6)}
    snapshot = snapshot_of({"t": [[1, 2], [1, 4], [1, 3], [1, 2], [3, 1]]}, racks)
    targets = {0: [1, 5], 1: [1, 2], 2: [1, 4], 3: [1, 3], 4: [3, 2]}
    plan = Plan.of([(("t", partition), replicas) for partition, replicas in targets.items()])
    manifest = stage_plan(resolve_plan(plan, snapshot), StageRequest(moves=1), {"min.insync.replicas": 1}).manifest
    order = [row.partition for stage in manifest.stages for row in stage.reassignments]
    assert (set(order[:2]), order[2], set(order[3:])) == ({2, 4}, 1, {0, 3})
