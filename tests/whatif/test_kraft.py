"""What-ifs on KRaft clusters: scenarios with ELR on and off, by the rules of Kafka's controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import pytest

from kframe.errors import ConfigError, InputError
from kframe.model.events import ElectionType
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.directory_ids import LOST
from kframe.model.kraft.levels import LEVEL_NAMES
from kframe.model.plan import Plan
from kframe.snapshot import Snapshot, Source
from kframe.whatif import (
    FailOn,
    Outcome,
    TopicStatus,
    WhatIf,
)
from kframe.whatif.engines.kraft.explain import KraftCandidateStatus, KraftRule
from kframe.whatif.results.timeline import ElrChanged, RecordsWritten
from tests.whatif.kraft_samples import directory, metadata_with, new_whatif, partition, record_counts, state
from tests.whatif.samples import small
from tests.whatif.test_explain import statuses

Act = Callable[[WhatIf], Outcome]

#: Name, partition 0 of topic t, ELR on, operations, and then leader, ISR and ELR of the partition.
SCENARIOS: Final[tuple[tuple[str, Any, bool, tuple[Act, ...], tuple[int, list[int], list[int]]], ...]] = (
    ("fail the leader", partition(0, (1, 2, 3), (1, 2, 3)), True, (lambda w: w.fail([1]),), (2, [2, 3], [])),
    ("below min ISR a failed member enters the ELR", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.fail([1]),), (2, [2], [1])),
    ("without ELR it leaves the ISR", partition(0, (1, 2), (1, 2)), False, (lambda w: w.fail([1]),), (2, [2], [])),
    ("the last member leaves the ISR with ELR", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.fail([1, 2]),), (-1, [], [1, 2])),
    ("the last member stays in the ISR without ELR", partition(0, (1, 2), (1, 2)), False,
     (lambda w: w.fail([1, 2]),), (-1, [2], [])),
    ("a clean restart elects from the ELR", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.fail([1, 2]), lambda w: w.restart([1], clean=True)), (1, [1], [2])),
    ("an unclean restart leaves the ELR", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.fail([1, 2]), lambda w: w.restart([1])), (-1, [], [2])),
    ("a broker that was shut down restarts cleanly", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.shutdown([1, 2], together=False), lambda w: w.restart([1])), (1, [1], [2])),
    ("fence and unfence", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.fence([1, 2]), lambda w: w.unfence([2])), (2, [2], [1])),
    ("a log directory fails", partition(0, (1, 2, 3), (1, 2, 3)), True,
     (lambda w: w.fail_directories(1, [directory(1)]),), (2, [2, 3], [])),
    ("another log directory fails", partition(0, (1, 2, 3), (1, 2, 3)), True,
     (lambda w: w.fail_directories(1, [directory(1, 1)]),), (1, [1, 2, 3], [])),
    ("all log directories fail", partition(0, (1, 2, 3), (1, 2, 3)), True,
     (lambda w: w.fail_directories(1, [directory(1), directory(1, 1)]),), (2, [2, 3], [])),
    ("preferred election", partition(0, (1, 2, 3), (2, 1, 3)), True,
     (lambda w: w.elect(ElectionType.PREFERRED),), (1, [2, 1, 3], [])),
    ("unclean election", partition(0, (1, 2, 3), (), last_known_elr=(4,)), True,
     (lambda w: w.elect(ElectionType.UNCLEAN, [("t", 0)]),), (1, [1], [])),
    ("a reassignment completes", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.reassign(Plan.of([(("t", 0), (3, 4))])),), (3, [3, 4], [])),
    ("turning ELR off empties ELRs at the next change", partition(0, (1, 2), (1, 2)), True,
     (lambda w: w.fail([1]), lambda w: w.update_features({"eligible.leader.replicas.version": 0}),
      lambda w: w.fail([2])), (-1, [2], [])),
)  # fmt: skip


@pytest.mark.parametrize("name, stored, elr, operations, expected", SCENARIOS, ids=[row[0] for row in SCENARIOS])
def test_partition_state_after_operations(
    name: str, stored: Any, elr: bool, operations: tuple[Act, ...], expected: tuple[int, list[int], list[int]]
) -> None:
    whatif = new_whatif([stored], elr=elr)
    for operation in operations:
        operation(whatif)
    assert state(whatif) == expected


def test_snapshot_mode_selects_rules() -> None:
    snapshot = Snapshot.from_metadata(metadata_with([partition(0, (1, 2), (1, 2))]), source=Source("kraft", "x"))
    assert WhatIf(snapshot).rules == "KRaft (Kafka 4.4, metadata.version 4.3-IV0, ELR on)"
    assert WhatIf(snapshot).fail([1]).rules == WhatIf(snapshot).rules
    assert WhatIf(small()).fail([1]).rules == "ZooKeeper (Kafka 3.9)"


def test_outcome_counts_records_and_elr_changes() -> None:
    outcome = new_whatif([partition(0, (1, 2), (1, 2)), partition(1, (1, 2), (2,))]).fail([2])
    assert record_counts(outcome) == {"BrokerRegistrationChange": 1, "PartitionChange": 2}
    events = outcome.steps[0].events
    assert [event for event in events if isinstance(event, ElrChanged)] == [ElrChanged(2, 2, 0, 0)]
    (written,) = [event for event in events if isinstance(event, RecordsWritten)]
    assert (outcome.impact.records, outcome.impact.bytes) == (3, written.nbytes)
    assert outcome.impact.newly_offline == outcome.count_of(FailOn.OFFLINE) == 1
    changes = outcome.changes
    assert changes.elr_before is not None
    assert changes.elr_after is not None
    assert [changes.elr_before[row].tolist() for row in (0, 1)] == [[], []]
    assert [changes.elr_after[row].tolist() for row in (0, 1)] == [[2], [2]]
    assert changes.partition_epoch_after is not None
    assert changes.partition_epoch_after.tolist() == [8, 8]


def test_only_elections_outside_isr_and_elr_count_as_loss() -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2)), partition(1, (1, 2), (), last_known_elr=(1,))], fenced=(1,))
    outcome = whatif.unfence([1])
    assert outcome.count_of(FailOn.DATA_LOSS) == 1
    assert outcome.changes.unclean.tolist() == [True]
    clean = new_whatif([partition(0, (1, 2), (), eligible_leader_replicas=(1, 2))], fenced=(1, 2))
    assert clean.unfence([2]).count_of(FailOn.DATA_LOSS) == 0
    assert state(clean) == (2, [2], [1])


#: Name, partitions of topic t, ELR on, fenced brokers, operations, and the partitions that may lose data after the last
#: one, but not before. A partition with neither leader nor members can only be led by its last-known leader.
POSSIBLE_LOSSES: Final[tuple[tuple[str, list[Any], bool, tuple[int, ...], tuple[Act, ...], int], ...]] = (
    ("a member of the ISR remains", [partition(0, (1, 2), (1, 2))], True, (), (lambda w: w.fail([1]),), 0),
    ("the ELR has all members", [partition(0, (1, 2), (1, 2))], True, (), (lambda w: w.fail([1, 2]),), 0),
    ("a replica outside the ISR remains", [partition(0, (1, 2), (1,))], False, (), (lambda w: w.fail([1]),), 1),
    ("no replica remains", [partition(0, (1, 2), (1, 2))], False, (), (lambda w: w.fail([1, 2]),), 0),
    ("an unclean restart empties the ELR", [partition(0, (1, 2), (1, 2))], True, (),
     (lambda w: w.fail([1, 2]), lambda w: w.restart([1, 2])), 1),
    ("the last-known leader is elected", [partition(0, (1, 2), (), last_known_elr=(1,))], True, (1,),
     (lambda w: w.unfence([1]),), 1),
    ("a partition that was exposed before", [partition(0, (1, 2), ()), partition(1, (3, 4), (3,))], False, (),
     (lambda w: w.fail([3]),), 1),
)  # fmt: skip


@pytest.mark.parametrize(
    "name, partitions, elr, fenced, operations, count", POSSIBLE_LOSSES, ids=[row[0] for row in POSSIBLE_LOSSES]
)
def test_possible_loss_counts_unclean_and_newly_exposed_partitions(
    name: str, partitions: list[Any], elr: bool, fenced: tuple[int, ...], operations: tuple[Act, ...], count: int
) -> None:
    whatif = new_whatif(partitions, elr=elr, fenced=fenced)
    outcomes = [operation(whatif) for operation in operations]
    assert outcomes[-1].count_of(FailOn.POSSIBLE_DATA_LOSS) == count


def test_topics_are_created_and_deleted() -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2))])
    outcome = whatif.create("new", 3, 2, seed=1)
    assert [(topic.status, topic.partitions, topic.replicas) for topic in outcome.topics] == [
        (TopicStatus.COMPLETED, 3, 6)
    ]
    assert record_counts(outcome) == {"Partition": 3, "Topic": 1}
    assert len(outcome.changes) == 3
    assert whatif.create("new", 3, 2).topics[0].error.name == "TOPIC_ALREADY_EXISTS"
    deleted = whatif.delete(["new", "nosuch"])
    assert [topic.status for topic in deleted.topics] == [TopicStatus.COMPLETED, TopicStatus.REFUSED]
    assert len(deleted.changes) == 3
    assert deleted.changes.leader_after.tolist() == [-1, -1, -1]


FAILED_1: Final = f"log directories of broker 1: the restart leaves {uuid_text(directory(1))} failed"


def listed(whatif: WhatIf, broker_id: int = 1) -> tuple[bool, set[UUID]]:
    """Whether a broker is fenced, and the log directories that it has registered."""
    registration = whatif.cluster.brokers.registrations[broker_id]
    return registration.fenced, set(registration.directories)


def with_failed_directory(source: str) -> WhatIf:
    """Partition 0 is in the failed directory of broker 1: it failed in the what-if, or the snapshot shows it."""
    whatif = new_whatif([partition(0, (1, 2), (1, 2))])
    whatif.fail_directories(1, [directory(1)])
    if source == "what-if":
        return whatif
    return WhatIf(Snapshot.from_metadata(whatif.cluster, source=Source("kraft", "failed")))


@pytest.mark.parametrize("source", ["what-if", "snapshot"])
def test_failed_directory_stays_failed_after_restart(source: str) -> None:
    whatif = with_failed_directory(source)
    outcome = whatif.restart([1, 3])
    assert listed(whatif) == (False, {directory(1, 1)})
    (assumption,) = outcome.assumptions
    assert assumption == f"{FAILED_1} (--repair-directories: it repairs them)"


@pytest.mark.parametrize("source", ["what-if", "snapshot"])
def test_repaired_directory_is_registered_again(source: str) -> None:
    whatif = with_failed_directory(source)
    whatif.fail([2])
    assert state(whatif) == (-1, [], [1, 2])
    assert whatif.restart([1]).assumptions != ()
    assert state(whatif)[0] == -1
    outcome = whatif.restart([1], repair_directories=True, clean=True)
    assert listed(whatif) == (False, {directory(1), directory(1, 1)})
    assert (state(whatif), outcome.assumptions) == ((1, [1], [2]), ())
    assert whatif.restart([1]).assumptions == ()


def test_broker_without_working_directory_does_not_start() -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2))])
    whatif.fail_directories(1, [directory(1), directory(1, 1)])
    outcome = whatif.restart([1])
    assert listed(whatif)[0]
    assert " failed, so the broker does not start" in outcome.assumptions[0]
    assert whatif.restart([1], repair_directories=True).assumptions == ()
    assert listed(whatif) == (False, {directory(1), directory(1, 1)})


def test_lost_directory_stays_offline_after_restart() -> None:
    whatif = new_whatif([partition(0, (1, 2), (2,), directories=(LOST, directory(2)))])
    (assumption,) = whatif.restart([1]).assumptions
    assert assumption == "log directories of broker 1: replicas in a lost directory stay offline after the restart"


def test_restart_of_brokers_without_failed_directories_assumes_nothing() -> None:
    assert new_whatif([partition(0, (1, 2), (1, 2))]).restart([1, 2]).assumptions == ()


def test_directories_are_repaired_in_kraft_mode_only() -> None:
    with pytest.raises(InputError, match="mode"):
        WhatIf(small()).restart([1], repair_directories=True)


def test_placement_of_new_partitions_depends_on_seed() -> None:
    placements = set()
    for seed in range(0, 10**9, 10**8):  # Java draws similar numbers from neighbouring seeds
        outcome = new_whatif([partition(0, (1, 2), (1, 2))]).create_partitions("t", 4, seed=seed)
        assert [(topic.status, topic.partitions, topic.replicas) for topic in outcome.topics] == [
            (TopicStatus.COMPLETED, 3, 6)
        ]
        assert record_counts(outcome) == {"Partition": 3}
        assert outcome.changes.partition.tolist() == [1, 2, 3]
        placements.add(tuple(outcome.changes.replicas_after.values.tolist()))
        repeated = new_whatif([partition(0, (1, 2), (1, 2))]).create_partitions("t", 4, seed=seed)
        assert list(repeated.changes.records()) == list(outcome.changes.records())
    assert len(placements) > 1


def test_new_partitions_accept_assignments() -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2))])
    outcome = whatif.create_partitions("t", 2, assignments=[[3, 4]])
    assert (outcome.topics[0].status, state(whatif, 1)) == (TopicStatus.COMPLETED, (3, [3, 4], []))


def with_factors(*factors: int, epoch: int = 0) -> WhatIf:
    """A topic whose partitions have these replication factors."""
    numbered = [(number, tuple(range(1, factor + 1))) for number, factor in enumerate(factors)]
    return new_whatif([partition(number, all_of, all_of, partition_epoch=epoch) for number, all_of in numbered])


@pytest.mark.parametrize(
    "factors, epoch, factor, other",
    [
        ((1, 2), 0, 1, None),
        ((1, 1, 2), 0, 2, None),
        ((1, 1, 2, 1, 1), 0, 2, None),
        ((1, 1, 1, 1, 1, 2), 0, 2, None),
        ((1, 1, 2, 1, 1, 3, 1, 1), 0, 3, None),
        ((1, 1, 2, 1, 1), 7, 1, 2),  # A change enlarges the full table of five partitions.
        ((1, 1, 2, 1, 1, 3), 7, 3, None),
    ],
)
def test_new_partitions_have_factor_of_first_partition_in_hash_order(
    factors: tuple[int, ...], epoch: int, factor: int, other: int | None
) -> None:
    outcome = with_factors(*factors, epoch=epoch).create_partitions("t", len(factors) + 1)
    assert outcome.topics[0].replicas == factor
    (note,) = outcome.notes
    assert f"new ones get {factor}, " in note
    assert (f"; {other} if " in note) == (other is not None)


def test_equal_factors_need_no_note() -> None:
    assert with_factors(2, 2, 2).create_partitions("t", 4).notes == ()


@pytest.mark.parametrize(
    "name, count, assignments, error",
    [
        ("nosuch", 3, None, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("t", 10_002, None, "POLICY_VIOLATION"),
        ("t", 3, [[1, 2]], "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_refused_partitions_change_nothing(
    name: str, count: int, assignments: list[list[int]] | None, error: str
) -> None:
    outcome = new_whatif([partition(0, (1, 2), (1, 2))]).create_partitions(name, count, assignments=assignments)
    assert [(topic.status, topic.error.name) for topic in outcome.topics] == [(TopicStatus.REFUSED, error)]
    assert not outcome.changed


def test_new_partitions_without_enough_active_brokers_are_refused() -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2))], brokers=2)
    whatif.fail([1, 2])
    assert whatif.create_partitions("t", 2).topics[0].error.name == "INVALID_REPLICATION_FACTOR"


def test_metadata_topic_cannot_be_created() -> None:
    outcome = new_whatif([partition(0, (1, 2), (1, 2))]).create("__cluster_metadata", 1, 1)
    assert (outcome.topics[0].error.name, outcome.changed) == ("INVALID_REQUEST", False)


def test_reassignment_waits_for_fenced_replica() -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2)), partition(1, (1, 2), (1, 2))], fenced=(4,))
    result = whatif.reassign(Plan.of([(("t", 0), (3, 2)), (("t", 1), (4, 2)), (("t", 9), (1,))])).reassignment
    assert result is not None
    assert [result.status(position) for position in range(3)] == [
        TopicStatus.COMPLETED,
        TopicStatus.WAITING,
        TopicStatus.REFUSED,
    ]
    assert [row.reason for row in result.problems()] == [
        "not in sync, being down: 4",
        "Unable to find partition t-9.",
    ]


def test_refused_feature_level_changes_nothing() -> None:
    outcome = new_whatif([partition(0, (1, 2), (1, 2))]).update_features({"metadata.version": 99})
    assert not outcome.changed
    response = outcome.steps[0].response
    assert response is not None
    assert response.error.name == "INVALID_UPDATE_VERSION"


#: What is asked for, and the text of the InputError.
REFUSED: Final[tuple[tuple[Act, str], ...]] = (
    (lambda w: w.fail([4]), "broker 4, which is not up, expected an unfenced broker: 1, 2, 3"),
    (lambda w: w.fence([9]), "broker 9"),
    (lambda w: w.unfence([9]), "broker 9"),
    (
        lambda w: w.fail_directories(1, [UUID(int=5)]),
        f"directories: found AAAAAAAAAAAAAAAAAAAABQ, expected a log directory of broker 1: {uuid_text(directory(1))}",
    ),
    (lambda w: w.fail_directories(1, []), "directories: found none"),
    (lambda w: w.update_features({}), "no feature"),
    (lambda w: w.elect(ElectionType.PREFERRED, [("t", 7)]), "t-7"),
)


@pytest.mark.parametrize("act, text", REFUSED, ids=[text for _, text in REFUSED])
def test_invalid_operations_raise_input_error(act: Act, text: str) -> None:
    with pytest.raises(InputError, match=text):
        act(new_whatif([partition(0, (1, 2, 3), (1, 2, 3))], fenced=(4,)))


@pytest.mark.parametrize("verb", ["fence", "unfence", "fail_directories", "update_features"])
def test_zookeeper_mode_refuses_kraft_operations(verb: str) -> None:
    named: dict[str, tuple[Any, ...]] = {"fail_directories": (1, []), "update_features": ({},)}
    with pytest.raises(InputError, match="mode: found zookeeper, expected a snapshot of a KRaft cluster"):
        getattr(WhatIf(small()), verb)(*named.get(verb, ([1],)))


def test_feature_levels_are_accepted_only_if_snapshot_lacks_them() -> None:
    metadata = metadata_with([partition(0, (1, 2), (1, 2))])
    with pytest.raises(ConfigError, match="no level: the snapshot has the levels"):
        WhatIf(Snapshot.from_metadata(metadata, source=Source("kraft", "x")), {"metadata.version": "4.0"})


def test_explanation_names_rule_and_rejected_candidates() -> None:
    whatif = new_whatif([partition(0, (1, 2, 3), (1, 2), eligible_leader_replicas=())], min_isr=3)
    explained = whatif.explain("t", 0, [1, 2])
    assert explained.before.rule == KraftRule.ISR
    assert [decision.rule for decision in explained.elections] == [KraftRule.ISR, KraftRule.NONE]
    last = explained.elections[-1]
    assert (last.isr, last.elr, explained.leader) == ((), (1, 2), None)
    assert "ISR (empty) and ELR (1,2) have no active member" in last.text
    assert statuses(last) == {
        1: KraftCandidateStatus.FENCED,
        2: KraftCandidateStatus.FENCED,
        3: KraftCandidateStatus.OUT_OF_SYNC,
    }
    assert explained.rules == "KRaft (Kafka 4.4, metadata.version 4.3-IV0, ELR on)"


def test_unknown_partition_has_no_explanation() -> None:
    with pytest.raises(InputError, match="a topic of the snapshot"):
        new_whatif([partition(0, (1, 2), (1, 2))]).explain("nosuch", 0)


def test_non_preferred_leader_stays() -> None:
    before = new_whatif([partition(0, (1, 2, 3), (2, 1, 3))]).explain("t", 0).before
    assert (before.rule, before.leader) == (KraftRule.STAYS, 2)
    assert statuses(before)[1] == KraftCandidateStatus.EARLIER


@pytest.mark.parametrize("level, noted", [(len(LEVEL_NAMES), False), (99, True)])
def test_newer_metadata_version_is_an_assumption(level: int, noted: bool) -> None:
    whatif = new_whatif([partition(0, (1, 2), (1, 2))], level=level, supported=level)
    expected = (f"metadata.version: level 99 is unknown to kframe: decided as {LEVEL_NAMES[-1]}, the last known one",)
    assert whatif.assumptions == (expected if noted else ())
    assert whatif.fail([1]).assumptions == whatif.assumptions
