"""Small clusters in shards: the result of one machine, and the combined result of the shards."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from kframe.engines.results.changes import ELR_LISTS
from kframe.engines.results.health import CONDITIONS
from kframe.engines.results.outcome import ControllerResponse, FailOn
from kframe.errors import InputError
from kframe.model.brokers import Endpoint
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.requests import BatchCause, ControlRequests
from kframe.snapshot import BrokerFacts, PartitionFacts, Snapshot, Source, TopicFacts
from kframe.spark.kraft import without_features
from kframe.spark.play import ANNOUNCED, IMPACT_COUNTS, PARTS, TO_PLAY, EngineSettings, play
from kframe.spark.requests import encode, sent
from kframe.spark.rows import rows_of
from kframe.spark.scenarios import needs_whole, play_scenario
from kframe.spark.schema import BROKERS, CLUSTERS, KRAFT_FACTS, PARTITIONS, SCENARIOS
from kframe.spark.shards import SHARDS, pack
from kframe.whatif import WhatIf

Rows = list[dict[str, Any]]
EMPTY = pa.RecordBatch.from_pylist([{"cluster": "east", "rows": 0, "pieces": []}], SHARDS.schema)


def scenario(verb: str = "fail", brokers: Sequence[int] = (), racks: Sequence[str] = (), *, together: bool = True,
             name: str = "s", **fields: Any) -> dict[str, Any]:  # fmt: skip
    """Return a row of SCENARIOS. ``fields`` has other columns by name."""
    return dict.fromkeys(SCENARIOS.schema.names) | {
        "scenario": name, "verb": verb, "brokers": list(brokers), "racks": list(racks), "together": together,
    } | fields  # fmt: skip


def table(snapshot: Snapshot, cluster: str = "east") -> pa.Table:
    """Return the partitions of a snapshot as rows of PARTITIONS."""
    return pa.Table.from_batches(list(rows_of(snapshot, cluster, PARTITIONS)), PARTITIONS.schema)


# -- one machine


def reference_rows(
    snapshot: Snapshot, scenario_row: Mapping[str, Any], config: Mapping[str, object] | None = None,
    selectors: Mapping[ElectionKind, LeaderSelector] | None = None, cluster: str = "east",
) -> dict[str, Rows]:  # fmt: skip
    """Return one machine's result of a scenario in the rows of a fleet."""
    step, requests_sent, sequence = 1, [], defaultdict[tuple[int, BatchCause], int](int)
    settings = ControllerConfig(without_features(config or {}))

    def batch(state: ClusterState, requests: ControlRequests) -> None:
        key = step, requests.cause
        shared = [cluster, scenario_row["scenario"], step, requests.cause.name.lower(), sequence[key]]
        sequence[key] += 1
        requests_sent.extend(sent(state, requests, settings, shared, keep=True).to_pylist())

    def stepped(done: int) -> None:
        nonlocal step
        step = done + 1

    whatif = WhatIf(snapshot, config, selectors, batches=batch)
    whatif.step_completed = stepped
    requests_sent.clear()
    sequence.clear()
    outcome = play_scenario(whatif, scenario_row)
    shared = {"cluster": cluster, "scenario": scenario_row["scenario"]}
    before, after, impact = outcome.before, outcome.after, asdict(outcome.impact)
    counts = [("before", before.counts(), 0),
              *((step.name, step.counts, _not_done(step.response)) for step in outcome.steps)]  # fmt: skip
    return {
        "changes": [
            shared | dict.fromkeys(ELR_LISTS) | row for row in outcome.to_arrow().to_pylist()
        ],
        "broker_counts": [
            shared | {"broker_id": broker, "rack": outcome.racks[i],
                      "registered_before": bool(before.registered[i]), "registered_after": bool(after.registered[i])}
            | {f"{name}_{when}": int(getattr(health, count)[i])
               for name, count in (("leaders", "leaders"), ("preferred_leaders", "preferred"),
                                   ("replicas", "replicas"), ("in_sync_replicas", "in_sync"))
               for when, health in (("before", before), ("after", after))}
            for i, broker in enumerate(outcome.broker_ids.tolist())
        ],
        "conditions": [
            shared | {"step": i, "name": name, "partitions": int(before.counted.sum())}
            | {condition: now[condition] for condition in CONDITIONS} | {"not_done": failed}
            for i, (name, now, failed) in enumerate(counts)
        ],
        "impacts": [
            shared | {count: impact[count] for count in IMPACT_COUNTS}
            | {f"found_{str(finding).replace('-', '_')}": outcome.count_of(finding) for finding in FailOn}
            | {"records": impact["records"], "rules": outcome.rules,
               "record_bytes": None if impact["records"] is None else impact["bytes"]}
        ],
        "requests": requests_sent,
    }  # fmt: skip


