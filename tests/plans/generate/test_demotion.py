"""Plans that take leadership off brokers and racks move no data, and change as few leaders as possible."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.errors import InputError
from kframe.model.kafka_uuids import uuid_text
from kframe.plans.generate import plan
from kframe.plans.generate.document import Unmet
from kframe.plans.generate.report import report_document
from kframe.ports.administration import DirectoryLog, DirectoryName, LogDirectory
from kframe.snapshot import Snapshot, Source, generate
from tests.plans.generate.clusters import lists_of, snapshot_of
from tests.whatif.kraft_samples import directory, metadata_with, partition

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}


@pytest.mark.parametrize(
    ("lists", "goals", "after"),
    [
        pytest.param([[1, 2, 3]], {"demote_brokers": (1,)}, [[2, 3, 1]], id="demoted-last"),
        pytest.param([[2, 1, 3]], {"demote_brokers": (1,)}, [[2, 3, 1]], id="demoted-follower-last"),
        pytest.param([[2, 3]], {"demote_brokers": (1,)}, [[2, 3]], id="others-stay"),
        pytest.param([[1, 3, 2], [1, 4]], {"demote_racks": ("a",)}, [[3, 2, 1], [1, 4]], id="rack"),
        pytest.param([[1, 2, 3]], {"leader_racks": ("c",)}, [[3, 1, 2]], id="leaders-in-a-rack"),
        pytest.param([[1, 2], [1, 3]], {"leader_racks": ("b", "c")}, [[2, 1], [3, 1]], id="leaders-in-two-racks"),
        pytest.param([[1, 2]], {"leaders_only": True, "exclude_brokers": (1,)}, [[2, 1]], id="excluded"),
        pytest.param([[4, 1, 2]], {"demote_brokers": (1, 4)}, [[2, 4, 1]], id="two-brokers-keep-their-order"),
    ],
)
def test_order_of_replicas(lists: list[list[int]], goals: dict[str, Any], after: list[list[int]]) -> None:
    proposal = plan(snapshot_of({"t": lists}, RACKS), **goals)
    assert lists_of(proposal) == after
    assert proposal.moves == 0


def listed(**sizes: list[int]) -> dict[int, list[LogDirectory]]:
    """The directories of broker 1, with partitions of topic t."""
    return {
        1: [LogDirectory(f"/{name}", [DirectoryLog("t", number, 1) for number in logs]) for name, logs in sizes.items()]
    }


@pytest.mark.parametrize(
    ("directories", "goals", "after"),
    [
        pytest.param({"a": [0], "b": [1, 2]}, {}, [[2, 3, 1], [1, 2], [3, 1]], id="leader-in-the-directory"),
        pytest.param({"a": [0, 2], "b": [1]}, {}, [[2, 3, 1], [1, 2], [3, 1]], id="follower-is-last"),
        pytest.param({"a": [0, 1, 2]}, {}, [[2, 3, 1], [2, 1], [3, 1]], id="all"),
        pytest.param({"a": [0], "b": [1, 2]}, {"demote_brokers": (2,)}, [[3, 2, 1], [1, 2], [3, 1]], id="and-a-broker"),
    ],
)
def test_leaders_in_a_log_directory(
    directories: dict[str, list[int]], goals: dict[str, Any], after: list[list[int]]
) -> None:
    snapshot = snapshot_of({"t": [[1, 2, 3], [1, 2], [3, 1]]}, RACKS)
    request = {"demote_directories": (DirectoryName(1, "/a"),), "log_directories": listed(**directories), **goals}
    proposal = plan(snapshot, **request)
    assert lists_of(proposal) == after
    assert (proposal.moves, proposal.meets_request) == (0, True)


def test_directory_ids_of_the_metadata() -> None:
    partitions = [
        partition(number, (1, 2), (1, 2), directories=(directory(1, number % 2), directory(2))) for number in range(4)
    ]
    snapshot = Snapshot.from_metadata(metadata_with(partitions), source=Source("kraft", "sample"))
    proposal = plan(snapshot, demote_directories=(DirectoryName(1, uuid_text(directory(1))),))
    assert lists_of(proposal) == [[2, 1], [1, 2], [2, 1], [1, 2]]


def test_leaders_balance_around_a_log_directory() -> None:
    snapshot = snapshot_of({"t": [[1, 2]] * 6}, RACKS)
    request: dict[str, Any] = {"demote_directories": (DirectoryName(1, "/a"),), "leaders_only": True}
    request["log_directories"] = listed(a=[0, 1], b=[2, 3, 4, 5])
    after = lists_of(plan(snapshot, **request))
    assert after[:2] == [[2, 1], [2, 1]]
    assert sum(replicas[0] == 1 for replicas in after) == 3


def test_partition_without_another_leader_stays_in_its_directory() -> None:
    snapshot = snapshot_of({"t": [[1], [1, 2]]}, RACKS)
    proposal = plan(snapshot, demote_directories=(DirectoryName(1, "/a"),), log_directories=listed(a=[0, 1]))
    document = report_document(proposal)
    assert lists_of(proposal) == [[1], [2, 1]]
    assert [(row.partition, row.lacks) for row in document.unmet] == [(0, [Unmet.LEADER])]
    assert "1 partition led by a demoted broker or log directory" in document.summary


def test_new_leaders_are_even_where_their_partitions_allow() -> None:
    snapshot = generate(600, 6, 3, racks=3)
    proposal = plan(snapshot, demote_brokers=(0,))
    loads = proposal.loads()
    changes = int(loads["leaders_before"][0])
    assert (loads["leaders_after"][0], proposal.leader_changes) == (0, changes)
    # Broker 3 is in the rack of broker 0, so that no partition is on both.
    assert loads["leaders_after"][3] == loads["leaders_before"][3]
    others = loads["leaders_after"][[1, 2, 4, 5]]
    assert others.max() - others.min() <= 1


@given(
    st.lists(
        st.permutations(range(1, 5)).flatmap(lambda order: st.integers(1, 3).map(lambda n: order[:n])),
        min_size=1,
        max_size=6,
    )
)
def test_leaders_change_only_where_they_must_and_are_even(lists: list[list[int]]) -> None:
    proposal = plan(snapshot_of({"t": lists}, dict.fromkeys(RACKS)), demote_brokers=(1,))
    after = lists_of(proposal)
    stuck = [replicas for replicas in lists if replicas == [1]]
    assert sum(replicas[0] == 1 for replicas in after) == len(stuck) == len(proposal.unmet)
    assert all(new[0] == old[0] for new, old in zip(after, lists, strict=True) if old[0] != 1)
    choices = [replicas[1:] if replicas[0] == 1 and len(replicas) > 1 else replicas[:1] for replicas in lists]

    def largest(leaders: tuple[int, ...]) -> int:
        return max(leaders.count(broker) for broker in (2, 3, 4))

    assert largest(tuple(replicas[0] for replicas in after)) == min(map(largest, product(*choices)))


def test_partition_that_keeps_its_leader_is_reported() -> None:
    snapshot = snapshot_of({"t": [[1], [1, 2], [1, 3]]}, RACKS, dead=[3])
    document = report_document(plan(snapshot, demote_brokers=(1,)))
    assert [(row.partition, row.lacks, row.reason) for row in document.unmet] == [
        (partition, [Unmet.LEADER], "none of its replicas is on a broker that is up and may lead")
        for partition in (0, 2)
    ]
    assert not document.targets_met
    assert "2 partitions led by a demoted broker" in document.summary


@pytest.mark.parametrize(
    ("goals", "error"),
    [
        ({"demote_brokers": (9,)}, "demote_brokers: found broker 9, expected a broker of the snapshot"),
        ({"demote_racks": ("z",)}, "demote_racks: found rack 'z', expected a rack of the snapshot"),
        ({"leader_racks": ("z",)}, "leader_racks: found rack 'z', expected a rack of the snapshot"),
        (
            {"demote_directories": (DirectoryName(1, "/z"),), "log_directories": listed(a=[0])},
            "demote_directories: found /z, expected a log directory of broker 1: /a",
        ),
        (
            {"demote_directories": (DirectoryName(9, "/a"),)},
            "demote_directories: found /a, expected a log directory of broker 9: none is known",
        ),
        (
            {"demote_directories": (DirectoryName(1, "/a"),), "rebalance": True},
            "demote_directories: found a goal that moves replicas",
        ),
        ({"demote_brokers": (1,), "rebalance": True}, "demote_brokers: found a goal that moves replicas"),
    ],
)
def test_refused_requests(goals: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError, match=error):
        plan(snapshot_of({"t": [[1, 2]]}, RACKS), **goals)
