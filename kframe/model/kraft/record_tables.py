"""The fields of the metadata records (Kafka 4.4, ``metadata/src/main/resources/common/metadata``)."""

from __future__ import annotations

from typing import Any, Final

from kframe.model.kraft import records
from kframe.model.kraft.record_fields import Field, Kind, Table

BOOL, BYTES, FLOAT64, INT8, INT16 = Kind.BOOL, Kind.BYTES, Kind.FLOAT64, Kind.INT8, Kind.INT16
INT32, INT64, STRING, UINT16, UUID = Kind.INT32, Kind.INT64, Kind.STRING, Kind.UINT16, Kind.UUID


def array(name: str, kind: Kind | Table, **options: Any) -> Field:
    """Return an array field."""
    return Field(name, kind, array=True, **options)


def optional_array(name: str, kind: Kind, tag: int, since: int = 0) -> Field:
    """Return an array that is tagged and nullable."""
    return Field(name, kind, array=True, since=since, nullable=True, tag=tag)


ENDPOINT: Final = (
    Field("name", STRING), Field("host", STRING), Field("port", UINT16), Field("security_protocol", INT16)
)  # fmt: skip
FEATURE: Final = (
    Field("name", STRING), Field("min_supported_version", INT16), Field("max_supported_version", INT16)
)  # fmt: skip
BROKER: Final = (Field("broker_id", INT32), Field("broker_epoch", INT64))
FENCING: Final = (Field("id", INT32), Field("epoch", INT64))

_TABLES: Final = (
    Table(
        records.RegisterBrokerRecord,
        (
            Field("broker_id", INT32),
            Field("is_migrating_zk_broker", BOOL, since=2),
            Field("incarnation_id", UUID),
            Field("broker_epoch", INT64),
            array("end_points", Table(records.BrokerEndpoint, ENDPOINT)),
            array("features", Table(records.BrokerFeature, FEATURE)),
            Field("rack", STRING, nullable=True),
            Field("fenced", BOOL),
            Field("in_controlled_shutdown", BOOL, since=1),
            array("log_dirs", UUID, since=3, tag=0),
            optional_array("cordoned_log_dirs", UUID, tag=1, since=4),
        ),
        latest=4,
    ),
    Table(records.UnregisterBrokerRecord, BROKER),
    Table(records.TopicRecord, (Field("name", STRING), Field("topic_id", UUID))),
    Table(
        records.PartitionRecord,
        (
            Field("partition_id", INT32),
            Field("topic_id", UUID),
            array("replicas", INT32),
            array("isr", INT32),
            array("removing_replicas", INT32),
            array("adding_replicas", INT32),
            Field("leader", INT32),
            Field("leader_recovery_state", INT8, tag=0),
            Field("leader_epoch", INT32),
            Field("partition_epoch", INT32),
            array("directories", UUID, since=1),
            optional_array("eligible_leader_replicas", INT32, tag=1, since=2),
            optional_array("last_known_elr", INT32, tag=2, since=2),
        ),
        latest=2,
    ),
    Table(
        records.ConfigRecord,
        (
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field("name", STRING),
            Field("value", STRING, nullable=True),
        ),
    ),
    Table(
        records.PartitionChangeRecord,
        (
            Field("partition_id", INT32),
            Field("topic_id", UUID),
            optional_array("isr", INT32, tag=0),
            Field("leader", INT32, tag=1),
            optional_array("replicas", INT32, tag=2),
            optional_array("removing_replicas", INT32, tag=3),
            optional_array("adding_replicas", INT32, tag=4),
            Field("leader_recovery_state", INT8, tag=5),
            optional_array("directories", UUID, tag=8, since=1),
            optional_array("eligible_leader_replicas", INT32, tag=6, since=2),
            optional_array("last_known_elr", INT32, tag=7, since=2),
        ),
        latest=2,
    ),
    Table(records.FenceBrokerRecord, FENCING),
    Table(records.UnfenceBrokerRecord, FENCING),
    Table(records.RemoveTopicRecord, (Field("topic_id", UUID),)),
    Table(
        records.DelegationTokenRecord,
        (
            Field("owner", STRING),
            Field("requester", STRING),
            array("renewers", STRING),
            Field("issue_timestamp", INT64),
            Field("max_timestamp", INT64),
            Field("expiration_timestamp", INT64),
            Field("token_id", STRING),
        ),
    ),
    Table(
        records.UserScramCredentialRecord,
        (
            Field("name", STRING),
            Field("mechanism", INT8),
            Field("salt", BYTES),
            Field("stored_key", BYTES),
            Field("server_key", BYTES),
            Field("iterations", INT32),
        ),
    ),
    Table(records.FeatureLevelRecord, (Field("name", STRING), Field("feature_level", INT16))),
    Table(
        records.ClientQuotaRecord,
        (
            array(
                "entity",
                Table(records.EntityData, (Field("entity_type", STRING), Field("entity_name", STRING, nullable=True))),
            ),
            Field("key", STRING),
            Field("value", FLOAT64),
            Field("remove", BOOL),
        ),
    ),
    Table(records.ProducerIdsRecord, (*BROKER, Field("next_producer_id", INT64))),
    Table(
        records.BrokerRegistrationChangeRecord,
        (
            *BROKER,
            Field("fenced", INT8, tag=0),
            Field("in_controlled_shutdown", INT8, since=1, tag=1),
            array("log_dirs", UUID, since=2, tag=2),
            optional_array("cordoned_log_dirs", UUID, tag=3, since=3),
        ),
        latest=3,
    ),
    Table(
        records.AccessControlEntryRecord,
        (
            Field("id", UUID),
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field("pattern_type", INT8),
            Field("principal", STRING),
            Field("host", STRING),
            Field("operation", INT8),
            Field("permission_type", INT8),
        ),
    ),
    Table(records.RemoveAccessControlEntryRecord, (Field("id", UUID),)),
    Table(records.NoOpRecord, ()),
    Table(records.ZkMigrationStateRecord, (Field("zk_migration_state", INT8),)),
    Table(records.RemoveUserScramCredentialRecord, (Field("name", STRING), Field("mechanism", INT8))),
    Table(records.BeginTransactionRecord, (Field("name", STRING, nullable=True, tag=0),)),
    Table(records.EndTransactionRecord, ()),
    Table(records.AbortTransactionRecord, (Field("reason", STRING, nullable=True, tag=0),)),
    Table(records.RemoveDelegationTokenRecord, (Field("token_id", STRING),)),
    Table(
        records.RegisterControllerRecord,
        (
            Field("controller_id", INT32),
            Field("incarnation_id", UUID),
            Field("zk_migration_ready", BOOL),
            array("end_points", Table(records.ControllerEndpoint, ENDPOINT)),
            array("features", Table(records.ControllerFeature, FEATURE)),
        ),
    ),
    Table(records.ClearElrRecord, (Field("topic_name", STRING),)),
    Table(records.UnregisterControllerRecord, (Field("controller_id", INT32),)),
)

#: The table of each record class.
TABLES: Final = {table.record: table for table in _TABLES}
#: The table of each type in a frame.
TABLES_BY_TYPE: Final = {record.api_key: TABLES[record] for record in records.RECORD_TYPES.values()}
