"""Small clusters and scenarios, and the results of one machine as rows of a fleet's tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from msgspec.structs import asdict

from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.model.brokers import Endpoint
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.snapshot import BrokerFacts, PartitionFacts, Snapshot, Source, TopicFacts
from kframe.spark.inputs import ClusterRows
from kframe.spark.play import FAILOVER, IMPACT_COUNTS, REQUESTED, EngineSettings, ScenarioStage, request_rows
from kframe.spark.rows import rows_of, table_of
from kframe.spark.scenarios import play_scenario
from kframe.spark.schema import CLUSTER_TABLES, SCENARIOS
from kframe.spark.stages import Result, Stage, results_of
from kframe.whatif import WhatIf
from kframe.whatif.results.changes import ELR_LISTS
from kframe.whatif.results.findings import FailOn
from kframe.whatif.results.health import CONDITIONS
from kframe.whatif.results.outcome import ControllerResponse

Rows = list[dict[str, Any]]


def scenario(
    verb: str = "fail",
    brokers: Sequence[int] = (),
    racks: Sequence[str] = (),
    *,
    together: bool = True,
    name: str = "s",
    **fields: Any,
) -> dict[str, Any]:
    """Return a row of SCENARIOS. ``fields`` has other columns by name."""
    return (
        dict.fromkeys(SCENARIOS.schema.names)
        | {
            "scenario": name,
            "verb": verb,
            "brokers": list(brokers),
            "racks": list(racks),
            "together": together,
        }
        | fields
    )


def tables(snapshot: Snapshot, cluster: str = "east") -> dict[str, pa.Table]:
    """Return the tables of a cluster by name."""
    return {table.name: table_of(rows_of(snapshot, cluster, table), table) for table in CLUSTER_TABLES}


def reference_rows(
    snapshot: Snapshot,
    scenario_row: Mapping[str, Any],
    config: Mapping[str, object] | None = None,
    selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
    cluster: str = "east",
) -> dict[str, Rows]:
    """Return one machine's result of a scenario in the rows of a fleet. Requests have their bodies."""
    whatif = WhatIf(snapshot, config, selectors)
    whatif.engine.record_batches(bodies=True)
    outcome = play_scenario(whatif, scenario_row)
    shared = {"cluster": cluster, "scenario": scenario_row["scenario"]}
    before, after, impact = outcome.before, outcome.after, asdict(outcome.impact)
    counts = [
        ("before", before.counts(), 0),
        *((step.name, step.counts, _not_done(step.response)) for step in outcome.steps),
    ]
    return {
        "changes": [shared | dict.fromkeys(ELR_LISTS) | row for row in outcome.to_arrow().to_pylist()],
        "broker_counts": [
            shared
            | {
                "broker_id": broker,
                "rack": outcome.racks[i],
                "registered_before": bool(before.registered[i]),
                "registered_after": bool(after.registered[i]),
            }
            | {
                f"{name}_{when}": int(getattr(health, count)[i])
                for name, count in (
                    ("leaders", "leaders"),
                    ("preferred_leaders", "preferred"),
                    ("replicas", "replicas"),
                    ("in_sync_replicas", "in_sync"),
                )
                for when, health in (("before", before), ("after", after))
            }
            for i, broker in enumerate(outcome.broker_ids.tolist())
        ],
        "conditions": [
            shared
            | {"step": i, "name": name, "partitions": int(before.counted.sum())}
            | {condition: now[condition] for condition in CONDITIONS}
            | {"not_done": failed}
            for i, (name, now, failed) in enumerate(counts)
        ],
        "impacts": [
            shared
            | {count: impact[count] for count in IMPACT_COUNTS}
            | {f"found_{str(finding).replace('-', '_')}": outcome.count_of(finding) for finding in FailOn}
            | {
                "records": impact["records"],
                "rules": outcome.rules,
                "record_bytes": None if impact["records"] is None else impact["bytes"],
            }
        ],
        "requests": [shared | row for row in request_rows(outcome).to_pylist()],
    }


def _not_done(response: ControllerResponse | None) -> int:
    """Return the number of failed partitions, or of partitions that the broker still leads."""
    if response is None:
        return 0
    if response.codes is None:
        return len(response.rows)
    return sum(count for name, count in response.counts().items() if name not in ("NONE", "ELECTION_NOT_NEEDED"))


def result_of(
    contents: Mapping[str, pa.Table], scenario_row: Mapping[str, Any], engine: EngineSettings | None = None
) -> dict[str, Rows] | str:
    """Return all tables that a stage makes of the rows of ``east`` and a scenario, or the problem."""
    stage = ScenarioStage((*FAILOVER, *REQUESTED), engine or EngineSettings(), bodies=True)
    result = single_result(stage, contents, scenario_row)
    return result if isinstance(result, str) else {table.name: rows.to_pylist() for table, rows in result.items()}


def single_result(
    stage: Stage, contents: Mapping[str, pa.Table], scenario_row: Mapping[str, Any] | None = None
) -> Result:
    """Return the result of a stage on the rows of ``east``."""
    ((_, result),) = results_of(ClusterRows("east", contents), stage, [scenario_row], stage.tables)
    return result


def assert_same_rows(actual: Mapping[str, Rows], expected: Mapping[str, Rows]) -> None:
    """Check that both results are equal in any order of rows."""
    assert actual.keys() == expected.keys()
    for name in actual:
        assert sorted(map(_key, actual[name])) == sorted(map(_key, expected[name])), name


def _key(row: Mapping[str, Any]) -> str:
    return repr(sorted(row.items()))


# -- random clusters


