"""Reasons for the elected leader and against other candidates."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from kframe.core.selectors.kafka_selectors import FirstInSync
from kframe.errors import InputError
from kframe.model.arrays import Int32
from kframe.model.elections import ElectionBatch
from kframe.model.ids import ElectionKind
from kframe.snapshot import Snapshot
from kframe.testing.clusters import PartitionSpec, cluster_of
from kframe.whatif import WhatIf
from kframe.whatif.engines.zookeeper.explain import CandidateStatus, LeaderRule
from kframe.whatif.results.explanation import Decision
from tests.whatif.samples import small


def statuses(decision: Decision) -> dict[int, str]:
    return {candidate.broker_id: candidate.outcome for candidate in decision.candidates}


CHOSEN, LATER, DEAD, OUT = (
    CandidateStatus.CHOSEN,
    CandidateStatus.LATER,
    CandidateStatus.DEAD,
    CandidateStatus.OUT_OF_SYNC,
)
#: (partition of topic t, rule, leader, reason by broker).
PRESENT = [
    (0, LeaderRule.OFFLINE_CLEAN, 1, {1: CHOSEN, 2: LATER, 3: LATER}),
    (2, LeaderRule.OFFLINE_CLEAN, 3, {3: CHOSEN, 1: OUT}),
    (4, LeaderRule.OFFLINE_CLEAN, None, {4: DEAD}),
]

#: (partition, failed brokers, rule, leader, reason by broker).
AFTER = [
    (0, (1,), LeaderRule.OFFLINE_CLEAN, 2, {1: DEAD, 2: CHOSEN, 3: LATER}),
    (0, (1, 2), LeaderRule.OFFLINE_CLEAN, 3, {1: DEAD, 2: DEAD, 3: CHOSEN}),
    (2, (3,), LeaderRule.OFFLINE_CLEAN, None, {3: DEAD, 1: OUT}),
    (3, (1,), LeaderRule.OFFLINE_CLEAN, None, {1: DEAD}),
]


@pytest.mark.parametrize("partition, rule, leader, expected", PRESENT)
def test_explains_current_leader(
    partition: int, rule: LeaderRule, leader: int | None, expected: dict[int, CandidateStatus]
) -> None:
    explanation = WhatIf(small()).explain("t", partition)
    assert (explanation.before.rule, explanation.before.leader) == (rule, leader)
    assert statuses(explanation.before) == expected
    assert explanation.elections == ()


@pytest.mark.parametrize("partition, failed, rule, leader, expected", AFTER)
def test_explains_leader_after_failure(
    partition: int, failed: tuple[int, ...], rule: LeaderRule, leader: int | None, expected: dict[int, CandidateStatus]
) -> None:
    explanation = WhatIf(small()).explain("t", partition, failed)
    (decision,) = explanation.elections
    assert (decision.rule, decision.leader, explanation.leader) == (rule, leader, leader)
    assert statuses(decision) == expected


def test_unclean_election_is_named() -> None:
    explanation = WhatIf(small(unclean=1)).explain("t", 2, [3])
    (decision,) = explanation.elections
    assert (decision.rule, decision.leader) == (LeaderRule.OFFLINE_UNCLEAN, 1)
    assert decision.text == "broker 1 is elected from outside the ISR: acknowledged records may be lost"
    assert explanation.isr == (1,)


def test_disabled_unclean_election_is_reported() -> None:
    (decision,) = WhatIf(small()).explain("t", 2, [3]).elections
    assert (
        decision.text == "no replica can lead: no live replica is in the ISR; unclean.leader.election.enable is false"
    )


def test_partition_with_live_leader_needs_no_election() -> None:
    explanation = WhatIf(small()).explain("t", 0, [3])
    assert explanation.elections == ()
    assert (explanation.leader, explanation.isr) == (1, (1, 2))


def single_partition(spec: PartitionSpec, brokers: tuple[int, ...] = (1, 2, 3)) -> WhatIf:
    return WhatIf(Snapshot.from_cluster(cluster_of({"t": [spec]}, brokers), controller_epoch=1))


#: (partition t-0, registered brokers, rule, leader, text).
UNUSUAL: Final = [
    (PartitionSpec((1, 2, 3), leader=2, isr=(1, 2)), (1, 2, 3), LeaderRule.STAYS, 2,
     "broker 2 was elected earlier; an election now would elect broker 1"),
    (PartitionSpec((1, 2), leader=2, isr=(2,), recovery=1), (1, 2, 3), LeaderRule.OFFLINE_UNCLEAN, 2,
     "broker 2 was elected from outside the ISR and is still recovering"),
    (PartitionSpec((2, 1)), (1, 2, 3), LeaderRule.INITIAL, None,
     "no partition state yet; the controller elects by this rule once a replica is live"),
    (PartitionSpec((1, 2), leader=1, isr=(1, 2)), (2,), LeaderRule.OFFLINE_CLEAN, None,
     "it has leader 1, which is down: a live replica is in the ISR, so the next election will choose it"),
]  # fmt: skip


@pytest.mark.parametrize("spec, brokers, rule, leader, text", UNUSUAL)
def test_explains_leader_that_no_election_would_choose_now(
    spec: PartitionSpec, brokers: tuple[int, ...], rule: LeaderRule, leader: int | None, text: str
) -> None:
    before = single_partition(spec, brokers).explain("t", 0).before
    assert (before.rule, before.leader, before.text) == (rule, leader, text)


def test_replica_before_staying_leader_was_elected_by_nothing_since() -> None:
    before = single_partition(PartitionSpec((1, 2, 3), leader=2, isr=(1, 2))).explain("t", 0).before
    assert statuses(before) == {1: CandidateStatus.EARLIER, 2: CandidateStatus.CHOSEN, 3: CandidateStatus.OUT_OF_SYNC}


class LastInSync(FirstInSync):
    """Elects the last eligible in-sync candidate."""

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        electable = (batch.eligible != 0) & (batch.in_sync != 0)
        owner = np.repeat(np.arange(len(batch)), batch.candidates.counts)
        leader[owner[electable]] = batch.candidates.values[electable]


def test_leader_selector_is_named() -> None:
    whatif = WhatIf(small(), selectors={ElectionKind.OFFLINE: LastInSync("last-in-sync")})
    (decision,) = whatif.explain("t", 0, [1]).elections
    assert (decision.leader, decision.selector) == (3, "last-in-sync")
    assert statuses(decision) == {1: CandidateStatus.DEAD, 2: CandidateStatus.PASSED_OVER, 3: CandidateStatus.CHOSEN}


@pytest.mark.parametrize(
    "topic, partition, message",
    [("x", 0, "expected a topic of the snapshot"), ("t", 9, "expected a partition of topic t")],
)
def test_unknown_partition_is_named(topic: str, partition: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        WhatIf(small()).explain(topic, partition)
