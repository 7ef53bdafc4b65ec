"""Histories that the invariants accept of a controller which does not know yet that it has a successor."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from kframe.errors import ErrorCode
from kframe.model.ids import EPOCH_DURING_DELETE
from kframe.model.tables import RequestedPartitions
from kframe.ports.store_requests import Claim
from kframe_simulator import Simulation
from kframe_simulator.broker.messages import LeaderAndIsr, LeaderState
from kframe_simulator.invariants import proposals, requests
from verification.simulator.at_rest import KEY, edit, metadata, queued, state, stop, topic
from verification.simulator.broken import code, metadata_of


def delete_topic(simulation: Simulation, deposed: bool) -> None:
    """A controller has deleted the topic: a successor of the simulation's controller, or this controller itself."""
    process = simulation.controllers[0]
    process.store.claimed_epoch -= deposed
    simulation.watch.observed.loaded(process)
    simulation.watch.observed.topic_deleted([KEY])


@pytest.mark.parametrize(
    ("deposed", "leader", "exempt"),
    [(True, 1, True), (True, 3, False), (False, 1, False)],
    ids=["deleted-by-a-successor", "never-stored", "deleted-by-itself"],
)
def test_deposed_controller_may_send_states_of_a_deleted_topic(
    simulation: Simulation, deposed: bool, leader: int, exempt: bool
) -> None:
    """Seeds 349281386 and 349281775: a controller did not know yet that it had a successor, which had deleted the
    topic. It responded to a proposal and sent the state to brokers, as Kafka does."""
    delete_topic(simulation, deposed)
    leader_state = LeaderState(1, leader, 0, (1, 2, 3), 0, (1, 2, 3))
    for message in (
        metadata(simulation, partitions=metadata_of(leader)),
        LeaderAndIsr(1000, 1, 9, {KEY: leader_state}),
    ):
        problem = requests.only_stored_states_are_sent(simulation.watch, queued(simulation, message))
        assert (problem is None) is exempt


@pytest.mark.parametrize(
    ("deposed", "leader_epoch", "exempt"),
    [(True, 0, True), (True, EPOCH_DURING_DELETE, True), (True, 5, False), (False, 0, False)],
)
def test_deposed_controller_may_stop_replicas_of_an_earlier_topic(
    simulation: Simulation, deposed: bool, leader_epoch: int, exempt: bool
) -> None:
    """Its successor has deleted the topic, and created another one of the same name."""
    delete_topic(simulation, deposed)
    edit(simulation, leader_epoch=7)
    simulation.watch.observed.state_written(state(simulation, leader_epoch=7))
    sent = queued(simulation, stop(simulation, leader_epoch))
    assert (requests.stop_replica_has_leader_epoch(simulation.watch, sent) is None) is exempt


@pytest.mark.parametrize(
    ("in_sync", "later", "controller_epoch", "exempt"),
    [
        ("before-the-claim", "overridden", 1, True),
        ("after-the-claim", "overridden", 1, True),
        ("after-the-override", "overridden", 1, False),
        ("never", "overridden", 1, False),
        ("never", "topic-deleted", 1, False),
        ("before-the-claim", "overridden", 2, False),
        ("after-the-claim", "overridden", 2, False),
    ],
)
def test_deposed_controller_may_complete_the_reassignment_of_its_term(
    simulation: Simulation, in_sync: str, later: str, controller_epoch: int, exempt: bool
) -> None:
    """Seed 191718977: a controller was paused at the end of a reassignment. Its successor began another one. Then the
    first controller stopped the removed replica, as in Kafka."""
    reassignments, assigned = simulation.watch.reassignments, simulation.ensemble.topic_partitions("t")
    started = assigned | {0: assigned[0]._replace(isr=(1, 2), removing=(1,))}
    overridden = assigned | {0: started[0]._replace(replicas=(4, 2, 3, 1), adding=(4,))}
    joined = state(simulation, isr=(1, 2, 3))
    reassignments.topic_written(topic(simulation, assigned, started))
    if in_sync == "before-the-claim":
        reassignments.state_written(joined)
    simulation.written(1001, Claim(1001), 2)
    if in_sync == "after-the-claim":
        reassignments.state_written(joined)
    reassignments.topic_written(topic(simulation, started, overridden if later == "overridden" else {}))
    if in_sync == "after-the-override":
        reassignments.state_written(joined)
    sent = queued(simulation, replace(stop(simulation), controller_epoch=controller_epoch))
    assert (requests.original_replicas_wait_for_target(simulation.watch, sent) is None) is exempt


