"""The voters of a quorum (Kafka ``VoterSet``, ``ReplicaKey``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from kframe.plugin.kraft import control, directory_ids


class ReplicaKey(NamedTuple):
    """A node and the directory of its log, which is the zero id if it is unknown."""

    node_id: int
    directory_id: UUID = directory_ids.ZERO_UUID


@dataclass(frozen=True, slots=True)
class Voters:
    """The voters. With ``kraft_version`` 0 they come from the configuration; from 1 on the log has them."""

    members: tuple[control.Voter, ...]
    kraft_version: int = 0

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the nodes."""
        return tuple(voter.voter_id for voter in self.members)

    def key_of(self, node_id: int) -> ReplicaKey | None:
        """The key of a voter. None if the node is no voter."""
        for voter in self.members:
            if voter.voter_id == node_id:
                return ReplicaKey(node_id, voter.voter_directory_id)
        return None

    def is_only(self, key: ReplicaKey) -> bool:
        """Whether a replica is the only voter. Without kraft.version 1 only the node counts."""
        if self.ids != (key.node_id,):
            return False
        return self.kraft_version == 0 or self.members[0].voter_directory_id == key.directory_id
