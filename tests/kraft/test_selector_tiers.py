"""Leader selectors of the bulk, scalar and native tiers on KRaft clusters: KRaft's safety rules hold for all."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.model.arrays import Int32
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import ElectionKind, ReplicaFlag
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.registry.native import SIGNATURE, NativeFunction, NativeSelector
from kframe.registry.scalar import PartitionElection, ScalarSelector
from kframe.scenario import strict_yaml
from kframe.scenario.kraft.format import parse_kraft_scenario
from kframe.scenario.kraft.runner import KraftScenarioRunner
from kframe.snapshot import Snapshot, Source
from kframe.whatif import FailOn, WhatIf
from tests.kraft.strategies import clusters
from tests.registry.native_reference import SELECT
from tests.whatif.kraft_samples import new_whatif, partition, state
from verification.support.properties import examples

NAME: Final = "last-replica"
Tier = Callable[[bool], LeaderSelector]


class LastReplica:
    """Chooses the last candidate that may lead; or the last of all, which is not allowed."""

    def __init__(self, is_safe: bool) -> None:
        self.name = NAME
        self._is_safe = is_safe

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        for position in range(len(batch)):
            span = slice(batch.candidates.offsets[position], batch.candidates.offsets[position + 1])
            candidates, may_lead = batch.candidates.values[span], batch.may_lead[span]
            leader[position] = candidates[may_lead != 0][-1] if self._is_safe else candidates[-1]


def scalar(is_safe: bool) -> ScalarSelector:
    def choose(election: PartitionElection) -> int:
        in_sync = [broker for broker in election.eligible if broker in election.isr]
        return (in_sync or election.eligible)[-1] if is_safe else election.replicas[-1]

    return ScalarSelector(NAME, choose)


def native(is_safe: bool) -> NativeSelector:
    def choose(pointer: Any, _user_data: int | None) -> int:
        election = pointer.contents
        isr = election.isr[: election.isr_count]
        positions = [
            position
            for position, broker in enumerate(election.candidates[: election.candidate_count])
            if election.broker_live[broker]
            and not election.candidate_flags[position] & ReplicaFlag.OFFLINE_DIR
            and (broker in isr or not isr)
        ]
        return int(positions[-1] if is_safe and positions else election.candidate_count - 1)

    function = SELECT(choose)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return NativeSelector(NAME, NativeFunction(address, SIGNATURE, owner=function))


TIERS: Final = pytest.mark.parametrize("tier", [LastReplica, scalar, native], ids=["bulk", "scalar", "native"])


def offline(selector: LeaderSelector) -> dict[ElectionKind, LeaderSelector]:
    return {ElectionKind.OFFLINE: selector}


@TIERS
@pytest.mark.parametrize("is_safe, leader", [(True, 3), (False, 2)])
@pytest.mark.parametrize("fenced", [(4,), ()], ids=["fenced", "outside the ISR"])
def test_ineligible_choice_of_selector_is_replaced(
    tier: Tier, is_safe: bool, leader: int, fenced: tuple[int, ...]
) -> None:
    whatif = new_whatif([partition(0, (1, 2, 3, 4), (1, 2, 3))], fenced=fenced, selectors=offline(tier(is_safe)))
    outcome = whatif.fail([1])
    assert state(whatif) == (leader, [2, 3], [])
    assert any(NAME in note for note in outcome.notes) is not is_safe


@TIERS
def test_selector_can_elect_elr_member(tier: Tier) -> None:
    stored = partition(0, (1, 2, 3), (), eligible_leader_replicas=(1, 2))
    whatif = new_whatif([stored], fenced=(1, 2, 3), selectors=offline(tier(True)))
    whatif.unfence([2])
    assert state(whatif) == (2, [2], [1])


@TIERS
def test_selector_cannot_elect_replica_outside_isr_and_elr(tier: Tier) -> None:
    stored = partition(0, (1, 2, 3), (), eligible_leader_replicas=(1, 2))
    whatif = new_whatif([stored], fenced=(1, 2), selectors=offline(tier(False)))
    outcome = whatif.unfence([2])
    assert state(whatif) == (2, [2], [1])
    assert any(NAME in note for note in outcome.notes)


@TIERS
@examples(0.1)
@given(clusters(), st.booleans(), st.booleans())
def test_selector_adds_no_unclean_election(tier: Tier, metadata: ClusterMetadata, is_safe: bool, unclean: bool) -> None:
    snapshot = Snapshot.from_metadata(metadata, source=Source("kraft", "drawn"))
    config = {"unclean.leader.election.enable": unclean}
    for broker_id in WhatIf(snapshot, config).registered:
        builtin = WhatIf(snapshot, config).fail([broker_id])
        chosen = WhatIf(snapshot, config, selectors=offline(tier(is_safe))).fail([broker_id])
        assert chosen.count_of(FailOn.DATA_LOSS) == builtin.count_of(FailOn.DATA_LOSS)
        assert chosen.after.offline.tolist() == builtin.after.offline.tolist()
        changes = chosen.changes
        elected = np.flatnonzero((changes.leader_after >= 0) & (changes.leader_after != changes.leader_before))
        assert all(changes.leader_after[position] in changes.isr_after[position] for position in elected.tolist())


SCENARIO: Final = """
schema: kframe.scenario/v1
controller: kraft
name: selected
brokers: [{{id: 1}}, {{id: 2}}, {{id: 3}}]
topics:
  - name: t
    partitions:
      - {{partition: 0, replicas: [1, 2, 3]}}
steps:
  - elect: {{}}
  - fence: {fenced}
"""


@TIERS
@pytest.mark.parametrize("is_safe, fenced, leader", [(True, [1], 3), (False, [3, 1], 2)])
def test_scenario_elects_leader_of_selector(tier: Tier, is_safe: bool, fenced: list[int], leader: int) -> None:
    scenario = parse_kraft_scenario(strict_yaml.load(SCENARIO.format(fenced=fenced), "s.yaml"), "s.yaml")
    runner = KraftScenarioRunner(scenario, offline(tier(is_safe)))
    runner.play()
    metadata = runner.metadata
    row = metadata.row("t", 0)
    assert row is not None
    assert metadata.brokers.ids[metadata.partitions.leader[row]] == leader
