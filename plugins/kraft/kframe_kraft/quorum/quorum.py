"""The role of this node in its quorum (Kafka ``QuorumState``). Callers store what it returns before they go on."""

from __future__ import annotations

from enum import Enum

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import control
from kframe_kraft.disk import QuorumState
from kframe_kraft.errors import LogError
from kframe_kraft.quorum.leadership import Leadership
from kframe_kraft.quorum.voters import ReplicaKey, Voters


class Role(Enum):
    """What the node is in the current epoch."""

    UNATTACHED = "unattached"
    """It knows no leader."""
    LEADER = "leader"
    RESIGNED = "resigned"
    """It led the epoch, and refuses all requests."""


class SoleVoter:
    """A node that is the only voter: ``stand``, store the result, ``lead``, append the result."""

    def __init__(self, node: ReplicaKey, voters: Voters, stored: QuorumState | None, last_epoch: int) -> None:
        """``stored`` is the node's ``quorum-state``, ``last_epoch`` that of its log's last record.

        Raises LogError unless the node is the only voter.
        """
        if not voters.is_only(node):
            raise LogError("voters", f"nodes {', '.join(map(str, voters.ids)) or 'none'}", f"node {node.node_id} alone")
        self.node = node
        self.voters = voters
        self.epoch = max(stored.leader_epoch if stored else 0, last_epoch)
        self.role = Role.UNATTACHED
        self.leadership: Leadership | None = None

    def stand(self) -> QuorumState:
        """Stand in the next epoch. Returns the state to store before ``lead``."""
        self.epoch += 1
        node_id = self.node.node_id
        if self.voters.kraft_version:
            return QuorumState(self.epoch, leader_id=node_id, data_version=1)
        return QuorumState(self.epoch, leader_id=node_id, voters=self.voters.ids)

    def lead(self, log_end: int, *, log_has_voters: bool) -> list[control.ControlRecord]:
        """Become the leader. Returns the control records of the first batch of the epoch, which begins at ``log_end``.

        ``log_has_voters``: the newest VotersRecord of the log is that of ``voters``.
        """
        self.role, self.leadership = Role.LEADER, Leadership(self.epoch, log_end)
        voter = control.LeaderChangeVoter(voter_id=self.node.node_id)
        content: list[control.ControlRecord] = [
            control.LeaderChangeMessage(leader_id=self.node.node_id, voters=(voter,), granting_voters=(voter,))
        ]
        if self.voters.kraft_version and not log_has_voters:
            content.append(control.KRaftVersionRecord(k_raft_version=self.voters.kraft_version))
            content.append(control.VotersRecord(voters=self.voters.members))
        return content

    def refusal(self, epoch: int) -> ErrorCode:
        """The error of a request to the leader of ``epoch``. NONE if this node is that leader."""
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if self.role is Role.RESIGNED:
            return ErrorCode.BROKER_NOT_AVAILABLE
        return ErrorCode.NONE if self.role is Role.LEADER else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def resign(self) -> None:
        """Refuse all requests of this epoch from now on."""
        self.role, self.leadership = Role.RESIGNED, None
