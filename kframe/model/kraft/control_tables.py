"""The fields of the control records (Kafka 4.4, ``clients/src/main/resources/common/message``)."""

from __future__ import annotations

from typing import Final

from kframe.model.kraft import control
from kframe.model.kraft.record_fields import Field, Kind, Table

VERSION: Final = Field("version", Kind.INT16)
_LEADER_VOTER: Final = Table(
    control.LeaderChangeVoter,
    (Field("voter_id", Kind.INT32), Field("voter_directory_id", Kind.UUID, since=1)),
)
_VOTER: Final = Table(
    control.Voter,
    (
        Field("voter_id", Kind.INT32),
        Field("voter_directory_id", Kind.UUID),
        Field(
            "endpoints",
            Table(
                control.VoterEndpoint,
                (Field("name", Kind.STRING), Field("host", Kind.STRING), Field("port", Kind.UINT16)),
            ),
            array=True,
        ),
        Field(
            "k_raft_version_feature",
            Table(
                control.KRaftVersionFeature,
                (Field("min_supported_version", Kind.INT16), Field("max_supported_version", Kind.INT16)),
            ),
        ),
    ),
)

#: The table of each control record class.
CONTROL_TABLES: Final = {
    table.record: table
    for table in (
        Table(
            control.LeaderChangeMessage,
            (
                VERSION,
                Field("leader_id", Kind.INT32),
                Field("voters", _LEADER_VOTER, array=True),
                Field("granting_voters", _LEADER_VOTER, array=True),
            ),
            latest=1,
        ),
        Table(control.SnapshotHeaderRecord, (VERSION, Field("last_contained_log_timestamp", Kind.INT64))),
        Table(control.SnapshotFooterRecord, (VERSION,)),
        Table(control.KRaftVersionRecord, (VERSION, Field("k_raft_version", Kind.INT16))),
        Table(control.VotersRecord, (VERSION, Field("voters", _VOTER, array=True))),
    )
}
#: The table of each type in a control record's key.
CONTROL_TABLES_BY_TYPE: Final = {
    record.control_type: CONTROL_TABLES[record] for record in control.CONTROL_TYPES.values()
}
