"""Observers of Confluent's clusters: in snapshots, in plans, and in what executes plans."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kframe.errors import InputError, SnapshotError
from kframe.model.arrays import Ragged
from kframe.model.plan import Plan
from kframe.plans.check.placement_constraints import constraints_note
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.execute.prepare import read_staged_plan
from kframe.plans.file.read import load_plan
from kframe.plans.file.write import plan_document
from kframe.plans.generate import PlanRequest, plan
from kframe.plans.generate.report import report_document
from kframe.snapshot import Snapshot, generate, read_snapshot, write_snapshot
from kframe.snapshot.formats import check_holds
from kframe.snapshot.listing import summary_record
from kframe.snapshot.summary import conditions_of
from kframe.whatif import WhatIf
from tests.plans.generate.clusters import snapshot_of
from tests.snapshot.samples import facts

TEXTS: Final = Path(__file__).parents[2] / "snapshot" / "texts"
OBSERVERS: Final = TEXTS / "observers.txt"
PLAN: Final = TEXTS / "observers-plan.json"


def described(tmp_path: Path, *rows: tuple[str, str, str]) -> Snapshot:
    """Topic ``t`` with replicas, ISR and observers of each partition."""
    path = tmp_path / "c.txt"
    lines = "".join(
        f"\tTopic: t\tPartition: {number}\tLeader: {isr[0]}\tReplicas: {replicas}\tIsr: {isr}\tOffline: \t"
        f"Observers: {observers}\n"
        for number, (replicas, isr, observers) in enumerate(rows)
    )
    path.write_text(f"Topic: t\tPartitionCount: {len(rows)}\tReplicationFactor: 4\tConfigs: \n{lines}")
    return read_snapshot(path)


def entries(made: Plan) -> list[dict[str, Any]]:
    document: list[dict[str, Any]] = json.loads(plan_document(made))["partitions"]
    return document


def test_observers_of_listing_are_read() -> None:
    snapshot = read_snapshot(OBSERVERS)
    rows = facts(snapshot)
    assert {name: row["observers"] for name, row in rows.items()} == {
        "audit-0": [],
        "audit-1": [],
        "orders-async-0": [21, 22],
        "orders-async-1": [22, 21],
    }
    assert (snapshot.topics.configs or {})[1]["min.insync.replicas"] == "2"
    record = summary_record(snapshot)
    assert (record["under_replicated"], record["observers"]) == (0, 4)
    assert any("observers do not count as under-replicated" in assumption for assumption in record["assumptions"])


def test_snapshot_without_observers_has_no_column(tmp_path: Path) -> None:
    snapshot = described(tmp_path, ("1,2", "1,2", ""))
    assert snapshot.partitions.observers is None
    assert "observers" not in facts(snapshot)["t-0"]
    assert "observers" not in summary_record(snapshot)


def test_full_replica_out_of_isr_counts_as_under_replicated(tmp_path: Path) -> None:
    # In partition 1 observer 3 was promoted to the ISR in the place of broker 2.
    snapshot = described(tmp_path, ("1,2,3", "1,2", "3"), ("1,2,3", "1,3", "3"), ("1,2,3", "1", "3"))
    under_replicated = conditions_of(snapshot).under_replicated
    assert under_replicated is not None
    assert under_replicated.tolist() == [False, True, True]


def test_unknown_label_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.txt"
    path.write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\tOffline: \tLiveObservers: 2\n"
    )
    with pytest.raises(SnapshotError, match=r"field Offline: found 'LiveObservers: 2'"):
        read_snapshot(path)


def test_observers_outside_replicas_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"\(t-0\) field observers: found broker 9, expected one of the replicas"):
        described(tmp_path, ("1,2", "1,2", "9"))


@pytest.mark.parametrize("path", [OBSERVERS, PLAN], ids=lambda path: path.name)
def test_snapshot_directory_keeps_observers(path: Path, tmp_path: Path) -> None:
    snapshot = read_snapshot(path)
    write_snapshot(snapshot, tmp_path / "out")
    saved = read_snapshot(tmp_path / "out")
    assert saved.partitions.observers is not None
    assert (saved.digest(), facts(saved)) == (snapshot.digest(), facts(snapshot))


def test_digest_depends_on_observers(tmp_path: Path) -> None:
    digests = {described(tmp_path, ("1,2,3,4", "1", observers)).digest() for observers in ("", "4", "3,4")}
    assert len(digests) == 3


def test_plan_with_observers_is_read_and_written() -> None:
    made = load_plan(PLAN)
    document = json.loads(PLAN.read_text())["partitions"]
    assert entries(made) == document
    checked = resolve_plan(made, read_snapshot(OBSERVERS))
    assert {row.check for row in PlanReport.of(made, checked).rows()} == {"no-op"}
    outcome = WhatIf(read_snapshot(OBSERVERS)).reassign(made)
    assert outcome.reassignment is not None
    assert (outcome.reassignment.totals()["completed"], outcome.reassignment.totals()["replicas_copied"]) == (2, 0)


def entry(replicas: list[int], observers: list[int] | None) -> str:
    fields = {"topic": "orders-async", "partition": 0, "replicas": replicas}
    return json.dumps({"partitions": [fields if observers is None else fields | {"observers": observers}]})


@pytest.mark.parametrize(
    "replicas, observers, check",
    [
        ([11, 12, 21, 22], [11, 12], "observers"),
        ([11, 12, 21, 22], [21], "observers"),
        ([11, 12], [11, 12], "observers"),
        ([11, 12, 21, 22], None, "fewer-observers"),
        ([11, 12, 21, 22], [22], "fewer-observers"),
    ],
    ids=["first", "between", "all", "dropped", "fewer"],
)
def test_plan_that_changes_observers_is_named(
    replicas: list[int], observers: list[int] | None, check: str, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(entry(replicas, observers))
    made, snapshot = load_plan(path), read_snapshot(OBSERVERS)
    report = PlanReport.of(made, resolve_plan(made, snapshot))
    assert check in {row.check for row in report.rows()}
    assert report.valid == (check == "fewer-observers")
    if check == "observers":
        with pytest.raises(InputError, match="observers of partition orders-async-0 that are not its last replicas"):
            WhatIf(snapshot).reassign(made)
        with pytest.raises(SnapshotError, match="field observers"):
            read_snapshot(path)


CONSTRAINTS = "placement constraints not checked: confluent.placement.constraints of "


@pytest.mark.parametrize(
    "request_, topics, expected",
    [
        (PlanRequest(replace={22: 23}), {}, ["1 topic (orders-async)"]),
        (PlanRequest(replace={22: 23}, topics=("audit",)), {}, []),
        (PlanRequest(replace={22: 23}), {"audit": "", "orders-async": "{}"}, []),
        (PlanRequest(replace={22: 23}), {"audit": '{"version":1}'}, ["2 topics (audit, orders-async)"]),
    ],
    ids=["changed topic", "unchanged topic", "empty", "two topics"],
)
def test_plan_names_topics_whose_placement_constraints_are_not_checked(
    request_: PlanRequest, topics: dict[str, str], expected: list[str]
) -> None:
    snapshot = read_snapshot(OBSERVERS)
    configs = {
        index: {**(snapshot.topics.configs or {}).get(index, {}), **constraints(topics, name)}
        for index, name in enumerate(snapshot.topics.names)
    }
    snapshot = replace(snapshot, topics=replace(snapshot.topics, configs=configs))
    proposal = plan(snapshot, request_)
    report = PlanReport.of(proposal.plan, resolve_plan(proposal.plan, snapshot))
    for notes in (report_document(proposal).warnings, report.document().notes):
        assert [note for note in notes if "constraints" in note] == [f"{CONSTRAINTS}{text}" for text in expected]


def constraints(topics: dict[str, str], name: str) -> dict[str, str]:
    return {"confluent.placement.constraints": topics[name]} if name in topics else {}


def test_note_on_placement_constraints_names_three_topics() -> None:
    snapshot = generate(40, 4, seed=1, topics=5)
    assert constraints_note(snapshot, range(5)) is None
    configs = {index: {"confluent.placement.constraints": '{"version":1}'} for index in range(5)}
    snapshot = replace(snapshot, topics=replace(snapshot.topics, configs=configs))
    named = ", ".join(snapshot.topics.names[:3])
    assert constraints_note(snapshot, [4, 4, 0, 2, 1]) == f"{CONSTRAINTS}4 topics ({named} and 1 more)"


def test_generated_plan_keeps_observers() -> None:
    made = plan(read_snapshot(OBSERVERS), PlanRequest(replace={22: 23})).plan
    assert entries(made) == [
        {"topic": "audit", "partition": 0, "replicas": [21, 23, 11]},
        {"topic": "audit", "partition": 1, "replicas": [23, 11, 12]},
        {"topic": "orders-async", "partition": 0, "replicas": [11, 12, 21, 23], "observers": [21, 23]},
        {"topic": "orders-async", "partition": 1, "replicas": [12, 11, 23, 21], "observers": [23, 21]},
    ]


@pytest.mark.parametrize(
    "request_",
    [
        PlanRequest(replace={2: 5}),
        PlanRequest(remove_brokers=(4,), add_brokers=(5,)),
        PlanRequest(remove_brokers=(2, 4), add_brokers=(5, 6)),
        PlanRequest(leaders_only=True),
        PlanRequest(rebalance=True, add_brokers=(5, 6)),
    ],
    ids=["a full replica", "an observer", "both", "leaders", "balance"],
)
def test_observers_stay_last_in_every_plan(request_: PlanRequest, tmp_path: Path) -> None:
    snapshot = described(tmp_path, *[("1,2,3,4", "1,2", "3,4")] * 3, *[("2,1,4,3", "2,1", "4,3")] * 3)
    made = plan(snapshot, request_).plan
    moved = 0
    for item in entries(made):
        assert (len(item["observers"]), item["replicas"][-2:]) == (2, item["observers"])
        assert {1, 2}.isdisjoint(item["observers"])
        moved += len(set(item["observers"]) - {3, 4})
    if request_.replace:
        assert (len(entries(made)), moved) == (6, 0)


@pytest.mark.parametrize("rack, successor", [("a", 5), ("b", 6)])
def test_new_replica_succeeds_observer_of_its_rack(rack: str, successor: int, tmp_path: Path) -> None:
    snapshot = described(tmp_path, ("1,2,3", "1,2", "3"))
    racks = {1: "c", 2: "a" if rack == "b" else "b", 3: rack}
    brokers = tuple(replace(broker, rack=racks[broker.broker_id]) for broker in snapshot.brokers)
    request = PlanRequest(remove_brokers=(2, 3), add_brokers=(5, 6), racks={5: "a", 6: "b"})
    (item,) = entries(plan(replace(snapshot, brokers=brokers), request).plan)
    assert (item["replicas"][2], item["observers"]) == (successor, [successor])


def test_replication_factor_of_partition_with_observers_is_refused() -> None:
    request = PlanRequest(replication_factors={"orders-async": 3})
    with pytest.raises(InputError, match="found 3 for orders-async-0 with observers, expected 4"):
        plan(read_snapshot(OBSERVERS), request)


def test_plan_with_observers_is_not_executed() -> None:
    with pytest.raises(SnapshotError, match="observers of partition orders-async-0, expected a plan without observers"):
        read_staged_plan(PLAN)


def test_checkpoint_of_cluster_with_observers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="found a snapshot with observers, expected a snapshot directory"):
        check_holds(read_snapshot(OBSERVERS), tmp_path / "c.checkpoint")


@pytest.mark.parametrize("mode", ["zookeeper", "kraft"])
def test_observers_do_not_count_in_what_ifs(mode: str) -> None:
    snapshot = read_snapshot(OBSERVERS)
    whatif = WhatIf(snapshot if mode == "zookeeper" else snapshot.with_mode("kraft"))
    outcome = whatif.fail([11])
    assert [health.counts()["under_replicated"] for health in (outcome.before, outcome.after)] == [0, 4]
    assert any("observers do not count" in assumption for assumption in outcome.assumptions)


#: Brokers 1 to 3 are in rack east, 4 to 6 in west.
RACKS: Final[dict[int, str | None]] = {broker: "east" if broker <= 3 else "west" for broker in range(1, 7)}


def placement(replicas: dict[str, int], observers: dict[str, int]) -> str:
    lists = {
        kind: [{"count": count, "constraints": {"rack": rack}} for rack, count in counts.items()]
        for kind, counts in (("replicas", replicas), ("observers", observers))
    }
    return json.dumps({"version": 1, **lists})


def constrained(text: str, replicas: list[int], observers: int) -> Snapshot:
    """Topic ``t`` with placement constraints and a partition, whose last replicas are observers, out of the ISR."""
    snapshot = snapshot_of({"t": [replicas]}, RACKS)
    full, last = replicas[: len(replicas) - observers], replicas[len(replicas) - observers :]
    partitions = replace(snapshot.partitions, isr=Ragged.of([full]), observers=Ragged.of([last]))
    topics = replace(snapshot.topics, configs={0: {"confluent.placement.constraints": text}})
    return replace(snapshot, partitions=partitions, topics=topics)


TWO_AND_TWO: Final = placement({"east": 2}, {"west": 2})
THREE_AND_ONE: Final = placement({"east": 3}, {"west": 1})
MIXED: Final = placement({"east": 1, "west": 1}, {"east": 1, "west": 1})


@pytest.mark.parametrize(
    "text, replicas, observers, request_, moves, crowded",
    [
        (TWO_AND_TWO, [1, 2, 4, 5], 2, PlanRequest(remove_brokers=(4,)), 1, (0, 0)),
        (TWO_AND_TWO, [1, 2, 4, 5], 2, PlanRequest(remove_brokers=(1,)), 1, (0, 0)),
        (TWO_AND_TWO, [1, 2, 4, 5], 2, PlanRequest(rebalance=True), 0, (0, 0)),
        # Three and one are uneven, and what the constraints demand.
        (THREE_AND_ONE, [1, 2, 3, 4], 1, PlanRequest(fix_racks=True), 0, (0, 0)),
        (THREE_AND_ONE, [1, 2, 3, 4], 1, PlanRequest(remove_brokers=(4,)), 1, (0, 0)),
        # Two and two are even, and not what they demand.
        (THREE_AND_ONE, [1, 2, 4, 5], 1, PlanRequest(fix_racks=True), 1, (1, 0)),
        (TWO_AND_TWO, [1, 2, 4, 3], 2, PlanRequest(fix_racks=True), 1, (1, 0)),
        (MIXED, [1, 4, 5, 2], 2, PlanRequest(remove_brokers=(5,)), 1, (0, 0)),
        (MIXED, [1, 4, 2, 3], 2, PlanRequest(fix_racks=True), 1, (1, 0)),
    ],
)
def test_plan_meets_placement_constraints(
    text: str, replicas: list[int], observers: int, request_: PlanRequest, moves: int, crowded: tuple[int, int]
) -> None:
    snapshot = constrained(text, replicas, observers)
    proposal = plan(snapshot, request_)
    report = report_document(proposal)
    assert (proposal.moves, proposal.bound, proposal.meets_request) == (moves, moves, True)
    assert (report.racks.crowded_before, report.racks.crowded_after) == crowded
    assert report.partitions.observers == (observers if len(proposal.rows) else 0)
    assert not any("constraints" in warning for warning in report.warnings)
    if len(proposal.rows):
        checks = {row.check for row in PlanReport.of(proposal.plan, resolve_plan(proposal.plan, snapshot)).rows()}
        assert checks.isdisjoint({"racks", "placement-constraints", "observers", "fewer-observers"})


@pytest.mark.parametrize(
    "target, expected",
    [
        ([1, 2, 4, 5], []),
        (
            [1, 4, 2, 5],
            ["replicas 1 in east, 1 in west, observers 1 in east, 1 in west: expected 2 in east, observers"],
        ),
        ([1, 2, 3, 4], ["replicas 2 in east, observers 1 in east, 1 in west: expected 2 in east, observers 2 in west"]),
    ],
)
def test_check_names_targets_that_break_placement_constraints(target: list[int], expected: list[str]) -> None:
    snapshot = constrained(TWO_AND_TWO, [2, 1, 5, 4], 2)
    made = replace(Plan.of([(("t", 0), target)]), observers=Ragged.of([target[2:]]))
    rows = PlanReport.of(made, resolve_plan(made, snapshot)).rows()
    details = [row.detail for row in rows if row.check in ("placement-constraints", "racks")]
    assert len(details) == len(expected)
    assert all(detail.startswith(text) for detail, text in zip(details, expected, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "not JSON",
        "[]",
        '{"version": 3, "replicas": [{"count": 1, "constraints": {"rack": "east"}}]}',
        '{"version": 1, "replicas": []}',
        '{"version": 1, "replicas": [{"count": 0, "constraints": {"rack": "east"}}]}',
        '{"version": 1, "replicas": [{"count": 2, "constraints": {"zone": "east"}}]}',
        '{"version": 1, "replicas": [{"count": 2, "constraints": {}}]}',
        '{"version": 1, "replicas": 2}',
    ],
)
def test_constraints_of_another_form_are_not_checked(text: str) -> None:
    report = report_document(plan(constrained(text, [1, 2, 3, 4], 1), fix_racks=True))
    assert f"{CONSTRAINTS}1 topic (t)" in report.warnings
    assert report.racks.crowded_before == 1
