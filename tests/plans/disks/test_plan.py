"""Plans between the log directories of a broker: what moves, what stays, and what is not met."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kframe.errors import InputError
from kframe.model.arrays import Ragged
from kframe.plans.disks import DirectoryName, DiskRequest, plan_disks, report_document
from kframe.plans.disks.document import DiskPlanDocument
from kframe.ports.administration import DirectoryLog, LogDirectory
from kframe.snapshot import Snapshot
from tests.plans.disks.brokers import Sizes, directories, snapshot

A, B, C = (DirectoryName(1, f"/{name}") for name in "abc")
#: 91 of 100 in /a, 30 in /b and 24 in /c.
FULL: Sizes = {"a": {0: 30, 1: 21, 2: 22, 3: 12, 4: 6}, "b": {5: 16, 6: 14}, "c": {7: 18, 8: 6}}


def report(listed: Any, cluster: Snapshot | None = None, **goals: Any) -> DiskPlanDocument:
    return report_document(plan_disks(cluster or snapshot(), {1: listed}, DiskRequest(**goals)))


def moves(document: DiskPlanDocument) -> list[tuple[int, str, str]]:
    return [(move.partition, move.source, move.target) for move in document.moves]


def bytes_after(document: DiskPlanDocument) -> dict[str, int]:
    return {directory.log_dir: directory.bytes_after for directory in document.directories}


@pytest.mark.parametrize(
    ("until", "moved", "bound"),
    [
        pytest.param({"until_percent": 80.0}, [3], 12, id="one-replica-of-at-least-11"),
        pytest.param({"until_percent": 90.0}, [4], 6, id="smallest"),
        pytest.param({"until_bytes": 70}, [1], 21, id="bytes"),
        pytest.param({"until_bytes": 57}, [2, 3], 34, id="largest-first"),
        pytest.param({"until_percent": 91.0}, [], 0, id="level-reached"),
    ],
)
def test_relief_moves_the_fewest_bytes(until: dict[str, Any], moved: list[int], bound: int) -> None:
    document = report(directories(FULL), relieve=(A,), disk_bytes={None: 100}, **until)
    assert [move.partition for move in document.moves] == moved
    assert (document.complete, document.bytes, document.bound, document.gap) == (True, bound, bound, 0)


def test_effect_and_duration_of_each_move() -> None:
    document = report(directories(FULL), relieve=(A,), disk_bytes={None: 100}, until_bytes=57, rate=2)
    assert [(move.bytes, move.source_bytes, move.source_percent, move.seconds) for move in document.moves] == [
        (22, 69, 69.0, 11.0),
        (12, 57, 57.0, 17.0),
    ]
    assert document.seconds == 17.0


@pytest.mark.parametrize(
    ("goals", "after", "reason"),
    [
        pytest.param(
            {"until_bytes": 40},
            {"/a": 73, "/b": 36, "/c": 36},
            "51 bytes are to leave, and the other log directories have room for 26",
            id="no-room",
        ),
        pytest.param(
            {"until_bytes": 57, "exclude": (B, C)},
            {"/a": 91, "/b": 30, "/c": 24},
            "no other log directory can take a replica: /b is excluded, /c is excluded",
            id="no-receiver",
        ),
        pytest.param(
            {"until_bytes": 20, "relieve": (A, B, C)},
            {"/a": 91, "/b": 30, "/c": 24},
            "no other log directory can take a replica: /b is relieved too, /c is relieved too",
            id="all-relieved",
        ),
    ],
)
def test_directories_that_cannot_take_all(goals: dict[str, Any], after: dict[str, int], reason: str) -> None:
    document = report(directories(FULL), **{"relieve": (A,), **goals})
    assert not document.complete
    assert bytes_after(document) == after
    assert reason in document.unmet[0].reason
    assert "outside of the limits" in document.summary
    assert any("kframe plan generate --rebalance" in note for note in document.notes)


def test_levelling_by_shares_of_disks_and_within_brokers() -> None:
    equal = report(directories(FULL), tolerance=10)
    assert equal.complete
    assert all(43 <= used <= 54 for used in bytes_after(equal).values())
    assert equal.bytes == equal.bound == 39
    twice = report(directories(FULL), disk_bytes={None: 100, (1, "/a"): 200})
    assert [(row.lower, row.upper, row.disk_bytes) for row in twice.directories] == [
        (65, 80, 200),
        (32, 40, 100),
        (32, 40, 100),
    ]
    assert twice.complete


def test_plan_has_replicas_as_they_are_and_the_new_directories() -> None:
    cluster, listed = snapshot(), directories(FULL)
    plan = plan_disks(cluster, {1: listed, 2: directories({"x": {0: 40, 3: 9, 5: 2}, "y": {}})}).plan
    rows = {plan.partition_name(position): position for position in range(len(plan))}
    assert all(replicas == [1, 2] for replicas in map(list, (plan.targets.replicas[row] for row in rows.values())))
    assert plan.log_dirs is not None
    paths = {name: plan.log_dirs[position] for name, position in rows.items()}
    assert all(len(names) == 2 and any(name != "any" for name in names) for names in paths.values())
    assert all(names[1] in ("any", "/y") and names[0] in ("any", "/b", "/c") for names in paths.values())


def with_error(listed: tuple[LogDirectory, ...], index: int) -> tuple[LogDirectory, ...]:
    return (*listed[:index], listed[index]._replace(error="KafkaStorageException", logs=()), *listed[index + 1 :])


def test_no_replica_moves_while_a_directory_is_offline() -> None:
    document = report(with_error(directories(FULL), 2), relieve=(A,), until_bytes=80)
    assert (document.complete, document.moves) == (False, [])
    assert document.unmet[0].reason == "the broker starts no move while a log directory is offline: /c"
    assert [row.state for row in document.directories] == ["online", "online", "offline"]


def test_cordoned_directory_receives_nothing() -> None:
    listed = directories(FULL)
    document = report((listed[0], listed[1], listed[2]._replace(is_cordoned=True)), relieve=(A,), until_bytes=80)
    assert moves(document) == [(3, "/a", "/b")]
    assert document.directories[2].state == "cordoned"


def test_other_data_of_a_volume_counts() -> None:
    listed = directories(FULL, a=(200, 20), b=(200, 170), c=(200, 176))
    document = report(listed, relieve=(A,), until_percent=80.0)
    assert (document.directories[0].bytes_before, document.directories[0].percent_before) == (180, 90.0)
    assert moves(document) == [(1, "/a", "/c")]
    assert document.directories[0].bytes_after == 159


def test_replicas_that_move_already_count_where_they_arrive() -> None:
    listed = directories(FULL)
    future = listed[1]._replace(logs=[*listed[1].logs, DirectoryLog("t", 0, 10, True)])
    document = report((listed[0], future, listed[2]), relieve=(A,), until_bytes=60)
    assert [row.bytes_before for row in document.directories] == [61, 60, 24]
    assert moves(document) == [(4, "/a", "/c")]
    assert "1 replica is being moved between log directories, and counted in the new one" in document.notes


@pytest.mark.parametrize(
    ("staying", "note"),
    [
        ("reassigning", "1 replica is of partitions that are being reassigned or deleted, and left as they are"),
        ("unassigned", "1 replica is not assigned to the broker in the snapshot, and left as they are"),
        ("unlisted", "1 replica is in no listed log directory; the bytes of those do not count"),
    ],
)
def test_replicas_that_stay(staying: str, note: str) -> None:
    cluster, listed = snapshot(), directories(FULL)
    if staying == "reassigning":
        adding = Ragged.of([[] if row != 3 else [9] for row in range(9)])
        cluster = replace(cluster, partitions=replace(cluster.partitions, adding_replicas=adding))
    elif staying == "unassigned":
        cluster = replace(
            snapshot(), partitions=replace(cluster.partitions, replicas=Ragged.of([[1, 2]] * 3 + [[2]] + [[1, 2]] * 5))
        )
    else:
        cluster = snapshot(10)
    document = report(listed, cluster, relieve=(A,), until_bytes=80)
    assert note in document.notes
    assert [move.partition for move in document.moves] == ([3] if staying == "unlisted" else [1])


@pytest.mark.parametrize(
    ("goals", "error"),
    [
        ({"relieve": (A,)}, "until: found no level, expected one level with relieve"),
        ({"until_bytes": 5}, "until: found no directory to relieve"),
        ({"relieve": (A,), "until_percent": 80.0}, "until: found no size of the disk of 1:/a"),
        ({"relieve": (A, A), "until_bytes": 5}, "relieve: found 1:/a twice"),
        ({"relieve": (A,), "until_percent": 180.0}, "until: found 180 percent"),
        ({"relieve": (A,), "exclude": (A,), "until_bytes": 5}, "exclude: found 1:/a, which is relieved"),
        ({"relieve": (DirectoryName(1, "/z"),), "until_bytes": 5}, "relieve: found /z, expected a log directory"),
        ({"exclude": (DirectoryName(9, "/a"),)}, "exclude: found broker 9, expected a broker whose log"),
        ({"disk_bytes": {(1, "/z"): 5}}, "disk_bytes: found /z, expected a log directory of broker 1"),
        ({"brokers": (3,)}, "brokers: found broker 3"),
        ({"brokers": (1,), "relieve": (A,), "until_bytes": 5}, "brokers: found directories to relieve"),
        ({"tolerance": 101}, "tolerance: found 101"),
        ({"rate": 0}, "rate: found 0"),
    ],
)
def test_refused_requests(goals: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        report(directories(FULL), **goals)
