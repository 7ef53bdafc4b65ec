"""The truth table of leader elections (Kafka 3.9 and 0.8.2) for the shipped selectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from kframe.core.selectors.kafka_selectors import SHIPPED
from kframe.core.selectors.lazy_view import election_batch
from kframe.core.selectors.leader_selection import Selection, run_selector
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, Ragged
from kframe.model.elections import ElectionBatch
from kframe.model.ids import NO_LEADER, ElectionKind, ReplicaFlag

SELECTORS = {selector.name: (selector, kinds) for selector, kinds in SHIPPED.items()}

#: A: assignment, I: ISR, L: registered brokers, SD: those shutting down, U: unclean election allowed. Column "other":
#: ``dir B``: the log directory of broker B is offline; ``rm B..``: replicas under removal.
TRUTH = """
 #| kind               | selector                 | A          | I          | L          | SD | U  | other   | leader
 1| INITIAL            | first-in-sync            | 2,4        |            | 2,4        |    |    |         | 2
 2| INITIAL            | first-in-sync            | 2,4        |            | 4          |    |    |         | 4
 3| INITIAL            | first-in-sync            | 2,4        |            | 2,4        | 2  |    |         | 4
 4| INITIAL            | first-in-sync            | 2,4        |            |            |    |    |         | none
 5| OFFLINE            | first-in-sync            | 2,4        | 2,4        | 4          |    |    |         | 4
 6| OFFLINE            | first-in-sync            | 2,4,6      | 6,4,2      | 4,6        |    |    |         | 4
 7| OFFLINE            | first-in-sync            | 2,4        | 2          | 4          |    | no |         | none
 8| OFFLINE            | first-in-sync            | 2,4        | 2          | 4          |    | yes|         | 4
 9| OFFLINE            | first-in-sync            | 2,4        | 2          | 4          |    | yes|         | 4
10| OFFLINE            | first-in-sync            | 2,4        | 2          |            |    | yes|         | none
11| OFFLINE            | first-in-sync            | 2,4        | 2,4        | 2,4        | 2  |    |         | 4
12| OFFLINE            | first-in-sync            | 2,4        | 2,4        | 4          |    | yes|         | 4
13| OFFLINE            | first-in-sync            | 2,4        | 2          | 2,4        |    | no | dir 2   | none
14| OFFLINE            | first-in-sync            | 2,4        | 4          | 2,4        |    |    |         | 4
15| REASSIGN           | reassigned               | 4,5,6,1,2,3| 1,2,3,4,5,6| 1,2,3,4,5,6|    |    | rm 1,2,3| 4
16| REASSIGN           | reassigned               | 2,4        | 2,4        | 4          |    |    |         | 4
17| REASSIGN           | reassigned               | 2,4        | 2          | 4          |    |    |         | none
18| REASSIGN           | reassigned               | 2,4        |            | 2          |    |    |         | none
19| PREFERRED          | preferred                | 2,4        | 2,4        | 2,4        |    |    |         | 2
20| PREFERRED          | preferred                | 2,4        | 4          | 2,4        |    |    |         | none
21| PREFERRED          | preferred                | 2,4        | 2,4        | 4          |    |    |         | none
22| PREFERRED          | preferred                | 2,4        | 2,4        | 2,4        | 2  |    |         | none
23| CONTROLLED_SHUTDOWN| controlled-shutdown      | 2,4        | 2,4        | 2,4        | 2  |    |         | 4
24| CONTROLLED_SHUTDOWN| controlled-shutdown      | 2,4        | 2          | 2,4        | 2  |    |         | none
25| CONTROLLED_SHUTDOWN| controlled-shutdown      | 2,4        | 2,4        | 2,4        | 2,4|    |         | none
26| CONTROLLED_SHUTDOWN| controlled-shutdown      | 2,4,6      | 6,2,4      | 2,6        | 2  |    |         | 6
27| CONTROLLED_SHUTDOWN| controlled-shutdown-0.8.2| 2,4,6      | 4,2,6      | 2,6        | 2  |    |         | 4
"""

#: Cases that the table does not list: combinations of its rules.
MORE = """
 #| kind               | selector                 | A          | I          | L          | SD | U  | other   | leader