def _not_done(response: ControllerResponse | None) -> int:
    """Return the number of failed partitions, or of partitions that the broker still leads."""
    if response is None:
        return 0
    if response.codes is None:
        return len(response.rows)
    return sum(count for name, count in response.counts().items() if name not in ("NONE", "ELECTION_NOT_NEEDED"))


# -- shards


def to_play(snapshot: Snapshot, shards: Iterable[pa.RecordBatch], scenarios: Sequence[Mapping[str, Any]],
            cluster: str = "east") -> list[pa.RecordBatch]:  # fmt: skip
    """Return shards with the data of the whole cluster, as the frames join them."""
    brokers = pa.Table.from_batches(list(rows_of(snapshot, cluster, BROKERS)), BROKERS.schema).to_pylist()
    epochs = snapshot.partitions.controller_epoch
    named = -1 if epochs is None else int(epochs.max(initial=-1))
    (row,) = pa.Table.from_batches(list(rows_of(snapshot, cluster, CLUSTERS)), CLUSTERS.schema).to_pylist()
    facts = {
        **{name: row[name] for name in ("mode", *KRAFT_FACTS.names)},
        "controller_id": snapshot.controller_id, "controller_epoch": max(snapshot.controller_epoch or -1, named),
        "broker_default_configs": None if snapshot.broker_default_configs is None
        else list(snapshot.broker_default_configs.items()),
        "brokers": [{name: broker[name] for name in BROKERS.schema.names[1:]} for broker in brokers],
        "scenarios": [{name: scenario[name] for name in SCENARIOS.schema.names[1:]} for scenario in scenarios],
    }  # fmt: skip
    rows = [row | facts for batch in shards for row in batch.to_pylist()]
    return [pa.RecordBatch.from_pylist([row], TO_PLAY.schema) for row in rows]


def merged(played: Iterable[pa.RecordBatch], facts: pa.RecordBatch, config: Mapping[str, object] | None = None
           ) -> dict[str, Rows]:  # fmt: skip
    """Return the shards' combined result, with the same sums as in the frames."""
    part_rows: dict[str, Rows] = {name: [] for name in PARTS}
    for row in pa.Table.from_batches(list(played)).to_pylist():
        assert row["problem"] is None, row["problem"]
        for name in PARTS:
            part_rows[name] += [
                {"cluster": row["cluster"], "scenario": row["scenario"], **part_row} for part_row in row[name]
            ]
    group_columns = (
        "rules",
        "broker_id",
        "rack",
        "registered_before",
        "registered_after",
        "step",
        "name",
        "cluster",
        "scenario",
    )
    whole = {name: _summed(part_rows[name], group_columns) for name in ("broker_counts", "conditions", "impacts")}
    return {
        "changes": part_rows["changes"],
        **whole,
        "requests": _requests(part_rows["announced"], facts, config),
    }


def _summed(rows: Rows, group_columns: Iterable[str]) -> Rows:
    groups = defaultdict[Any, Rows](list)
    for row in rows:
        groups[tuple((name, row[name]) for name in group_columns if name in row)].append(row)
    return [
        dict(key) | {name: None if any(row[name] is None for row in group) else sum(row[name] for row in group)
                     for name in group[0] if name not in dict(key)}
        for key, group in groups.items()
    ]  # fmt: skip


def _requests(announced: Rows, facts: pa.RecordBatch, config: Mapping[str, object] | None) -> Rows:
    groups = defaultdict[Any, Rows](list)
    for row in announced:
        groups[row["cluster"], row["scenario"], row["step"], row["cause"], row["round"]].append(row)
    (known,) = facts.to_pylist()
    rows: Rows = []
    for (cluster, name, step, cause, sequence), group in groups.items():
        if all(batch["sent"] for batch in group):
            key = {"cluster": cluster, "scenario": name, "step": step, "cause": cause, "round": sequence}
            row = known | key | {"data": [batch["data"] for batch in group]}
            schema = pa.schema([*facts.schema, *list(ANNOUNCED.schema)[1:5], ("data", pa.list_(pa.binary()))])
            for batch in encode([pa.RecordBatch.from_pylist([row], schema)], dict(config or {}), keep=True):
                rows += batch.to_pylist()
    return rows


