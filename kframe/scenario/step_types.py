"""The steps of a scenario: the type of the argument of each kind."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from kframe.errors import ErrorCode
from kframe.model.ids import Api
from kframe.scenario.fields import (
    BrokerId,
    BrokerIds,
    Configs,
    Empty,
    PartitionName,
    PartitionNames,
    ReplicaLists,
    RequestedIds,
    Text,
    TopicNames,
    Whole,
    expecting,
    whole,
)

_DEFAULT: Final = -1
_OptionalWhole: TypeAlias = Annotated[int, whole(-1)] | None


class ScenarioBroker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker that registers."""

    broker_id: BrokerId = msgspec.field(name="id")
    rack: Annotated[str, expecting("a text")] | None = None


BrokerEntry: TypeAlias = BrokerId | ScenarioBroker


class ScenarioIsr(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ISR that a leader proposes, and fields that differ from the stored state."""

    isr: RequestedIds
    sender: _OptionalWhole = None
    leader_epoch: _OptionalWhole = None
    partition_epoch: _OptionalWhole = None
    leader_recovery_state: _OptionalWhole = None


class ElectLeadersStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client requests elections; without partitions, for all."""

    election: Annotated[Literal["preferred", "unclean"], expecting("preferred or unclean")] = msgspec.field(name="type")
    partitions: PartitionNames | None = None


class CreatedTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A topic that a client creates: with replica lists, or with counts."""

    name: Text
    assignments: ReplicaLists | None = None
    partitions: Annotated[int, whole(-(2**31))] = _DEFAULT
    replication_factor: Annotated[int, whole(-(2**15))] = _DEFAULT
    config: Annotated[dict[str, Any], expecting("a mapping")] | None = None


class CreatePartitionsStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A client requests more partitions for a topic."""

    topic: Text
    count: Annotated[int, whole(-(2**31))]
    assignments: ReplicaLists | None = None


class WrittenIsr(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An ISR that a leader writes to storage."""

    isr: BrokerIds = ()


class LogDirFailureStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker reports a failed log directory, with replicas of these partitions."""

    broker: Whole
    partitions: PartitionNames = ()


class ProducedRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records that clients write to a partition."""

    records: Annotated[int, whole(1)] = 1
    acks: Annotated[Literal["all", -1, 0, 1], expecting("all, 1 or 0")] | None = "all"


class ResponseStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The response of a broker to further requests: an error by Kafka's name, NONE, or SILENT for no response."""

    broker: Whole
    error: Annotated[
        str,
        expecting(
            "NONE, SILENT or an error by Kafka's name", extra_json_schema={"enum": ["SILENT", *ErrorCode.__members__]}
        ),
    ]
    api: Annotated[Api, expecting("one of LeaderAndIsr, UpdateMetadata, StopReplica")] | None = None
    partitions: PartitionNames | None = None


Targets: TypeAlias = Annotated[
    dict[PartitionName, RequestedIds], expecting("a mapping from partitions to replica lists")
]


class StepEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step: a mapping with one key, the kind of step."""

    elect: Annotated[Empty, Meta(description="The controller is elected, or loses the role.")] | UnsetType = UNSET
    broker_failure: Annotated[BrokerIds, Meta(description="Brokers fail.")] | UnsetType = UNSET
    broker_bounce: Annotated[BrokerIds, Meta(description="Brokers restart before anyone notices.")] | UnsetType = UNSET
    broker_startup: Annotated[tuple[BrokerEntry, ...], expecting("a list of brokers")] | UnsetType = UNSET
    controlled_shutdown: BrokerId | UnsetType = UNSET
    alter_partition: (
        Annotated[dict[PartitionName, ScenarioIsr], expecting("a mapping from partitions to ISRs")] | UnsetType
    ) = UNSET
    elect_leaders: ElectLeadersStep | UnsetType = UNSET
    create_topics: Annotated[tuple[CreatedTopic, ...], expecting("a list of topics")] | UnsetType = UNSET
    create_partitions: CreatePartitionsStep | UnsetType = UNSET
    delete_topics: TopicNames | UnsetType = UNSET
    reassign: (
        Annotated[dict[PartitionName, RequestedIds | None], expecting("a mapping from partitions to replica lists")]
        | UnsetType
    ) = UNSET
    list_reassignments: Empty | UnsetType = UNSET
    reassign_znode: Targets | UnsetType = UNSET
    preferred_znode: PartitionNames | UnsetType = UNSET
    isr_znode: (
        Annotated[dict[PartitionName, WrittenIsr], expecting("a mapping from partitions to ISRs")] | UnsetType
    ) = UNSET
    topic_config: Annotated[dict[str, Configs], expecting("a mapping from topics to settings")] | UnsetType = UNSET
    log_dir_failure: LogDirFailureStep | UnsetType = UNSET
    produce: (
        Annotated[dict[PartitionName, ProducedRecords], expecting("a mapping from partitions to records")] | UnsetType
    ) = UNSET
    answer: ResponseStep | UnsetType = UNSET
    advance: Annotated[float, expecting("seconds, from 0 to a billion", ge=0, le=1e9)] | UnsetType = UNSET


class StoredRequests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Requests and marks in storage before the first step (key ``admin``)."""

    reassign: Targets | UnsetType = UNSET
    preferred: PartitionNames | UnsetType = UNSET
    delete_topics: TopicNames | UnsetType = UNSET