@pytest.mark.parametrize("ended_by", ["cancellation", "topic-deletion"])
@pytest.mark.parametrize("in_sync_again", [False, True])
def test_target_of_an_earlier_reassignment_has_to_be_in_sync_again(
    simulation: Simulation, ended_by: str, in_sync_again: bool
) -> None:
    """The neighbour of seed 191718977: a second reassignment has the target of the first."""
    reassignments, assigned = simulation.watch.reassignments, simulation.ensemble.topic_partitions("t")
    started = assigned | {0: assigned[0]._replace(replicas=(4, 1, 2, 3), adding=(4,), removing=(1, 2, 3))}
    joined = state(simulation, isr=(1, 2, 3, 4))
    reassignments.topic_written(topic(simulation, assigned, started))
    reassignments.state_written(joined)
    reassignments.topic_written(topic(simulation, started, assigned if ended_by == "cancellation" else {}))
    reassignments.topic_written(topic(simulation, assigned, started))
    if in_sync_again:
        reassignments.state_written(joined)
    sent = queued(simulation, stop(simulation))
    assert (requests.original_replicas_wait_for_target(simulation.watch, sent) is None) is in_sync_again


@pytest.mark.parametrize(
    ("deposed", "error", "leader_epoch", "exempt"),
    [
        (True, ErrorCode.NONE, 0, True),
        (True, ErrorCode.NONE, 1, False),
        (False, ErrorCode.NONE, 0, False),
        (True, ErrorCode.INELIGIBLE_REPLICA, 0, True),
        (False, ErrorCode.INELIGIBLE_REPLICA, 0, False),
        (False, ErrorCode.UNKNOWN_TOPIC_ID, 0, True),
    ],
)
def test_deposed_controller_may_confirm_the_isr_of_a_deleted_topic(
    simulation: Simulation, deposed: bool, error: ErrorCode, leader_epoch: int, exempt: bool
) -> None:
    """Seed 349281386: the leader repeated the ISR that the deposed controller knew."""
    topic_id = simulation.ensemble.topic_ids["t"]
    completed = code(
        simulation,
        error,
        partitions=RequestedPartitions.of([(topic_id, 0)]),
        leader_epoch=np.array([leader_epoch], np.int32),
    )
    delete_topic(simulation, deposed)
    del simulation.ensemble.topic_ids["t"]
    assert (proposals.proposals_get_valid_codes(simulation.watch, completed) is None) is exempt


@pytest.mark.parametrize(
    ("deposed", "leader_epoch", "exempt"),
    [(True, 6, True), (True, 7, False), (False, 6, False)],
    ids=["known-state", "later-epoch", "deleted-by-itself"],
)
def test_deposed_controller_may_fence_an_isr_by_a_deleted_topic(
    simulation: Simulation, deposed: bool, leader_epoch: int, exempt: bool
) -> None:
    """The neighbour of seed 349281386: before topic ids, the successor has created another topic of the same name."""
    simulation.watch.observed.state_written(state(simulation, leader_epoch=7))
    delete_topic(simulation, deposed)
    completed = code(
        simulation,
        ErrorCode.FENCED_LEADER_EPOCH,
        partitions=RequestedPartitions.of([("t", 0)]),
        leader_epoch=np.array([leader_epoch], np.int32),
    )
    assert (proposals.proposals_get_valid_codes(simulation.watch, completed) is None) is exempt


@pytest.mark.parametrize(
    ("deposed", "leader_epoch", "recreated", "exempt"),
    [(True, 0, False, True), (True, 1, False, False), (False, 0, False, False), (True, 0, True, False)],
    ids=["known-state", "never-stored", "current-controller", "topic-created-again"],
)
def test_deposed_controller_may_confirm_an_isr_under_an_earlier_topic_id(
    simulation: Simulation, deposed: bool, leader_epoch: int, recreated: bool, exempt: bool
) -> None:
    """Seed 10014643: a client without topic ids stored the topic (X5), and the next controller gave it another id. The
    earlier controller completed a proposal that it had handled when it was paused."""
    observed, ensemble = simulation.watch.observed, simulation.ensemble
    topic_id, other_id = ensemble.topic_ids["t"], b"x" * 16
    completed = code(
        simulation,
        ErrorCode.NONE,
        partitions=RequestedPartitions.of([(topic_id, 0)]),
        leader_epoch=np.array([leader_epoch], np.int32),
    )
    simulation.controllers[0].store.claimed_epoch -= deposed
    if recreated:
        observed.topic_deleted([KEY])
        observed.of_term(simulation.controllers[0]).deleted_states.clear()
        observed.state_written(state(simulation, leader_epoch=0))
    ensemble.topic_ids["t"] = other_id
    simulation.watch.ids_used[other_id] = "t"
    observed.topic_stored("t", other_id)
    assert (proposals.proposals_get_valid_codes(simulation.watch, completed) is None) is exempt
