"""The arguments of the steps of KRaft scenarios in the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from kframe.scenario.fields import Empty, Flag, PartitionName, RequestedId, Text, Whole, expecting

Scalar: TypeAlias = Annotated[str | int | float | bool | None, expecting("a text, a number, true, false or null")]
Integer: TypeAlias = Annotated[int, expecting("a whole number", ge=-(2**63), le=2**63 - 1)]
Ids: TypeAlias = Annotated[list[RequestedId], expecting("a list of broker ids")]
Names: TypeAlias = Annotated[list[str], expecting("a list of names")]
Levels: TypeAlias = Annotated[tuple[int, int], expecting("the lowest and the highest level")]
Ranges: TypeAlias = Annotated[dict[str, Levels | None], expecting("a mapping from features to levels")]
Values: TypeAlias = Annotated[dict[str, Scalar], expecting("a mapping from settings to values")]
Partitions: TypeAlias = Annotated[list[PartitionName], expecting("a list of partitions")]
ReplicaLists: TypeAlias = Annotated[list[Ids], expecting("a list of replica lists")]


class BrokerProperties(Struct, forbid_unknown_fields=True, kw_only=True):
    """A broker of the scenario: ``directories`` are names of log directories; a null feature is not sent."""

    id: RequestedId
    rack: str | None = None
    directories: Names | None = None
    features: Ranges = {}


class KraftBrokerEntry(BrokerProperties, forbid_unknown_fields=True, kw_only=True):
    """A broker of the cluster at the start."""

    registered: Flag = True


class RegistrationOptions(BrokerProperties, forbid_unknown_fields=True, kw_only=True):
    """A registration. ``directory_ids`` are sent as they are; a ``lagging`` broker has not applied any metadata."""

    same_incarnation: Flag = False
    previous_epoch: Integer | None = None
    cluster_id: str | None = None
    directory_ids: Names | None = None
    lagging: Flag = False
    silent: Flag = False


class KraftPartitionEntry(Struct, forbid_unknown_fields=True):
    """A partition of the cluster at the start."""

    partition: Whole
    replicas: Ids
    directories: Names | None = None
    isr: Ids | None = None


class KraftTopicEntry(Struct, forbid_unknown_fields=True):
    """A topic of the cluster at the start."""

    name: Text
    partitions: list[KraftPartitionEntry]
    config: Values = {}


class ShutdownOptions(Struct, forbid_unknown_fields=True):
    """Brokers that shut down; without ``wait`` the step ends before their sessions do."""

    brokers: Ids
    wait: Flag = True


class Heartbeat(Struct, forbid_unknown_fields=True):
    """One heartbeat. Absent fields have the values of a regular heartbeat."""

    broker: RequestedId
    want_fence: Flag = False
    want_shut_down: Flag | None = None
    epoch: Integer | None = None
    offset: Integer | None = None
    offline_directories: Names | None = None
    cordoned_directories: Names | None = None


class BrokerDirectories(Struct, forbid_unknown_fields=True):
    """Directories of a broker."""

    broker: RequestedId
    directories: Names


class DirectoryAssignments(Struct, forbid_unknown_fields=True):
    """The directory of each named partition's replica on a broker."""

    broker: RequestedId
    partitions: dict[PartitionName, str]
    epoch: Integer | None = None


class IsrChange(Struct, forbid_unknown_fields=True):
    """The ISR that a leader proposes. Absent fields have their current values."""

    isr: Ids
    sender: Integer | None = None
    sender_epoch: Integer | None = None
    leader_epoch: Integer | None = None
    partition_epoch: Integer | None = None
    leader_recovery_state: Integer | None = None
    broker_epochs: dict[int, int] = {}


class CreatedTopicEntry(Struct, forbid_unknown_fields=True):
    """A topic of a CreateTopics request; ``repeat`` repeats ``assignments`` up to that many partitions."""

    name: str
    assignments: ReplicaLists | dict[int, Ids] = []
    partitions: Integer = -1
    replication_factor: Integer = -1
    repeat: Integer | None = None
    config: Values = {}


class CreateTopicsEntry(Struct, forbid_unknown_fields=True):
    """A CreateTopics request."""

    topics: list[CreatedTopicEntry]
    validate_only: Flag = False