def shard_rows(whole: pa.Table, shards: Sequence[int], order: Sequence[int]) -> list[pa.RecordBatch]:
    """Return rows in another order, packed with the rows of their shard.

    As in the frames, topics under deletion are together. One part is always empty.
    """
    owner = np.array([shards[row % len(shards)] for row in range(whole.num_rows)], np.int64)
    owner[whole["deleting"].fill_null(False).to_numpy()] = -1
    parts = [EMPTY]
    for shard in {*owner.tolist()}:
        rows = [row for row in order if owner[row] == shard]
        parts += list(pack(whole.take(pa.array(rows, pa.int64())).to_batches()))
    return parts


def concatenated(shards: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return all shards as one, as the frames combine whole clusters."""
    rows = [row for batch in shards for row in batch.to_pylist()]
    pieces = [piece for row in rows for piece in row["pieces"]]
    whole = {"cluster": "east", "rows": sum(row["rows"] for row in rows), "pieces": pieces}
    return [pa.RecordBatch.from_pylist([whole], SHARDS.schema)]


def merged_rows(snapshot: Snapshot, scenario_row: Mapping[str, Any], shards: Sequence[pa.RecordBatch],
             config: Mapping[str, object] | None = None) -> dict[str, Rows]:  # fmt: skip
    """Return the combined result of a snapshot's shards for a scenario."""
    whole = needs_whole(scenario_row)
    rows = to_play(snapshot, concatenated(shards) if whole else shards, [scenario_row])
    return merged(play(rows, EngineSettings(dict(config or {})), whole=whole), rows[0], config)


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
        BrokerFacts(broker_id, live, 10 + broker_id,
                    (Endpoint("PLAINTEXT", f"host-{broker_id}", 9092),) if draw(st.integers(0, 19)) else (),
                    "ab"[i % 2])
        for i, (broker_id, live) in enumerate(zip(ids, up, strict=True))
    )  # fmt: skip
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
        names, np.array(counts, np.int32),
        draw(st.sampled_from([None, np.arange(16 * len(counts), dtype=np.uint8).reshape(-1, 16)])),
        np.array([draw(rarely) for _ in counts], np.uint8), configs if not sum(counts) or draw(st.integers(0, 3)) else
        None,
    )  # fmt: skip
    return Snapshot(
        brokers, topics, _partitions(draw, ids, sum(counts)), Source("test", "east"), controller_id=1,
        controller_epoch=draw(st.sampled_from([None, 3, 9])),
        broker_default_configs=draw(st.sampled_from([None, {"unclean.leader.election.enable": "true"}])),
    )  # fmt: skip


def _partitions(draw: st.DrawFn, ids: list[int], count: int) -> PartitionFacts:
    replicas = [draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True)) for _ in range(count)]
    empty = [draw(st.integers(0, 9)) == 0 for _ in replicas]
    isr = [
        [] if is_empty else [broker_id for broker_id in broker_ids if draw(st.integers(0, 3))]
        for is_empty, broker_ids in zip(empty, replicas, strict=True)
    ]
    leader = [draw(st.sampled_from([*broker_ids, broker_ids[0], -1])) if broker_ids else -1 for broker_ids in isr]
    epochs = [-1 if is_empty else draw(st.integers(0, 7)) for is_empty in empty]
    numbers = [np.array(epochs, np.int32), np.array(epochs, np.int32),
               np.array([-1 if is_empty else draw(st.integers(0, 9)) for is_empty in empty], np.int32),
               np.zeros(count, np.int32)]  # fmt: skip
    known = [draw(st.integers(0, 5)) > 0 for _ in numbers]
    moving = [[broker_id for broker_id in broker_ids[1:] if draw(st.integers(0, 5)) == 0] for broker_ids in replicas]
    leader_epoch, controller_epoch, partition_epoch, recovery = (
        column if yes else None for column, yes in zip(numbers, known, strict=True)
    )
    return PartitionFacts(
        Ragged.of(replicas), np.array(leader, np.int32), Ragged.of(isr), leader_epoch, controller_epoch,
        partition_epoch, recovery, Ragged.of(moving), Ragged.empty(count),
    )  # fmt: skip


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
            moves = [{"topic": name, "partition": draw(st.integers(0, 3)), "replicas": draw(replicas)} for name in
                     names]  # fmt: skip
            return scenario("reassign", plan=json.dumps({"version": 1, "partitions": moves}))
        case "create":
            return scenario("create", names=["other"], partitions=draw(st.integers(1, 4)),
                            replication_factor=draw(st.integers(1, 3)), seed=draw(st.integers(0, 9)))  # fmt: skip
    return scenario("delete", names=names)


def reference_rows_or_problem(snapshot: Snapshot, scenario_row: Mapping[str, Any]) -> dict[str, Rows] | str:
    """Return ``reference_rows``, or an error."""
    try:
        return reference_rows(snapshot, scenario_row)
    except InputError as problem:
        return str(problem)
