"""Special cases: one cluster per rule, in a sweep and in a what-if. Random clusters rarely contain these cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, registration
from kframe.whatif import sweep
from tests.whatif.test_sweep_invariants import brute_force, swept

Topics = Mapping[str, Sequence[PartitionSpec]]

LED_FROM_OUTSIDE = PartitionSpec((1, 2, 3), leader=1, isr=(2,))
UNASSIGNED_IN_ISR = PartitionSpec((1, 2), leader=1, isr=(1, 4))
UNASSIGNED_LEADER = PartitionSpec((1, 2), leader=3, isr=(3, 2))
NEVER_LED = PartitionSpec((3, 2, 5))
LEADER_UNREGISTERED = PartitionSpec((5, 2, 3), leader=5, isr=(5, 3, 2))
ISR_UNREGISTERED = PartitionSpec((5, 2, 3), leader=None, isr=(5,))
MOVING = PartitionSpec((1, 2, 3), leader=1, isr=(1, 2, 3), adding_replicas=(3,), removing_replicas=(1,))
LED_BY_OTHER = PartitionSpec((1, 2), leader=1, isr=(2,))

#: Topics of a cluster with registered brokers 1 to 4 and unregistered broker 5. Topics whose name starts with d are
#: under deletion. The distinguishing result follows: failed brokers, a column, its value.
CASES: Mapping[str, tuple[Topics, tuple[int, ...], str, object]] = {
    "last member stays in the ISR": ({"t": [LED_FROM_OUTSIDE]}, (2,), "at_min_isr", 1),
    "unassigned ISR member prevents unclean election": ({"t": [UNASSIGNED_IN_ISR]}, (1,), "needs_unclean_election", 0),
    "unassigned ISR member fails too": ({"t": [UNASSIGNED_IN_ISR]}, (1, 4), "needs_unclean_election", 1),
    "failure of unassigned leader moves leadership": ({"t": [UNASSIGNED_LEADER]}, (3,), "leaders_moved", 1),
    "any failure elects a leader for a partition without state": ({"t": [NEVER_LED, healthy(1)]}, (4,), "offline", 0),
    "partition without state waits for a live replica": ({"t": [NEVER_LED]}, (2, 3), "needs_unclean_election", 0),
    "any failure elects leaders for offline partitions": ({"t": [LEADER_UNREGISTERED]}, (4,), "leaders_moved", 1),
    "ISR was offline before the failure": ({"t": [ISR_UNREGISTERED]}, (4,), "needs_unclean_election", 1),
    "failure leaves only an unclean election": ({"t": [LED_FROM_OUTSIDE]}, (1, 2), "newly_may_lose_data", 1),
    "unclean election was needed before the failure": ({"t": [ISR_UNREGISTERED]}, (4,), "newly_may_lose_data", 0),
    "failure leaves no replica to elect": ({"t": [UNASSIGNED_IN_ISR]}, (1, 2), "newly_may_lose_data", 0),
    "replicas being added count for min ISR": ({"t": [MOVING]}, (1, 2), "under_min_isr", 1),
    "topics under deletion are led": ({"t": [healthy(1)], "d": [healthy(2)]}, (3,), "leaders_max", 1),
    "failure resumes deletions of other topics": (
        {"t": [healthy(1)], "d1": [healthy(2), healthy(2)], "d2": [healthy(3)]},
        (3,),
        "leaders_max",
        1,
    ),
    "failure halts the deletion of its own topics": (
        {"t": [healthy(1)], "d1": [healthy(2, 4), healthy(2)], "d2": [healthy(3)]},
        (3, 4),
        "leaders_max",
        2,
    ),
    "dead replica halts a deletion": (
        {"t": [healthy(1)], "d1": [healthy(2), healthy(2, 5)], "d2": [healthy(3)]},
        (3,),
        "leaders_max",
        2,
    ),
    "reassignment halts a deletion": (
        {"d1": [MOVING, healthy(1)], "d2": [healthy(4)]},
        (4,),
        "leaders_max",
        2,
    ),
    "out-of-sync leader does not resign": (
        {"d1": [LED_BY_OTHER, LED_BY_OTHER], "d2": [healthy(4)]},
        (4,),
        "leaders_max",
        2,
    ),
}


def snapshot_of(topics: Topics, unclean: int) -> Snapshot:
    racks = {1: "a", 2: "a", 3: "b", 4: None}
    cluster = cluster_of(topics, [registration(broker_id, rack, 10 + broker_id) for broker_id, rack in racks.items()])
    cluster.topics.deleting[:] = [name.startswith("d") for name in topics]
    cluster.topics.unclean[:] = unclean
    return Snapshot.from_cluster(cluster)


@pytest.mark.parametrize("min_isr", [1, 2, 3])
@pytest.mark.parametrize("unclean", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_sweep_equals_what_ifs(name: str, unclean: int, min_isr: int) -> None:
    snapshot, config = snapshot_of(CASES[name][0], unclean), {"min.insync.replicas": min_isr}
    assert swept(snapshot, dict(config)) == brute_force(snapshot, dict(config))


@pytest.mark.parametrize("name", CASES)
def test_case_has_its_distinguishing_value(name: str) -> None:
    topics, failed, column, value = CASES[name]
    min_isr = 2 if column == "under_min_isr" else 1
    records = {
        tuple(record["brokers"]): record
        for record in sweep(snapshot_of(topics, 0), {"min.insync.replicas": min_isr}).records()
    }
    assert records[failed][column] == value


def test_topics_count_as_live_if_deletion_is_disabled() -> None:
    snapshot = snapshot_of({"d1": [healthy(1, 2)], "d2": [healthy(3)]}, 0)
    config: dict[str, object] = {"delete.topic.enable": False}
    assert swept(snapshot, config) == brute_force(snapshot, config)
    assert sweep(snapshot, config).worst(1)[0]["offline"] == 1
