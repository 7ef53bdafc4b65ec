"""What-ifs on a small cluster with results worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kframe.embedded import Api
from kframe.errors import ConfigError, InputError, SnapshotError
from kframe.model.events import ElectionType
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import PartitionFacts
from kframe.whatif import ElectionHeld, FailOn, RequestsSent, StatesWritten, WhatIf
from kframe.whatif.engines.zookeeper.engine import ZookeeperEngine
from kframe.whatif.engines.zookeeper.start import ZookeeperStart
from tests.whatif.samples import isrs, leaders, requests_by_broker, small

#: (failed brokers, unclean allowed, leaders, ISRs, offline, under min ISR, at min ISR, under-replicated, unclean
#: needed, leaders moved, unclean elections).
FAILURES = [
    ((), 0, [1, 2, 3, 1, -1], [(1, 2, 3), (2, 3, 1), (3,), (1,), (4,)], 1, 2, 1, 1, 0, 0, 0),
    ((1,), 0, [2, 2, 3, -1, -1], [(2, 3), (2, 3), (3,), (1,), (4,)], 2, 3, 2, 3, 0, 1, 0),
    ((2,), 0, [1, 3, 3, 1, -1], [(1, 3), (3, 1), (3,), (1,), (4,)], 1, 2, 3, 3, 0, 1, 0),
    ((3,), 0, [1, 2, -1, 1, -1], [(1, 2), (2, 1), (3,), (1,), (4,)], 2, 2, 3, 3, 1, 0, 0),
    ((3,), 1, [1, 2, 1, 1, -1], [(1, 2), (2, 1), (1,), (1,), (4,)], 1, 2, 3, 3, 0, 1, 1),
    ((1, 2), 0, [3, 3, 3, -1, -1], [(3,), (3,), (3,), (1,), (4,)], 2, 5, 0, 3, 0, 2, 0),
    ((1, 2, 3), 0, [-1] * 5, [(3,), (3,), (3,), (1,), (4,)], 5, 5, 0, 3, 0, 0, 0),
]


@pytest.mark.parametrize("row", FAILURES, ids=lambda row: f"fail-{row[0]}-unclean-{row[1]}")
def test_leaders_and_health_after_failures(row: tuple[object, ...]) -> None:
    brokers, unclean, led, in_sync, *conditions, moved, unclean_elections = row
    whatif = WhatIf(small(int(str(unclean))))
    health = whatif.health()
    if isinstance(brokers, tuple) and brokers:
        outcome = whatif.fail(brokers)
        health = outcome.after
        assert (outcome.impact.leaders_moved, outcome.impact.unclean_elections) == (moved, unclean_elections)
        assert outcome.count_of(FailOn.DATA_LOSS) == unclean_elections
    assert leaders(whatif) == led
    assert isrs(whatif) == in_sync
    assert list(health.counts().values()) == conditions


def test_timeline_lists_events_in_order() -> None:
    (step,) = WhatIf(small()).fail([1]).steps
    assert step.name == "broker 1 fails"
    election, first_stored, *_ = step.events
    assert isinstance(election, ElectionHeld)
    assert (election.partitions, election.elected, election.unclean) == (3, 1, 0)
    assert first_stored == StatesWritten(partitions=1, created=0, elected=1, shrunk=1, leaderless=0, refused=0)
    assert [type(event).__name__ for event in step.events] == [
        "ElectionHeld",
        "StatesWritten",
        "RequestsSent",
        "RequestsSent",
        "StatesWritten",
        "RequestsSent",
        "RequestsSent",
    ]
    stored = step.events[4]
    assert stored == StatesWritten(partitions=2, created=0, elected=0, shrunk=1, leaderless=1, refused=0)
    sent = [event for event in step.events if isinstance(event, RequestsSent)]
    assert [event.api for event in sent] == [Api.LEADER_AND_ISR, Api.UPDATE_METADATA] * 2


def test_requests_are_counted_by_broker() -> None:
    outcome = WhatIf(small()).fail([1])
    # The election sends t-0 to 2 and 3. The smaller ISRs concern t-0 (unchanged by then), t-1 and t-3.
    assert requests_by_broker(outcome, Api.UPDATE_METADATA).keys() == {2, 3}
    assert requests_by_broker(outcome, Api.LEADER_AND_ISR).keys() == {2, 3}
    assert requests_by_broker(outcome, Api.STOP_REPLICA) == {}
    sent = [event for step in outcome.steps for event in step.events if isinstance(event, RequestsSent)]
    for api, traffic in outcome.traffic.items():
        assert traffic.requests.sum() == sum(event.requests for event in sent if event.api is api)
        assert traffic.entries.sum() == sum(event.entries for event in sent if event.api is api)
        assert traffic.nbytes.sum() == sum(event.nbytes or 0 for event in sent if event.api is api)
    assert outcome.impact.requests == sum(event.requests for event in sent) == 8
    assert outcome.impact.bytes == sum(event.nbytes or 0 for event in sent) > 0


def test_changes_have_states_before_and_after() -> None:
    changes = WhatIf(small()).fail([1]).changes
    assert [(row["topic"], row["partition"]) for row in changes.records()] == [("t", 0), ("t", 1), ("t", 3)]
    assert changes.leader_before.tolist() == [1, 2, 1]
    assert changes.leader_after.tolist() == [2, 2, -1]
    assert changes.leader_epoch_before is not None
    assert changes.leader_epoch_after is not None
    assert (changes.leader_epoch_after - changes.leader_epoch_before).tolist() == [1, 1, 1]
    assert changes.partition_epoch_after is not None
    assert changes.partition_epoch_after.tolist() == [1, 1, 1]
    assert changes.isr_before[0].tolist() == [1, 2, 3]
    assert changes.isr_after[0].tolist() == [2, 3]
    assert changes.went_offline.tolist() == [False, False, True]
    assert [row["partition"] for row in changes.records(limit=2)] == [3, 0]


def test_states_are_written_with_controller_epoch_of_snapshot() -> None:
    engine = ZookeeperEngine(ZookeeperStart.of(small()))
    whatif = WhatIf.of(engine)
    assert whatif.health().counts()["offline"] == 1
    whatif.fail([1])
    assert whatif.cluster["t", 0].controller_epoch == 7
    stored = engine.ensemble.states.cluster
    assert (stored["t", 0].controller_epoch, stored["t", 2].controller_epoch) == (7, 0)
    assert whatif.cluster["t", 2].controller_epoch == 7, "broker 1 left no ISR there, but the controller checked it"


def test_simultaneous_failures_elect_once() -> None:
    together, sequential = WhatIf(small()), WhatIf(small())
    together.fail([1, 2])
    sequential.fail([1, 2], together=False)
    assert leaders(together) == leaders(sequential)
    # The leader of t-0 moves from 1 directly to 3, or through 2.
    assert together.cluster["t", 0].leader_epoch == 6
    assert sequential.cluster["t", 0].leader_epoch == 7


def test_only_new_conditions_are_findings() -> None:
    whatif = WhatIf(small())
    whatif.fail([3])
    outcome = whatif.restart([3])
    assert (outcome.impact.back_online, outcome.impact.offline_peak) == (1, 1)
    assert outcome.count_of(FailOn.OFFLINE) == 0
    assert WhatIf(small()).fail([1, 3], together=False).count_of(FailOn.OFFLINE) == 2


def test_racks_name_their_registered_brokers() -> None:
    outcome = WhatIf(small()).fail(racks=["a", "c"])
    assert outcome.operation.brokers == (1, 3)
    assert WhatIf(small()).fail([2], ["a"]).operation.text() == "fail brokers 2, 1 together"


def test_starting_broker_receives_all_metadata() -> None:
    whatif = WhatIf(small())
    outcome = whatif.restart([4])
    assert outcome.steps[0].name == "broker 4 starts"
    assert leaders(whatif) == [1, 2, 3, 1, 4]
    assert requests_by_broker(outcome, Api.UPDATE_METADATA)[4][1] >= 5
    assert any("rejoin the ISR" in note for note in outcome.notes)


def test_restart_of_live_broker_bounces_it() -> None:
    whatif = WhatIf(small())
    before = whatif.cluster.brokers.broker_epoch.copy()
    outcome = whatif.restart([2])
    assert outcome.steps[0].name == "broker 2 bounces"
    assert np.flatnonzero(before != whatif.cluster.brokers.broker_epoch).tolist() == [whatif.cluster.brokers.find(2)]
    assert leaders(whatif) == [1, 3, 3, 1, -1]


def test_restart_of_failed_and_live_brokers_together() -> None:
    outcome = WhatIf(small()).restart([4, 2])
    assert [step.name for step in outcome.steps] == ["broker 2 bounces, broker 4 starts"]
    assert outcome.after.registered.tolist() == [1, 1, 1, 1]


def test_controlled_shutdown_moves_leaders_first() -> None:
    whatif = WhatIf(small())
    outcome = whatif.shutdown([1])
    shutdown, failure = outcome.steps
    assert (shutdown.name, failure.name) == ("broker 1 requests controlled shutdown", "broker 1 stops")
    assert shutdown.response is not None
    assert (shutdown.response.error.name, len(shutdown.response.rows)) == ("NONE", 0)
    assert (shutdown.counts["offline"], failure.counts["offline"]) == (1, 2)
    assert leaders(whatif) == [2, 2, 3, -1, -1]
    assert any("broker 1 is the controller" in note for note in outcome.notes)


def test_controlled_shutdown_reports_remaining_partitions() -> None:
    outcome = WhatIf(small()).shutdown([3])
    assert outcome.steps[0].response is not None
    assert outcome.steps[0].response.rows.tolist() == [2]


def test_steps_of_simultaneous_and_sequential_shutdowns() -> None:
    names = [[step.name for step in WhatIf(small()).shutdown([1, 2], together=how).steps] for how in (True, False)]
    assert names == [
        ["broker 1 requests controlled shutdown", "broker 2 requests controlled shutdown", "brokers 1, 2 stop"],
        [
            "broker 1 requests controlled shutdown",
            "broker 1 stops",
            "broker 2 requests controlled shutdown",
            "broker 2 stops",
        ],
    ]


def test_preferred_election_moves_leaders_back() -> None:
    whatif = WhatIf(small())
    whatif.shutdown([2])
    whatif.restart([2])
    assert leaders(whatif)[1] == 3
    outcome = whatif.elect(ElectionType.PREFERRED)
    response = outcome.steps[0].response
    assert response is not None
    # Broker 2 is registered again, but not in the ISR yet. The replica of t-4 is dead.
    assert response.counts() == {"PREFERRED_LEADER_NOT_AVAILABLE": 2}
    assert response.rows.tolist() == [1, 4]


def test_unclean_election_of_partition() -> None:
    whatif = WhatIf(small())
    whatif.fail([3])
    outcome = whatif.elect(ElectionType.UNCLEAN, [("t", 2)])
    assert outcome.operation.text() == "elect unclean leaders for 1 partition"
    assert (outcome.impact.unclean_elections, outcome.impact.back_online, outcome.count_of(FailOn.DATA_LOSS)) == (
        1,
        1,
        1,
    )
    assert leaders(whatif)[2] == 1


def test_values_missing_from_snapshot_stay_unknown() -> None:
    snapshot = small()
    bare = Snapshot(
        snapshot.brokers,
        snapshot.topics,
        PartitionFacts(snapshot.partitions.replicas, snapshot.partitions.leader, snapshot.partitions.isr),
        snapshot.source,
    )
    object.__setattr__(bare.topics, "configs", None)
    outcome = WhatIf(bare).fail([1])
    assert outcome.changes.leader_epoch_before is None
    assert outcome.changes.partition_epoch_after is None
    assert (outcome.impact.newly_under_min_isr, outcome.count_of(FailOn.UNDER_MIN_ISR)) == (None, None)
    assert any(text.startswith("partitions.leader_epoch unknown") for text in outcome.assumptions)
    assert outcome.impact.leaders_moved == 1


def test_bytes_are_unknown_without_endpoints() -> None:
    outcome = WhatIf(small(), {"inter.broker.listener.name": "INTERNAL"}).fail([1])
    assert outcome.impact.bytes is None
    assert outcome.bytes_unknown is not None
    assert "INTERNAL" in outcome.bytes_unknown
    assert outcome.impact.requests == 8


@pytest.mark.parametrize(
    "brokers, racks, message",
    [
        ([9], [], "brokers: found broker 9, expected a registered broker: 1, 2, 3"),
        ([4], [], "brokers: found broker 4, which is not up, expected a registered broker: 1, 2, 3"),
        ([-1], [], "found broker -1"),
        ([2**40], [], f"found broker {2**40}"),
        ([1, 1], [], "found broker 1 twice, expected each broker once"),
        ([], ["z"], "racks: found rack 'z', expected one of a, b, c"),
        ([], [], "brokers: found no broker, expected at least one of 1, 2, 3"),
    ],
)
def test_unknown_brokers_and_racks_are_named_and_change_nothing(
    brokers: list[int], racks: list[str], message: str
) -> None:
    whatif = WhatIf(small())
    with pytest.raises(InputError) as caught:
        whatif.fail(brokers, racks)
    assert message in str(caught.value)
    assert leaders(whatif) == [1, 2, 3, 1, -1]


def test_unknown_partition_is_named() -> None:
    with pytest.raises(InputError, match="found t-9, expected a partition of the snapshot"):
        WhatIf(small()).elect(ElectionType.PREFERRED, [("t", 9)])


def test_snapshot_without_leaders_is_refused() -> None:
    snapshot = small()
    bare = Snapshot(snapshot.brokers, snapshot.topics, PartitionFacts(snapshot.partitions.replicas), snapshot.source)
    with pytest.raises(SnapshotError, match="nothing about who leads"):
        WhatIf(bare)


@pytest.mark.parametrize(
    "key, value", [("min.insync.replica", "1"), ("min.insync.replicas", "x"), ("inter.broker.protocol.version", "9.9")]
)
def test_invalid_configuration_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError):
        WhatIf(small(), {key: value})
