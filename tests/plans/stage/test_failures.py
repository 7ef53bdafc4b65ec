"""The harm of each failure in each stage equals that of what-ifs on the same states."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from kframe import WhatIf
from kframe.core.kraft.replay import replay
from kframe.model.kraft.ids import ELR_VERSION
from kframe.model.kraft.records import BrokerRegistrationChangeRecord
from kframe.model.plan import Plan
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.check.rules import Phase
from kframe.plans.stage.failures import PHASES, stage_failures, staged_partitions
from kframe.plans.stage.problem import stage_problem
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.schedule import StageSchedule, schedule
from kframe.snapshot import Snapshot, generate

CONFIG = {"min.insync.replicas": 2}
ZOOKEEPER = generate(40, 5, 3, racks=2, seed=2)
KRAFT = ZOOKEEPER.with_mode("kraft")


def fenced(elr: int) -> Snapshot:
    """The cluster after broker 4 was fenced, with or without ELR, and with a cordoned directory of broker 0."""
    what_if = WhatIf(KRAFT, {ELR_VERSION: elr})
    what_if.fail([4])
    metadata = what_if.cluster
    registration = metadata.brokers.registrations[0]
    cordoned = BrokerRegistrationChangeRecord(
        broker_id=0, broker_epoch=registration.broker_epoch, cordoned_log_dirs=registration.directories
    )
    replay(metadata, cordoned, 10**6)
    return Snapshot.from_metadata(metadata, source=ZOOKEEPER.source)


SNAPSHOTS = {
    "zookeeper": ZOOKEEPER,
    "kraft": KRAFT,
    "kraft with ELR, a fenced broker and a cordoned one": fenced(1),
    "the same without ELR": fenced(0),
}


def staged(snapshot: Snapshot, seed: int) -> StageSchedule:
    """A plan that gives half of the partitions one to three random brokers, two copies a broker and stage."""
    random = np.random.default_rng(seed)
    ids = [facts.broker_id for facts in snapshot.brokers]
    rows = random.permutation(len(snapshot))[: len(snapshot) // 2].tolist()
    names = [snapshot.topics.name_of_row(row).rpartition("-") for row in rows]
    targets = [random.permutation(ids)[: random.integers(1, 4)].tolist() for _ in rows]
    plan = Plan.of([((topic, int(number)), list_) for (topic, _, number), list_ in zip(names, targets, strict=True)])
    return schedule(stage_problem(resolve_plan(plan, snapshot), StageRequest(moves_per_broker=2)))


def conditions(snapshot: Snapshot, broker_id: int | None) -> tuple[set[int], set[int]]:
    """Rows that are offline and under min ISR after a failure."""
    what_if = WhatIf(snapshot, CONFIG)
    if broker_id is not None:
        what_if.fail([broker_id])
    health = what_if.health()
    assert health.under_min_isr is not None
    return set(np.flatnonzero(health.offline).tolist()), set(np.flatnonzero(health.under_min_isr).tolist())


@pytest.mark.parametrize(("mode", "seed"), list(product(SNAPSHOTS, range(2))))
def test_harm_after_stage_equals_what_ifs(mode: str, seed: int) -> None:
    snapshot, phase = SNAPSHOTS[mode], PHASES[1]
    result = staged(snapshot, seed)
    expected = what_if_harm(result, phase)
    counted: Counter[tuple[int, int | None, str]] = Counter()
    for number, failures in stage_failures(result, CONFIG).items():
        for failure in failures:
            if failure.phase == phase:
                counted[number, failure.broker_id, "offline"] += failure.offline
                counted[number, failure.broker_id, "under"] += failure.under_min_isr or 0
    assert +counted == expected


def what_if_harm(result: StageSchedule, phase: Phase) -> Counter[tuple[int, int | None, str]]:
    """The same counts by a what-if for each failure, before and in the phase."""
    checked = result.problem.checked
    snapshot = checked.snapshot
    changed = replace(snapshot, partitions=staged_partitions(result, phase))
    stage_of = dict(zip(checked.rows[result.problem.positions].tolist(), result.stage.tolist(), strict=True))
    harm: Counter[tuple[int, int | None, str]] = Counter()
    none: dict[str, set[int]] = {}
    up = [
        facts.broker_id
        for facts in snapshot.brokers
        if facts.registered and not (facts.registration and facts.registration.fenced)
    ]
    for broker_id in (None, *up):
        states = zip(conditions(snapshot, broker_id), conditions(changed, broker_id), strict=True)
        for name, (before, after) in zip(("offline", "under"), states, strict=True):
            new_rows = (after - before) & stage_of.keys()
            if broker_id is None:
                none[name] = new_rows
            for row in new_rows - (set() if broker_id is None else none[name]):
                harm[stage_of[row], broker_id, name] += 1
    return harm


def test_adding_replicas_causes_no_harm() -> None:
    snapshot = SNAPSHOTS["zookeeper"]
    replicas = [snapshot.partitions.replicas[row].tolist() for row in range(len(snapshot))]
    names = [snapshot.topics.name_of_row(row).rpartition("-") for row in range(len(snapshot))]
    targets = [[*list_, *({0, 1, 2, 3, 4} - set(list_))] for list_ in replicas]
    plan = Plan.of([((topic, int(number)), list_) for (topic, _, number), list_ in zip(names, targets, strict=True)])
    result = schedule(stage_problem(resolve_plan(plan, snapshot), StageRequest(moves_per_broker=2)))
    assert stage_failures(result, {"min.insync.replicas": 3}) == {}
