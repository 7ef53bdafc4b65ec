"""On random clusters, a sweep's result of every failure equals the what-if of that failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.arrays import Ragged
from kframe.snapshot import BrokerFacts, PartitionFacts, Snapshot, Source, TopicFacts
from kframe.whatif import FailOn, Outcome, WhatIf
from kframe.whatif.sweep import sweep
from tests.cluster_strategies import clusters
from verification.support.properties import examples

#: (a topic's configs).
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "min.insync.replicas": st.integers(1, 4).map(str),
        "unclean.leader.election.enable": st.sampled_from(["true", "false"]),
    },
)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """A cluster of up to five brokers, some of them not registered.

    Partitions may lack ISR members, leaders or states, or be under reassignment. Topics may be under deletion.
    """
    ids = sorted(draw(st.sets(st.integers(0, 99), min_size=1, max_size=5)))
    racks = st.sampled_from(["a", "b", "c", None])
    brokers = tuple(BrokerFacts(broker_id, draw(st.integers(0, 4)) > 0, 7, (), draw(racks)) for broker_id in ids)
    counts = draw(st.lists(st.integers(0, 5), max_size=4))
    lists: dict[str, list[list[int]]] = {"replicas": [], "isr": [], "adding": [], "removing": []}
    leader, version = [], []
    for _ in range(sum(counts)):
        replicas = draw(st.permutations(ids))[: draw(st.integers(1, len(ids)))]
        stated = draw(st.integers(0, 7)) > 0
        isr = (
            [broker_id for broker_id in draw(st.permutations(replicas)) if draw(st.integers(0, 3)) > 0]
            if stated
            else []
        )
        lists["replicas"].append(list(replicas))
        lists["isr"].append(isr)
        moving = draw(st.integers(0, 5)) == 0
        for name in ("adding", "removing"):
            lists[name].append([broker_id for broker_id in replicas if moving and draw(st.booleans())])
        leader.append(draw(st.sampled_from([-1, *replicas, *isr, *isr, *isr])) if stated else -1)
        version.append(draw(st.integers(0, 9)) if stated else -1)
    topics = TopicFacts(
        tuple(f"t{number}" for number in range(len(counts))),
        np.array(counts, np.int32),
        deleting=np.array([draw(st.integers(0, 3)) == 0 for _ in counts], np.uint8),
        configs=draw(st.none() | st.fixed_dictionaries(dict.fromkeys(range(len(counts)), CONFIGS))),
    )
    partitions = PartitionFacts(
        Ragged.of(lists["replicas"]),
        np.array(leader, np.int32),
        Ragged.of(lists["isr"]),
        partition_epoch=np.array(version, np.int32),
        adding_replicas=Ragged.of(lists["adding"]),
        removing_replicas=Ragged.of(lists["removing"]),
    )
    return Snapshot(brokers, topics, partitions, Source("drawn", ""))


def configs() -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "min.insync.replicas": st.integers(1, 3),
            "unclean.leader.election.enable": st.booleans(),
            "delete.topic.enable": st.booleans(),
        },
    )


def values_of(outcome: Outcome) -> dict[str, Any]:
    """Return the sweep's values of a failure, computed from its what-if."""
    impact, skew = outcome.impact, outcome.after.leader_skew
    return {
        **{
            name: outcome.after.counts()[name]
            for name in ("offline", "under_min_isr", "at_min_isr", "needs_unclean_election")
        },
        "newly_offline": impact.newly_offline,
        "newly_under_min_isr": impact.newly_under_min_isr,
        "unclean_elections": impact.unclean_elections,
        "newly_may_lose_data": outcome.count_of(FailOn.POSSIBLE_DATA_LOSS),
        "leaders_moved": impact.leaders_moved,
        "leaders_max": skew.max,
        "leaders_mean": skew.mean,
        "leader_skew": skew.max_mean_ratio,
    }


def failures_of(snapshot: Snapshot, up: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
    """Every broker, pair and rack of the registered brokers."""
    racks: dict[str, tuple[int, ...]] = {}
    for broker in snapshot.brokers:
        if broker.rack is not None and broker.broker_id in up:
            racks[broker.rack] = (*racks.get(broker.rack, ()), broker.broker_id)
    failures: list[tuple[str, tuple[int, ...]]] = [("broker", (broker_id,)) for broker_id in up]
    failures += [("pair", pair) for pair in combinations(up, 2)]
    return [*failures, *(("rack", racks[name]) for name in sorted(racks))]


def brute_force(snapshot: Snapshot, config: dict[str, object]) -> dict[tuple[str, tuple[int, ...]], dict[str, Any]]:
    """Play every failure as a what-if, each on a separate cluster."""
    return {
        (kind, brokers): values_of(WhatIf(snapshot, config).fail(brokers, together=True))
        for kind, brokers in failures_of(snapshot, WhatIf(snapshot, config).registered)
    }


def swept(snapshot: Snapshot, config: dict[str, object]) -> dict[tuple[str, tuple[int, ...]], dict[str, Any]]:
    records = sweep(snapshot, config).records()
    return {
        (record["kind"], tuple(record["brokers"])): {
            name: record[name] for name in record if name not in ("kind", "brokers", "rack")
        }
        for record in records
    }


@examples(1.2)
@given(snapshots(), configs())
def test_sweep_equals_what_ifs(snapshot: Snapshot, config: dict[str, object]) -> None:
    assert swept(snapshot, config) == brute_force(snapshot, config)


@examples(0.5)
@given(
    clusters().filter(lambda cluster: bool((cluster.partitions.topic >= 0).all())).map(Snapshot.from_cluster), configs()
)
def test_sweep_of_inconsistent_states_equals_what_ifs(snapshot: Snapshot, config: dict[str, object]) -> None:
    racks = [replace(broker, rack="ab"[broker.broker_id % 2]) for broker in snapshot.brokers]
    snapshot = replace(snapshot, brokers=tuple(racks))
    assert swept(snapshot, config) == brute_force(snapshot, config)


@examples(0.5)
@given(snapshots(), configs())
def test_findings_and_health_equal_what_ifs(snapshot: Snapshot, config: dict[str, object]) -> None:
    result = sweep(snapshot, config, depth=1, racks=False)
    health = WhatIf(snapshot, config).health()
    counts = health.counts()
    assert result.before == {name: counts[name] for name in result.before}
    assert set(result.before) == set(counts) - {"under_replicated"}
    assert result.before_skew == health.leader_skew
    assert len(result) == len(result.brokers)
    for finding in FailOn:
        column = result.count_of(finding)
        by_play = [WhatIf(snapshot, config).fail([broker]).count_of(finding) for broker in result.brokers]
        assert by_play == ([None] * len(result) if column is None else column.tolist())
