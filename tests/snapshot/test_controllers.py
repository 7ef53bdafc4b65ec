"""Instances of kframe in snapshots: they are controllers, and no operation treats them as brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from kframe.errors import InputError
from kframe.model.plan import Plan
from kframe.plans.check.findings import Check
from kframe.plans.check.report import PlanReport
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.generate import plan as generate_plan
from kframe.plans.generate.report import notes
from kframe.plans.stage.problem import stage_problem
from kframe.plans.stage.request import StageRequest
from kframe.snapshot import BrokerFacts, Snapshot, read_snapshot, write_snapshot
from kframe.snapshot.metadata import ClusterDescription, DescribedPartition, snapshot_of
from kframe.whatif import WhatIf, sweep
from tests.snapshot.samples import CONTENT, assignment, dump, dump_text, kcat, registration, state, znode

#: The active instance and a standby.
ACTIVE, STANDBY = 999, 1000
BROKERS: Final = [1, 2, 3]
NODE: Final = f"node {ACTIVE}, an instance of kframe"


def kframe_registration(broker_id: int) -> dict[str, Any]:
    """The registration of an active instance for brokers before Kafka 3.0."""
    return registration(broker_id, kframe_controller=True)


def record(controller_id: int | str) -> dict[str, Any]:
    """The record of an instance."""
    return znode(f"/kframe/instances/{controller_id}", {"version": 1}, ephemeral=True)


def from_dump(folder: Path, *changed: dict[str, Any], without: Iterable[str] = ()) -> Snapshot:
    path = folder / "c.zookeeper.jsonl"
    path.write_text(dump_text(dump(*changed, without=without)))
    return read_snapshot(path)


def kcat_with_instance(folder: Path) -> Snapshot:
    """A response of a broker while kframe is controller. It lists the instance as a broker."""
    document = kcat(controllerid=ACTIVE)
    document["brokers"].append({"id": ACTIVE, "name": "kframe:9099"})
    path = folder / "c.kcat.json"
    path.write_text(json.dumps(document))
    return read_snapshot(path)


def from_dump_with_instances(folder: Path) -> Snapshot:
    return from_dump(
        folder,
        znode("/controller", {"version": 2, "brokerid": ACTIVE}),
        kframe_registration(ACTIVE),
        record(ACTIVE),
        record(STANDBY),
    )


def from_kcat(folder: Path) -> Snapshot:
    return kcat_with_instance(folder).with_controllers([STANDBY, ACTIVE])


def from_describe(folder: Path) -> Snapshot:
    path = folder / "c.topics-describe.txt"
    path.write_text(CONTENT["describe"])
    return read_snapshot(path).with_controllers([ACTIVE, STANDBY])


def from_brokers(_folder: Path) -> Snapshot:
    """Responses of the active instance. A standby is in none."""
    nodes = {broker_id: (f"host-{broker_id}", 9092, None) for broker_id in (*BROKERS, ACTIVE)}
    partitions = [DescribedPartition("t", 0, 1, 5, [1, 2, 3], [1, 2, 3]), DescribedPartition("t", 1, 2, 5, [2, 3], [2])]
    return snapshot_of(ClusterDescription("here", "c", ACTIVE, nodes, partitions, controllers=(ACTIVE, STANDBY)))


MAKERS: Final = [from_dump_with_instances, from_kcat, from_describe, from_brokers]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """A cluster of three brokers and two instances, read from a directory that it was written to."""
    maker: Callable[[Path], Snapshot] = request.param
    write_snapshot(maker(tmp_path), tmp_path / "written")
    return read_snapshot(tmp_path / "written")


def test_instances_are_marked_and_no_brokers(snapshot: Snapshot) -> None:
    assert snapshot.controllers == (ACTIVE, STANDBY)
    assert [broker.broker_id for broker in snapshot.brokers] == BROKERS
    assert snapshot.to_cluster().brokers.ids.tolist() == BROKERS
    assert not [assumption for assumption in snapshot.assumptions if str(ACTIVE) in assumption]


def test_mark_is_a_fact_of_the_cluster(tmp_path: Path) -> None:
    unmarked = kcat_with_instance(tmp_path)
    assert unmarked.with_controllers([]).digest() == unmarked.digest()
    assert unmarked.with_controllers([ACTIVE]).digest() != unmarked.with_controllers([ACTIVE, STANDBY]).digest()


def test_plan_moves_nothing_to_an_instance(snapshot: Snapshot) -> None:
    proposal = generate_plan(snapshot, rebalance=True)
    assert proposal.problem.brokers.ids.tolist() == BROKERS


@pytest.mark.parametrize(
    "request_fields, where",
    [
        ({"remove_brokers": (ACTIVE,)}, "remove_brokers"),
        ({"rebalance": True, "exclude_brokers": (ACTIVE,)}, "exclude_brokers"),
        ({"rebalance": True, "capacities": {ACTIVE: 2.0}}, "capacities"),
    ],
)
def test_plan_request_that_names_an_instance_is_refused(
    request_fields: dict[str, Any], where: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"{where}: found {NODE}"):
        generate_plan(from_kcat(tmp_path), **request_fields)


@pytest.mark.parametrize("fields", [{"add_brokers": (ACTIVE,)}, {"replace": {1: ACTIVE}}], ids=["added", "replacement"])
def test_instance_as_target_of_a_plan_is_refused(fields: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"found broker {ACTIVE}, which is an instance of kframe"):
        generate_plan(from_kcat(tmp_path), **fields)


def test_plan_check_finds_replicas_on_an_instance(snapshot: Snapshot) -> None:
    plan = Plan.of([(("t", 0), (1, ACTIVE)), (("t", 1), (2, 3))], "plan")
    report = PlanReport.of(plan, resolve_plan(plan, snapshot))
    errors = [(row.check, row.partition, row.detail) for row in report.rows() if row.severity == "error"]
    assert errors == [(Check.UNKNOWN_BROKER, 0, f"node {ACTIVE} is an instance of kframe, no broker")]


def test_disk_capacity_of_an_instance_is_refused(tmp_path: Path) -> None:
    cluster, plan = from_kcat(tmp_path), Plan.of([(("t", 0), (2, 1, 3))], "plan")
    with pytest.raises(InputError, match=f"disk_capacity: found {NODE}"):
        stage_problem(
            resolve_plan(plan, cluster), StageRequest(disk_capacity={ACTIVE: 5}, weights=np.ones(2, np.int64))
        )


@pytest.mark.parametrize("operation", [WhatIf.fail, WhatIf.restart, WhatIf.shutdown], ids=lambda verb: verb.__name__)
def test_whatif_on_an_instance_is_refused(operation: Callable[..., Any], snapshot: Snapshot) -> None:
    with pytest.raises(InputError, match=f"brokers: found {NODE}, expected a (registered broker|broker of the snap)"):
        operation(WhatIf(snapshot), [ACTIVE])


def test_topic_on_an_instance_is_refused(snapshot: Snapshot) -> None:
    with pytest.raises(InputError, match=rf"assignments\[0\]: found {NODE}"):
        WhatIf(snapshot).create("new", assignments=[[1, ACTIVE]])


def test_sweep_fails_no_instance(snapshot: Snapshot) -> None:
    assert sweep(snapshot, depth=1, racks=False).brokers == tuple(BROKERS)


# -- marks of a dump


@pytest.mark.parametrize(
    "znodes, controllers",
    [
        ([record(STANDBY)], (STANDBY,)),
        ([kframe_registration(ACTIVE)], (ACTIVE,)),
        # With --allow-duplicate-id, or before its instance notices, a broker has the id.
        ([record(3)], ()),
        ([record("x"), record("01")], ()),
        ([registration(ACTIVE, kframe_controller=False)], ()),
    ],
    ids=["record", "marked registration", "broker with the id", "malformed ids", "unmarked registration"],
)
def test_marks_in_a_dump(znodes: list[dict[str, Any]], controllers: tuple[int, ...], tmp_path: Path) -> None:
    assert from_dump(tmp_path, *znodes).controllers == controllers


@pytest.mark.parametrize("mark", [True, False])
def test_instance_that_an_assignment_names_is_an_unregistered_broker(mark: bool, tmp_path: Path) -> None:
    """Tools write any id to ZooKeeper. The partition would have a replica that never catches up."""
    changed = [assignment("t", {0: [1, 2, ACTIVE], 1: [2, 3, 1]}), state("t", 0, 1, [1, 2])]
    snapshot = from_dump(tmp_path, *changed, *([kframe_registration(ACTIVE)] if mark else []))
    if not mark:
        snapshot = snapshot.with_controllers([ACTIVE])
    assert snapshot.controllers == (ACTIVE,)
    assert snapshot.brokers[-1] == BrokerFacts(ACTIVE, registered=False)
    with pytest.raises(InputError, match=NODE):
        WhatIf(snapshot).restart([ACTIVE])


# -- what a user states


def test_kraft_brokers_name_any_broker_as_controller(tmp_path: Path) -> None:
    snapshot = kcat_with_instance(tmp_path)
    assert "brokers.broker_id" in snapshot.provenance
    assert "brokers.broker_id" not in snapshot.with_mode("kraft").provenance


def test_active_controller_without_replicas_is_an_assumption(tmp_path: Path) -> None:
    snapshot = kcat_with_instance(tmp_path)
    text = f"{ACTIVE} is controller and has no replica: taken as a broker, unless --controllers {ACTIVE}"
    assert f"brokers.broker_id: {text}" in snapshot.assumptions
    assert text in list(notes(generate_plan(snapshot, rebalance=True)))


@pytest.mark.parametrize("controller_id", [1, 2])
def test_node_in_sync_is_refused(controller_id: int, tmp_path: Path) -> None:
    expected = f"controllers: found {controller_id} with a replica in sync of t-0, expected nodes without replicas"
    with pytest.raises(InputError, match=expected):
        kcat_with_instance(tmp_path).with_controllers([controller_id])


def test_kraft_cluster_has_no_instances(tmp_path: Path) -> None:
    path = tmp_path / "d.txt"
    path.write_text(CONTENT["describe"])
    snapshot = read_snapshot(path)
    with pytest.raises(InputError, match="controllers: found 999, expected none"):
        snapshot.with_mode("kraft").with_controllers([ACTIVE])
    with pytest.raises(InputError, match="mode: found kraft, expected zookeeper"):
        snapshot.with_controllers([ACTIVE]).with_mode("kraft")