class CreatePartitionsEntry(Struct, forbid_unknown_fields=True):
    """A topic of a CreatePartitions request."""

    topic: Text
    count: Integer
    assignments: ReplicaLists | None = None


class LeaderElection(Struct, forbid_unknown_fields=True):
    """An ElectLeaders request; null partitions are all."""

    type: Literal["preferred", "unclean"]
    partitions: Partitions | None = None


class ResourceConfigs(Struct, forbid_unknown_fields=True, rename={"client_metrics": "client-metrics"}):
    """Changes of one resource's configurations. One of the first four fields names the resource."""

    topic: str | int | None = None
    broker: str | int | None = None
    group: str | int | None = None
    client_metrics: str | None = None
    set: Values = {}
    delete: Names = []
    append: Values = {}
    subtract: Values = {}


class ConfigChanges(Struct, forbid_unknown_fields=True):
    """An IncrementalAlterConfigs request."""

    resources: list[ResourceConfigs]
    validate_only: Flag = False


class FeatureLevel(Struct, forbid_unknown_fields=True):
    """A level, and the changes that are permitted."""

    level: Integer
    type: Literal["upgrade", "safe_downgrade", "unsafe_downgrade"] = "upgrade"


class RawRequest(Struct, forbid_unknown_fields=True):
    """Any other request, its body in Kafka's field names."""

    api: str
    version: Integer | None = None
    body: dict[str, Any] = {}


class RestartOptions(Struct, forbid_unknown_fields=True):
    """A restart of the controller, which may lose the newest batches of its log."""

    kill: Flag = False
    lose_batches: Whole = 0


class KraftStepEntry(Struct, forbid_unknown_fields=True):
    """A step: the name of its action, and the argument."""

    elect: Empty | UnsetType = UNSET
    register: list[RequestedId | RegistrationOptions] | UnsetType = UNSET
    start: list[RequestedId | RegistrationOptions] | UnsetType = UNSET
    unfence: Ids | UnsetType = UNSET
    heartbeat_stop: Ids | UnsetType = UNSET
    heartbeat_resume: Ids | UnsetType = UNSET
    unclean_stop: Ids | UnsetType = UNSET
    restart: Ids | UnsetType = UNSET
    fence: Ids | UnsetType = UNSET
    controlled_shutdown: Ids | ShutdownOptions | UnsetType = UNSET
    clean_stop: Ids | ShutdownOptions | UnsetType = UNSET
    heartbeat: Heartbeat | UnsetType = UNSET
    metadata_lag: Ids | UnsetType = UNSET
    metadata_catch_up: Ids | UnsetType = UNSET
    offline_directory: BrokerDirectories | UnsetType = UNSET
    cordon: BrokerDirectories | UnsetType = UNSET
    assign_directories: DirectoryAssignments | UnsetType = UNSET
    alter_partition: dict[PartitionName, IsrChange] | UnsetType = UNSET
    catch_up: Names | Empty | UnsetType = UNSET
    allocate_producer_ids: RequestedId | UnsetType = UNSET
    create_topics: list[CreatedTopicEntry] | CreateTopicsEntry | UnsetType = UNSET
    create_partitions: CreatePartitionsEntry | list[CreatePartitionsEntry] | UnsetType = UNSET
    delete_topics: Names | UnsetType = UNSET
    elect_leaders: LeaderElection | UnsetType = UNSET
    reassign: dict[str, Ids | bool | None] | UnsetType = UNSET
    cancel: Partitions | UnsetType = UNSET
    list_reassignments: Empty | UnsetType = UNSET
    set_config: list[ResourceConfigs] | ConfigChanges | UnsetType = UNSET
    replace_config: list[ResourceConfigs] | UnsetType = UNSET
    feature: dict[str, int | bool | FeatureLevel] | UnsetType = UNSET
    unregister: Ids | UnsetType = UNSET
    unregister_controller: RequestedId | UnsetType = UNSET
    request: RawRequest | UnsetType = UNSET
    controller_restart: RestartOptions | UnsetType = UNSET
    snapshot: Empty | UnsetType = UNSET
    advance: float | UnsetType = UNSET
