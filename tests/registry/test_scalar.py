"""The scalar tier: input and result of a selector function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kframe.core.selectors.kafka_selectors import FirstInSync
from kframe.core.selectors.leader_selection import FaultKind, Selection
from kframe.model.arrays import Int32
from kframe.model.elections import ElectionBatch
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.registry.scalar import UNKNOWN_BROKER, PartitionElection, ScalarFunction, ScalarSelector
from kframe.testing.random_elections import random_cluster, random_election
from kframe.testing.selector_contract import SelectorContract

OFFLINE = ElectionKind.OFFLINE


def kafka_rule(election: PartitionElection) -> int | None:
    in_sync = [broker for broker in election.eligible if broker in election.isr]
    if election.unclean_allowed:
        in_sync = list(election.eligible)
    return in_sync[0] if in_sync else None


class TestScalar(SelectorContract):
    kinds = tuple(set(ElectionKind) - {ElectionKind.PREFERRED})

    def make_selector(self) -> ScalarSelector:
        return ScalarSelector("kafka", kafka_rule)


def elect(function: ScalarFunction, batch: ElectionBatch) -> Int32:
    leader = np.full(len(batch), NO_LEADER, np.int32)
    ScalarSelector("it", function).elect(batch, leader)
    return leader


@pytest.mark.parametrize("kind", TestScalar.kinds, ids=lambda kind: kind.name)
def test_scalar_and_bulk_rules_choose_same_leader(kind: ElectionKind) -> None:
    batch = random_election(11, kind)
    bulk = np.full(len(batch), NO_LEADER, np.int32)
    FirstInSync("x").elect(batch, bulk)
    assert elect(kafka_rule, batch).tolist() == bulk.tolist()


def test_function_sees_broker_ids() -> None:
    elections: list[PartitionElection] = []
    batch = random_election(12, OFFLINE)

    def look(election: PartitionElection) -> None:
        elections.append(election)

    elect(look, batch)
    ids = batch.broker_ids.tolist()
    for row, election in enumerate(elections):
        slots = slice(batch.candidates.offsets[row], batch.candidates.offsets[row + 1])
        assert election.kind is OFFLINE
        assert (election.topic, election.partition) == ("t", row)
        assert election.replicas == tuple(ids[index] for index in batch.candidates[row])
        assert election.isr == tuple(ids[index] for index in batch.isr[row])
        assert election.eligible == tuple(np.array(election.replicas)[batch.eligible[slots] != 0])
        assert election.leader == (None if batch.leader[row] == NO_LEADER else ids[batch.leader[row]])
        assert election.leader_epoch == batch.leader_epoch[row]
        assert election.unclean_allowed is bool(batch.unclean_allowed[row])
        assert election.seed == batch.seed
        for broker_id, rack in zip(ids, batch.broker_rack, strict=True):
            assert election.racks[broker_id] == (None if rack == -1 else batch.racks[rack])
    assert {election.leader is None for election in elections} == {True, False}


@pytest.mark.parametrize("returned", ["1", 1.0, True, [1]], ids=repr)
def test_invalid_broker_id_error_names_partition(returned: Any) -> None:
    with pytest.raises(TypeError, match="expected a broker id or None") as caught:
        elect(lambda election: returned if election.partition == 3 else None, random_election(1, OFFLINE))
    assert caught.value.__notes__ == ["while electing a leader for t-3"]


def test_unknown_broker_affects_only_its_partition() -> None:
    cluster, rows = random_cluster(13), np.arange(200, dtype=np.int32)
    selector = ScalarSelector("half", lambda election: 123_456 if election.partition % 2 else None)
    selection = Selection(
        {OFFLINE: selector}, lambda cluster, kind, rows, allowed: np.full(len(rows), NO_LEADER, np.int32)
    )
    leader = selection.choose(cluster, OFFLINE, rows, np.zeros(200, np.uint8))
    assert selection.faults == {("half", FaultKind.NOT_A_CANDIDATE): 100}
    assert UNKNOWN_BROKER not in leader


def test_numpy_integer_is_broker_id() -> None:
    batch = random_election(14, OFFLINE)
    expected = elect(lambda election: election.replicas[0], batch)
    assert elect(lambda election: np.int64(election.replicas[0]), batch).tolist() == expected.tolist()  # type: ignore[arg-type,return-value]
