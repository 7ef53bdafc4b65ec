"""Who may lead alone, and what the first batch of an epoch has: tables."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from kframe_kraft.disk import QuorumState
from kframe_kraft.errors import LogError
from kframe_kraft.quorum import ReplicaKey, SoleVoter, Voters

from kframe.plugin.kraft import control
from verification.kraft.simulation.options import CONTROLLER, Options


def voter_problems(options: Options) -> Iterator[str]:
    """What is wrong with the voters, the epoch and its first batch, with and without kraft.version 1."""
    this, other = options.voter, control.Voter(voter_id=CONTROLLER, voter_directory_id=UUID(int=1))
    node = ReplicaKey(CONTROLLER, options.directory_id)
    cases: tuple[tuple[tuple[control.Voter, ...], int, bool], ...] = (
        ((), 0, False),
        ((this,), 0, True),
        ((other,), 0, True),
        ((control.Voter(voter_id=CONTROLLER + 1, voter_directory_id=options.directory_id),), 0, False),
        ((this, control.Voter(voter_id=CONTROLLER + 1, voter_directory_id=UUID(int=1))), 0, False),
        ((this,), 1, True),
        ((other,), 1, False),
    )
    for members, kraft_version, may_lead in cases:
        voters = Voters(members, kraft_version)
        if not kraft_version and Voters(members) != voters:
            yield f"K12: {Voters(members)} has no kraft.version 0"
        if [*voters.ids] != [member.voter_id for member in members]:
            yield f"K1: {members} are the voters {voters.ids}"
        expected = ReplicaKey(CONTROLLER, members[0].voter_directory_id) if CONTROLLER in voters.ids else None
        if voters.key_of(CONTROLLER) != expected:
            yield f"K1: the key in {members} is {voters.key_of(CONTROLLER)}"
        for stored, last_epoch in ((None, 0), (QuorumState(7), 3), (QuorumState(3), 7)):
            yield from _first_batch(node, voters, stored, last_epoch, may_lead)


def _first_batch(
    node: ReplicaKey, voters: Voters, stored: QuorumState | None, last_epoch: int, may_lead: bool
) -> Iterator[str]:
    try:
        voter = SoleVoter(node, voters, stored, last_epoch)
    except LogError:
        if may_lead:
            yield f"K1: node {node} may not lead {voters}"
        return
    if not may_lead:
        yield f"K1: node {node} may lead {voters}"
    epoch = max(0 if stored is None else stored.leader_epoch, last_epoch) + 1
    state = voter.stand()
    is_dynamic = voters.kraft_version > 0
    if state != QuorumState(epoch, leader_id=CONTROLLER, data_version=1, voters=()) and is_dynamic:
        yield f"K1: {state} is stored in epoch {epoch}"
    if state != QuorumState(epoch, leader_id=CONTROLLER, voters=voters.ids) and not is_dynamic:
        yield f"K1: {state} is stored in epoch {epoch}"
    itself = control.LeaderChangeVoter(voter_id=CONTROLLER)
    change = control.LeaderChangeMessage(leader_id=CONTROLLER, voters=(itself,), granting_voters=(itself,))
    for log_has_voters in (True, False):
        expected: list[control.ControlRecord] = [change]
        if is_dynamic and not log_has_voters:
            expected += [control.KRaftVersionRecord(k_raft_version=1), control.VotersRecord(voters=voters.members)]
        if (content := voter.lead(5, log_has_voters=log_has_voters)) != expected:
            yield f"K1: the first batch of the epoch has {content}, expected {expected}"