@st.composite
def clusters(draw: st.DrawFn, min_count: int = 0) -> Snapshot:
    """Draw five brokers in two racks, some of them offline, and up to four topics, some under deletion. ``min_count``
    is the smallest number of topics, and of partitions of each."""
    ids = [1, 2, 3, 5, 8]
    up = [draw(st.sampled_from([True, True, True, False])) for _ in ids]
    brokers = tuple(
        BrokerFacts(
            broker_id,
            live,
            10 + broker_id,
            (Endpoint("PLAINTEXT", f"host-{broker_id}", 9092),) if draw(st.integers(0, 19)) else (),
            "ab"[i % 2],
        )
        for i, (broker_id, live) in enumerate(zip(ids, up, strict=True))
    )
    counts = draw(st.lists(st.integers(min_count, 6), min_size=min_count, max_size=4))
    names = tuple(f"topic-{index}" for index in range(len(counts)))
    rarely = st.sampled_from([False, False, False, True])
    configs = {}
    for index in range(len(counts)):
        config = {}
        if draw(rarely):
            config["unclean.leader.election.enable"] = draw(st.sampled_from(["true", "false"]))
        if draw(rarely):
            config["min.insync.replicas"] = str(draw(st.integers(1, 3)))
        configs[index] = config
    topics = TopicFacts(
        names,
        np.array(counts, np.int32),
        draw(st.sampled_from([None, np.arange(16 * len(counts), dtype=np.uint8).reshape(-1, 16)])),
        np.array([draw(rarely) for _ in counts], np.uint8),
        configs if not sum(counts) or draw(st.integers(0, 3)) else None,
    )
    return Snapshot(
        brokers,
        topics,
        _partitions(draw, ids, sum(counts)),
        Source("test", "east"),
        controller_id=1,
        controller_epoch=draw(st.sampled_from([None, 3, 9])),
        broker_default_configs=draw(st.sampled_from([None, {"unclean.leader.election.enable": "true"}])),
    )


def _partitions(draw: st.DrawFn, ids: list[int], count: int) -> PartitionFacts:
    replicas = [draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True)) for _ in range(count)]
    empty = [draw(st.integers(0, 9)) == 0 for _ in replicas]
    isr = [
        [] if is_empty else [broker_id for broker_id in broker_ids if draw(st.integers(0, 3))]
        for is_empty, broker_ids in zip(empty, replicas, strict=True)
    ]
    leader = [draw(st.sampled_from([*broker_ids, broker_ids[0], -1])) if broker_ids else -1 for broker_ids in isr]
    epochs = [-1 if is_empty else draw(st.integers(0, 7)) for is_empty in empty]
    numbers = [
        np.array(epochs, np.int32),
        np.array(epochs, np.int32),
        np.array([-1 if is_empty else draw(st.integers(0, 9)) for is_empty in empty], np.int32),
        np.zeros(count, np.int32),
    ]
    known = [draw(st.integers(0, 5)) > 0 for _ in numbers]
    known[2] |= any(empty)  # Only a partition epoch shows that a partition has no state.
    moving = [[broker_id for broker_id in broker_ids[1:] if draw(st.integers(0, 5)) == 0] for broker_ids in replicas]
    leader_epoch, controller_epoch, partition_epoch, recovery = (
        column if yes else None for column, yes in zip(numbers, known, strict=True)
    )
    return PartitionFacts(
        Ragged.of(replicas),
        np.array(leader, np.int32),
        Ragged.of(isr),
        leader_epoch,
        controller_epoch,
        partition_epoch,
        recovery,
        Ragged.of(moving),
        Ragged.empty(count),
    )


@st.composite
def scenarios(draw: st.DrawFn, snapshot: Snapshot) -> dict[str, Any]:
    """Draw a scenario for the cluster."""
    up = [broker.broker_id for broker in snapshot.brokers if broker.registered]
    verb = draw(st.sampled_from(["fail", "fail", "shutdown", "elect"]))
    if verb == "elect" or not up:
        return scenario("elect", election=draw(st.sampled_from(["preferred", "unclean"])))
    brokers = draw(st.lists(st.sampled_from(up), min_size=1, max_size=3, unique=True))
    return scenario(verb, brokers, together=draw(st.booleans()))


@st.composite
def whole_scenarios(draw: st.DrawFn, snapshot: Snapshot) -> dict[str, Any]:
    """Draw a scenario whose outcome depends on the whole cluster."""
    ids = [broker.broker_id for broker in snapshot.brokers]
    names = draw(st.lists(st.sampled_from([*snapshot.topics.names, "other"]), min_size=1, max_size=3, unique=True))
    match draw(st.sampled_from(["restart", "elect", "reassign", "create", "delete"])):
        case "restart":
            broker_ids = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
            return scenario("restart", broker_ids, together=draw(st.booleans()))
        case "elect":
            kind = draw(st.sampled_from(["preferred", "unclean"]))
            return scenario("elect", election=kind, names=[f"{name}-{draw(st.integers(0, 2))}" for name in names])
        case "reassign":
            replicas = st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True)
            moves = [
                {"topic": name, "partition": draw(st.integers(0, 3)), "replicas": draw(replicas)} for name in names
            ]
            return scenario("reassign", plan=json.dumps({"version": 1, "partitions": moves}))
        case "create":
            return scenario(
                "create",
                names=["other"],
                partitions=draw(st.integers(1, 4)),
                replication_factor=draw(st.integers(1, 3)),
                seed=draw(st.integers(0, 9)),
            )
    return scenario("delete", names=names)


def reference_rows_or_problem(snapshot: Snapshot, scenario_row: Mapping[str, Any]) -> dict[str, Rows] | str:
    """Return ``reference_rows``, or an error."""
    try:
        return reference_rows(snapshot, scenario_row)
    except InputError as problem:
        return str(problem)