51| OFFLINE            | first-in-sync            | 2,4,6      |            | 4,6        |    | yes|         | 4
52| OFFLINE            | first-in-sync            | 2,4,6      | 2          | 2,4,6      |    | yes| dir 2   | 4
53| OFFLINE            | first-in-sync            | 2,4        | 2          | 2,4        | 4,2| yes|         | none
54| REASSIGN           | reassigned               | 2,4        | 4          | 2,4        |    | yes| rm 4    | none
55| REASSIGN           | reassigned               | 2,4        | 2          | 4          |    | yes|         | none
56| INITIAL            | first-in-sync            | 2,4        |            | 2,4        |    |    | dir 2   | 4
57| PREFERRED          | preferred                | 2,4        | 2,4        | 2,4        |    | yes| dir 2   | none
58| CONTROLLED_SHUTDOWN| controlled-shutdown      | 2,4,6      | 6,4,2      | 2,4,6      | 2  |    |         | 4
59| CONTROLLED_SHUTDOWN| controlled-shutdown-0.8.2| 2,4,6      | 6,4,2      | 2,4,6      | 2  |    |         | 6
60| CONTROLLED_SHUTDOWN| controlled-shutdown-0.8.2| 2,4        | 2          | 2,4        | 2  |    |         | none
"""


@dataclass(frozen=True)
class Line:
    number: str
    kind: ElectionKind
    selector: str
    replicas: list[int]
    isr: list[int]
    registered: list[int]
    shutting_down: list[int]
    unclean: bool
    other: str
    leader: str


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def lines(table: str) -> list[Line]:
    cases = []
    for text in table.strip().splitlines()[1:]:
        number, kind, selector, replicas, isr, live, leaving, unclean, other, leader = (
            cell.strip() for cell in text.split("|")
        )
        cases.append(
            Line(number, ElectionKind[kind], selector, numbers(replicas), numbers(isr), numbers(live),
                 numbers(leaving), unclean == "yes", other, leader)
        )  # fmt: skip
    return cases


def cluster_of(line: Line) -> ClusterState:
    cluster = ClusterState()
    brokers = cluster.brokers
    brokers.register([Registration(broker_id, 1) for broker_id in line.registered])
    brokers.shutting_down[brokers.index_of(line.shutting_down)] = 1
    replicas, isr = (Ragged.of([brokers.index_of(some).tolist()]) for some in (line.replicas, line.isr))
    cluster.add_topics(["t"], np.array([1]), replicas, isr)
    flag_name, _, which = line.other.partition(" ")
    flag = {"dir": ReplicaFlag.OFFLINE_DIR, "rm": ReplicaFlag.REMOVING, "": ReplicaFlag.ADDING}[flag_name]
    cluster.flag_replicas(0, brokers.index_of(numbers(which)), flag)
    return cluster


def batch_of(line: Line, cluster: ClusterState) -> ElectionBatch:
    return election_batch(cluster, line.kind, np.array([0], np.int32), np.array([line.unclean], np.uint8))


def named(cluster: ClusterState, leader: Int32) -> str:
    return "none" if leader[0] == NO_LEADER else str(cluster.brokers.ids[leader[0]])


def test_truth_table_is_complete() -> None:
    assert [line.number for line in lines(TRUTH)] == [str(number) for number in range(1, 28)]
    assert {line.selector for line in lines(TRUTH)} == set(SELECTORS)


@pytest.mark.parametrize("line", lines(TRUTH) + lines(MORE), ids=lambda line: f"row-{line.number}")
def test_selector_elects_leader_of_truth_table(line: Line) -> None:
    cluster = cluster_of(line)
    selector, kinds = SELECTORS[line.selector]
    assert line.kind in kinds
    assert named(cluster, run_selector(line.selector, selector, batch_of(line, cluster))) == line.leader


@pytest.mark.parametrize("line", lines(TRUTH) + lines(MORE), ids=lambda line: f"row-{line.number}")
def test_safety_rules_reject_only_dead_leader_of_0_8_2(line: Line) -> None:
    cluster = cluster_of(line)
    six = cluster.brokers.index_of([6])
    selection = Selection({line.kind: SELECTORS[line.selector][0]}, lambda cluster, kind, rows, allowed: six)
    rows, unclean_allowed = np.array([0], np.int32), np.array([line.unclean], np.uint8)
    leader = selection.choose(cluster, line.kind, rows, unclean_allowed)
    refused = line.number == "27"
    assert named(cluster, leader) == ("6" if refused else line.leader)
    assert selection.faults.total() == refused
