"""The truth table of leader elections (Kafka 3.9 and 0.8.2) for the shipped selectors."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from kframe.core.selectors.kafka_selectors import SHIPPED
from kframe.core.selectors.lazy_view import election_batch
from kframe.core.selectors.leader_selection import Selection, run_selector
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag
from kframe.testing.clusters import PartitionSpec, cluster_of
from tests.core.test_truth_table import TABLE, UNCLEAN, Row

SELECTORS = {selector.name: (selector, kinds) for selector, kinds in SHIPPED.items()}
#: Election kind and selector by the strategy of a row.
STRATEGIES: Final = {
    "initial": (ElectionKind.INITIAL, "first-in-sync"),
    "offline": (ElectionKind.OFFLINE, "first-in-sync"),
    "admin unclean": (ElectionKind.OFFLINE, "first-in-sync"),
    "reassign": (ElectionKind.REASSIGN, "reassigned"),
    "preferred": (ElectionKind.PREFERRED, "preferred"),
    "shutdown of 2": (ElectionKind.CONTROLLED_SHUTDOWN, "controlled-shutdown"),
    "shutdown of 2 in 0.8.2": (ElectionKind.CONTROLLED_SHUTDOWN, "controlled-shutdown-0.8.2"),
}
#: The last row of the truth table, and cases that it does not list: combinations of its rules.
MORE: Final = (
    Row(27, "shutdown of 2 in 0.8.2", (2, 4, 6), (4, 2, 6), (2, 6), (4, (4, 6), 5)),
    Row(51, "offline", (2, 4, 6), (), (4, 6), (4, (4,), 5), config=UNCLEAN),
    Row(52, "offline", (2, 4, 6), (2,), (2, 4, 6), (4, (4,), 5), offline_dir=(2,), config=UNCLEAN),
    Row(53, "offline", (2, 4), (2,), (2, 4), None, shutting_down=(4, 2), config=UNCLEAN),
    Row(54, "reassign", (2, 4), (4,), (2, 4), None, removing=(4,), config=UNCLEAN),
    Row(55, "reassign", (2, 4), (2,), (4,), None, config=UNCLEAN),
    Row(56, "initial", (2, 4), None, (2, 4), (4, (4,), 0), offline_dir=(2,)),
    Row(57, "preferred", (2, 4), (2, 4), (2, 4), None, offline_dir=(2,), config=UNCLEAN),
    Row(58, "shutdown of 2", (2, 4, 6), (6, 4, 2), (2, 4, 6), (4, (6, 4), 5)),
    Row(59, "shutdown of 2 in 0.8.2", (2, 4, 6), (6, 4, 2), (2, 4, 6), (6, (6, 4), 5)),
    Row(60, "shutdown of 2 in 0.8.2", (2, 4), (2,), (2, 4), None),
)

each_row = pytest.mark.parametrize("row", TABLE + MORE, ids=lambda row: f"row-{row.number}")


def cluster_before(row: Row) -> ClusterState:
    cluster = cluster_of({"t": [PartitionSpec(row.replicas, None, row.isr or ())]}, row.live)
    brokers, leaving = cluster.brokers, (2,) if row.strategy.startswith("shutdown of 2") else ()
    brokers.shutting_down[brokers.index_of((*row.shutting_down, *leaving))] = 1
    cluster.flag_replicas(0, brokers.index_of(row.offline_dir), ReplicaFlag.OFFLINE_DIR)
    cluster.flag_replicas(0, brokers.index_of(row.removing), ReplicaFlag.REMOVING)
    return cluster


def election(row: Row) -> tuple[ElectionKind, Int32, UInt8]:
    """Return the kind of election, its row, and whether an unclean leader is allowed."""
    unclean = row.config is not None or row.strategy == "admin unclean"
    return STRATEGIES[row.strategy][0], np.zeros(1, np.int32), np.array([unclean], np.uint8)


def leader_id(cluster: ClusterState, leader: Int32) -> int | None:
    return None if leader[0] == NO_LEADER else int(cluster.brokers.ids[leader[0]])


def test_every_selector_has_a_row() -> None:
    assert {STRATEGIES[row.strategy][1] for row in TABLE + MORE} == set(SELECTORS)


@each_row
def test_selector_elects_leader_of_truth_table(row: Row) -> None:
    cluster, (kind, name) = cluster_before(row), STRATEGIES[row.strategy]
    selector, kinds = SELECTORS[name]
    assert kind in kinds
    leader = run_selector(name, selector, election_batch(cluster, *election(row)))
    assert leader_id(cluster, leader) == (row.elected and row.elected[0])


@each_row
def test_safety_rules_reject_only_dead_leader_of_0_8_2(row: Row) -> None:
    cluster, (kind, name) = cluster_before(row), STRATEGIES[row.strategy]
    six = cluster.brokers.index_of([6])
    selection = Selection({kind: SELECTORS[name][0]}, lambda cluster, kind, rows, allowed: six)
    leader, refused = selection.choose(cluster, *election(row)), row.number == 27
    assert leader_id(cluster, leader) == (6 if refused else row.elected and row.elected[0])
    assert selection.faults.total() == refused
