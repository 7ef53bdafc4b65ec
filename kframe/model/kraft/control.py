"""Control records of KRaft's metadata log (Kafka 4.4, ``clients/src/main/resources/common/message``).

They describe the quorum and snapshots, and are in batches of their own. ``version`` is the version of the message.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final
from uuid import UUID

from msgspec import Struct

from kframe.model.kraft.directory_ids import ZERO_UUID
from kframe.model.kraft.record_fields import Int16, Int32, Int64, Since, UInt16


class ControlRecord(Struct, frozen=True, kw_only=True):
    """Base of the control records. ``control_type`` is the type in the record's key (Kafka ``ControlRecordType``)."""

    control_type: ClassVar[int] = -1
    version: Int16 = 0


class LeaderChangeVoter(Struct, frozen=True, kw_only=True):
    """A voter of an epoch."""

    voter_id: Int32
    voter_directory_id: Annotated[UUID, Since(1)] = ZERO_UUID


class LeaderChangeMessage(ControlRecord, frozen=True, kw_only=True):
    """The first record of each epoch."""

    control_type: ClassVar[int] = 2
    leader_id: Int32
    voters: tuple[LeaderChangeVoter, ...] = ()
    granting_voters: tuple[LeaderChangeVoter, ...] = ()


class SnapshotHeaderRecord(ControlRecord, frozen=True, kw_only=True):
    """The first record of a snapshot. The timestamp is that of the last record of the log that it contains."""

    control_type: ClassVar[int] = 3
    last_contained_log_timestamp: Int64


class SnapshotFooterRecord(ControlRecord, frozen=True, kw_only=True):
    """The last record of a complete snapshot."""

    control_type: ClassVar[int] = 4


class KRaftVersionRecord(ControlRecord, frozen=True, kw_only=True):
    """The level of kraft.version. From 1 on, the log contains the voters."""

    control_type: ClassVar[int] = 5
    k_raft_version: Int16


class VoterEndpoint(Struct, frozen=True, kw_only=True):
    """A listener of a voter."""

    name: str
    host: str
    port: UInt16


class KRaftVersionFeature(Struct, frozen=True, kw_only=True):
    """The range of kraft.version that a voter supports."""

    min_supported_version: Int16 = 0
    max_supported_version: Int16 = 0


class Voter(Struct, frozen=True, kw_only=True):
    """A voter of a dynamic quorum, identified by node id and directory id."""

    voter_id: Int32
    voter_directory_id: UUID
    endpoints: tuple[VoterEndpoint, ...] = ()
    k_raft_version_feature: KRaftVersionFeature = KRaftVersionFeature()


class VotersRecord(ControlRecord, frozen=True, kw_only=True):
    """All voters of a dynamic quorum."""

    control_type: ClassVar[int] = 6
    voters: tuple[Voter, ...]


#: The class of each type that the metadata log uses.
CONTROL_TYPES: Final[dict[int, type[ControlRecord]]] = {
    record.control_type: record for record in ControlRecord.__subclasses__()
}
