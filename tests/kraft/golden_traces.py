"""Golden traces of Apache Kafka's KRaft controller: their records as kframe's records, and the decisions of each step.

The state before a step is what the trace's own records add up to. So every step is decided from Kafka's state, and a
difference in one step does not hide those in later steps.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import NAMESPACE_URL, UUID, uuid5

import yaml
from msgspec.structs import fields

from kframe.core.kraft import (
    alter_partition,
    broker_events,
    configs,
    directories,
    elections,
    features,
    reassignment,
    registration,
    topics,
)
from kframe.core.kraft.configs import KraftConfigOperation
from kframe.core.kraft.context import SUPPORTED_FEATURES, KraftContext, KraftSettings
from kframe.core.kraft.decision import ControllerResult, RecordAndVersion, RequestRefused
from kframe.core.kraft.heartbeats import Heartbeats
from kframe.core.kraft.membership import has_leaderships
from kframe.core.kraft.random_source import JavaRandom
from kframe.model.kraft import directory_ids, records
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import KraftElection, ResourceType
from kframe.model.kraft.metadata import ClusterMetadata

GOLDEN: Final = Path(__file__).parents[1] / "golden-kraft"
#: Records of a controller's start, which are not decisions of the rules.
IGNORED: Final = {"REGISTER_CONTROLLER_RECORD", "NO_OP_RECORD"}
RESERVED: Final = {"MIGRATING": directory_ids.MIGRATING, "UNASSIGNED": directory_ids.UNASSIGNED,
                   "LOST": directory_ids.LOST}  # fmt: skip
UUIDS: Final = {"topic_id", "incarnation_id", "directories", "log_dirs", "cordoned_log_dirs"}
DEFAULT_FEATURES: Final = {name: list(bounds) for name, bounds in SUPPORTED_FEATURES.items()}
FEATURES: Final = tuple(
    records.BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in SUPPORTED_FEATURES.items()
)

Step: TypeAlias = dict[str, Any]


def read_trace(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    trace: dict[str, Any] = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
    return trace


def symbolic_uuid(name: str) -> UUID:
    """The UUID that stands for a name of a trace."""
    return RESERVED.get(name) or uuid5(NAMESPACE_URL, name)


def supported_features(changes: Mapping[str, list[int] | None]) -> tuple[records.BrokerFeature, ...]:
    """The features that the recorder's brokers send, with other ranges of some, or without them (None)."""
    return tuple(
        records.BrokerFeature(name=name, min_supported_version=bounds[0], max_supported_version=bounds[1])
        for name, bounds in (dict(DEFAULT_FEATURES) | dict(changes)).items()
        if bounds is not None
    )


def symbolic_epoch(name: str) -> int:
    """The broker epoch that stands for ``broker.number``."""
    broker, _, number = name.partition(".")
    return int(broker) * 1_000 + int(number)


def parse_record(node: Mapping[str, Any]) -> RecordAndVersion:
    """A record of a trace as kframe's record."""
    kind = "".join(part.capitalize() for part in node["type"].split("_"))
    record_type: Any = getattr(records, kind)
    values: dict[str, Any] = {}
    for field in fields(record_type):
        key = re.sub(r"_(\w)", lambda match: match[1].upper(), field.name)
        if key in node["data"]:
            values[field.name] = _value(field.name, node["data"][key])
    return RecordAndVersion(record_type(**values), node["version"])


def _value(name: str, value: Any) -> Any:
    if name == "end_points":
        return ()
    if name == "features":
        return FEATURES if value == "default" else supported_features(value)
    if name == "broker_epoch" and isinstance(value, str):
        return symbolic_epoch(value)
    if name == "entity":
        return tuple(
            records.EntityData(entity_type=item["entityType"], entity_name=item["entityName"]) for item in value
        )
    if name in UUIDS and isinstance(value, str):
        return symbolic_uuid(value)
    if isinstance(value, list):
        return tuple(_value(name, item) for item in value)
    return value


def step_records(step: Step) -> Iterator[RecordAndVersion]:
    """The records of a step that the rules decide."""
    for batch in step["batches"]:
        if not batch.get("control"):
            yield from (parse_record(node) for node in batch["records"] if node["type"] not in IGNORED)


class GoldenCluster:
    """The state of a trace after some of its steps, and what its brokers are."""

    def __init__(self, scenario: Mapping[str, Any]) -> None:
        config = scenario.get("config", {})
        settings = KraftSettings(
            node_id=3000,
            quorum_ids=(3000,),
            min_insync_replicas=int(config.get("min.insync.replicas", 1)),
            unclean_leader_election_enable=bool(config.get("unclean.leader.election.enable", False)),
        )
        self.context = KraftContext(ClusterMetadata(), Heartbeats(1), settings, JavaRandom(0))
        self.brokers = {broker["id"]: broker for broker in scenario.get("brokers", ())}
        self.registrations: dict[int, int] = {}
        self.incarnations: dict[int, UUID] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.clean_epochs: dict[int, int] = {}

    @property
    def metadata(self) -> ClusterMetadata:
        return self.context.metadata

    def copy(self) -> GoldenCluster:
        """An independent copy, for the decisions of one step."""
        twin = copy(self)
        twin.context = KraftContext(self.metadata.copy(), Heartbeats(1), self.context.settings, JavaRandom(0))
        for broker, registered in self.metadata.brokers.registrations.items():
            twin.context.heartbeats.register(broker, registered.fenced)
        return twin

    def apply(self, decided: RecordAndVersion) -> None:
        record = decided.record
        if isinstance(record, records.RegisterBrokerRecord):
            self.registrations[record.broker_id] = record.broker_epoch % 1_000
        self.context.replay(record, 0)

    def note_inputs(self, step: Step) -> None:
        """Note incarnations and topic ids, which are random, and the epochs of brokers that stopped in order."""
        ((name, argument),) = step["step"].items()
        if name in ("controlled_shutdown", "clean_stop"):
            for broker, _ in _ids(argument["brokers"] if isinstance(argument, dict) else argument):
                self.clean_epochs[broker] = self.registration(broker).broker_epoch
        for decided in step_records(step):
            record = decided.record
            if isinstance(record, records.RegisterBrokerRecord):
                self.incarnations[record.broker_id] = record.incarnation_id
            elif isinstance(record, records.TopicRecord):
                self.topic_ids[record.name] = record.topic_id

    def new_topic_id(self, name: str) -> UUID:
        return self.topic_ids.get(name, symbolic_uuid(name))

    def registration(self, broker: int) -> BrokerRegistration:
        return self.metadata.brokers.registrations[broker]

    def register(self, broker: int, options: Mapping[str, Any]) -> ControllerResult:
        """Register a new process of a broker."""
        known = self.brokers.setdefault(broker, {"id": broker})
        known |= {name: value for name, value in options.items() if name in ("rack", "directories")}
        known["features"] = (known.get("features") or {}) | options.get("features", {})
        number = self.registrations.get(broker, 0) + 1
        names = known.get("directories") or ["a"]
        listed = options.get("directory_ids", [f"{broker}.{name}" for name in names])
        incarnation = self.incarnations.get(broker, symbolic_uuid(f"{broker}.new"))
        if options.get("same_incarnation"):
            incarnation = self.registration(broker).incarnation_id
        request = registration.BrokerRegistrationRequest(
            broker_id=broker,
            cluster_id=options.get("cluster_id", ""),
            incarnation_id=incarnation,
            features=supported_features(known.get("features") or {}),
            rack=known.get("rack"),
            directories=tuple(map(symbolic_uuid, listed)),
            previous_broker_epoch=self.clean_epochs.get(broker, -1),
        )
        return registration.register_broker(self.context, request, broker * 1_000 + number)


def _partition(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def _ids(argument: Any) -> list[tuple[int, Mapping[str, Any]]]:
    items = argument if isinstance(argument, list) else [argument]
    return [(item["id"], item) if isinstance(item, dict) else (item, {}) for item in items]


def fence(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    for broker, _ in _ids(argument):
        yield ControllerResult(broker_events.fence_broker(cluster.context, cluster.registration(broker)))


def unfence(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    fenced = [broker for broker, _ in _ids(argument) if cluster.registration(broker).fenced]
    for broker in fenced:
        yield ControllerResult(broker_events.unfence_broker(cluster.context, cluster.registration(broker)))


def register(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    for broker, options in _ids(argument):
        yield cluster.register(broker, options)


def start(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    for broker, options in _ids(argument):
        yield cluster.register(broker, options)
        yield ControllerResult(broker_events.unfence_broker(cluster.context, cluster.registration(broker)))


def clean_stop(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    """Controlled shutdown if the broker leads, then fencing; and again when the session ends."""
    waits = not isinstance(argument, dict) or argument.get("wait", True)
    brokers = argument["brokers"] if isinstance(argument, dict) else argument
    for broker, _ in _ids(brokers):
        if has_leaderships(cluster.metadata, broker):
            yield ControllerResult(
                broker_events.begin_controlled_shutdown(cluster.context, cluster.registration(broker))
            )
        yield ControllerResult(broker_events.fence_broker(cluster.context, cluster.registration(broker)))
    for broker, _ in _ids(brokers) if waits else ():
        yield ControllerResult(broker_events.fence_broker(cluster.context, cluster.registration(broker)))


def unregister(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    for broker, _ in _ids(argument):
        yield broker_events.unregister_broker(cluster.context, broker)


def reassign(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    named = dict(argument)
    allowed = named.pop("allow_replication_factor_change", True)
    requests = [
        reassignment.RequestedReassignment(*_partition(name), None if replicas is None else tuple(replicas))
        for name, replicas in named.items()
    ]
    yield reassignment.reassign_partitions(cluster.context, requests, allow_factor_change=allowed)


def cancel(cluster: GoldenCluster, argument: list[str]) -> Iterator[ControllerResult]:
    yield from reassign(cluster, dict.fromkeys(argument))


def elect_leaders(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    kind = KraftElection[argument["type"].upper()]
    named = argument.get("partitions")
    yield elections.elect_leaders(cluster.context, kind, None if named is None else list(map(_partition, named)))


def delete_topics(cluster: GoldenCluster, argument: list[str]) -> Iterator[ControllerResult]:
    index = cluster.metadata.topics.index_by_name
    known = [name.removeprefix("id:") for name in argument]
    once = [name for name in dict.fromkeys(known) if name in index and known.count(name) == 1]
    yield topics.delete_topics(cluster.context, [cluster.metadata.topics.ids[index[name]] for name in once])


def assign_directories(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    broker, topic_ids = argument["broker"], cluster.metadata.topics
    assignments = []
    for name, directory in argument["partitions"].items():
        topic, partition = _partition(name)
        index = topic_ids.index_by_name.get(topic)
        topic_id = symbolic_uuid(topic) if index is None else topic_ids.ids[index]
        symbol = directory if directory in RESERVED else f"{broker}.{directory}"
        assignments.append(directories.DirectoryAssignment(symbolic_uuid(symbol), topic_id, partition))
    epoch = argument.get("epoch", cluster.registration(broker).broker_epoch)
    yield directories.assign_directories(cluster.context, broker, epoch, assignments)


def offline_directory(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    broker = argument["broker"]
    lost = [symbolic_uuid(f"{broker}.{name}") for name in argument["directories"]]
    yield ControllerResult(directories.lose_directories(cluster.context, cluster.registration(broker), lost))


def cordon(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    broker = argument["broker"]
    cordoned = [symbolic_uuid(f"{broker}.{name}") for name in argument["directories"]]
    yield ControllerResult(directories.cordon_directories(cluster.registration(broker), cordoned))


def alter(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    """One request for each sender, in the order in which the senders are first named."""
    requests: dict[tuple[int, int], list[alter_partition.KraftIsrProposal]] = {}
    for name, options in argument.items():
        sender, epoch, proposal = _proposal(cluster, name, options)
        requests.setdefault((sender, epoch), []).append(proposal)
    for (sender, epoch), proposals in requests.items():
        yield alter_partition.alter_partitions(cluster.context, sender, epoch, proposals)


def _proposal(
    cluster: GoldenCluster, name: str, options: Mapping[str, Any]
) -> tuple[int, int, alter_partition.KraftIsrProposal]:
    topic, partition = _partition(name)
    row, p = cluster.metadata.row(topic, partition), cluster.metadata.partitions
    index = cluster.metadata.topics.index_by_name.get(topic)
    leader = -1 if row is None else cluster.metadata.brokers.ids_of([int(p.leader[row])])[0]
    sender = options.get("sender", leader)
    members = []
    for member in options["isr"]:
        stored = cluster.metadata.brokers.registrations.get(member)
        epochs = {int(broker): epoch for broker, epoch in options.get("broker_epochs", {}).items()}
        members.append((member, epochs.get(member, -1 if stored is None else stored.broker_epoch)))
    proposal = alter_partition.KraftIsrProposal(
        topic_id=symbolic_uuid(topic) if index is None else cluster.metadata.topics.ids[index],
        partition=partition,
        isr=tuple(members),
        leader_epoch=options.get("leader_epoch", 0 if row is None else int(p.leader_epoch[row])),
        partition_epoch=options.get("partition_epoch", 0 if row is None else int(p.partition_epoch[row])),
        recovery=options.get("leader_recovery_state", 0 if row is None else int(p.recovery[row])),
    )
    stored = cluster.metadata.brokers.registrations.get(sender)
    return sender, options.get("sender_epoch", -1 if stored is None else stored.broker_epoch), proposal


def config_value(value: Any) -> str | None:
    """A value of a scenario as the recorder sends it."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def feature(cluster: GoldenCluster, argument: Mapping[str, Any]) -> Iterator[ControllerResult]:
    named = dict(argument)
    validate_only = named.pop("validate_only", False)
    updates = {}
    for name, value in named.items():
        level, kind = (value["level"], value["type"]) if isinstance(value, dict) else (value, "upgrade")
        updates[name] = level, features.UpgradeType(kind)
    yield features.update_features(cluster.context, updates, validate_only=validate_only)


def create_topics(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    requested = argument["topics"] if isinstance(argument, dict) else argument
    validate_only = isinstance(argument, dict) and argument.get("validate_only", False)
    new_topics = []
    for topic in requested:
        named = topic.get("assignments", ())
        pairs = named.items() if isinstance(named, dict) else enumerate(named)
        replicas = tuple((int(partition), tuple(brokers)) for partition, brokers in pairs)
        count = topic.get("repeat", len(replicas))
        replicas = tuple((index, replicas[index % len(replicas)][1]) for index in range(count)) or replicas
        values = {key: config_value(value) for key, value in topic.get("config", {}).items()}
        new_topics.append(
            topics.CreatableTopic(
                topic["name"], topic.get("partitions", -1), topic.get("replication_factor", -1), replicas, values
            )
        )
    yield topics.create_topics(cluster.context, new_topics, cluster.new_topic_id, validate_only=validate_only)


def _replica_lists(assignments: Any) -> tuple[tuple[int, ...], ...] | None:
    return None if assignments is None else tuple(map(tuple, assignments))


def create_partitions(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    requested = argument if isinstance(argument, list) else [argument]
    requests = [
        topics.CreatePartitionsTopic(topic["topic"], topic["count"], _replica_lists(topic.get("assignments")))
        for topic in requested
    ]
    yield topics.create_partitions(cluster.context, requests)


def set_config(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    yield from _alter_configs(cluster, argument, replaces_all=False)


def replace_config(cluster: GoldenCluster, argument: Any) -> Iterator[ControllerResult]:
    yield from _alter_configs(cluster, argument, replaces_all=True)


def _alter_configs(cluster: GoldenCluster, argument: Any, *, replaces_all: bool) -> Iterator[ControllerResult]:
    changes = []
    for resource in argument["resources"] if isinstance(argument, dict) else argument:
        kind = next(name for name in ("topic", "broker", "group", "client-metrics") if name in resource)
        operations: dict[str, tuple[KraftConfigOperation, str | None]] = {}
        for operation in KraftConfigOperation:
            named = resource.get(operation.value, {})
            values = named if isinstance(named, dict) else dict.fromkeys(named)
            operations |= {key: (operation, config_value(value)) for key, value in values.items()}
        name = int(ResourceType[kind.upper().replace("-", "_")]), str(resource[kind])
        changes.append(configs.KraftConfigChange(name, operations, replaces_all))
    decision = configs.alter_configs(cluster.context, changes)
    validates = isinstance(argument, dict) and argument.get("validate_only", False)
    yield ControllerResult(response=decision.response) if validates else decision


#: The steps that the rules decide from the state alone.
STEPS: Final[dict[str, Callable[[GoldenCluster, Any], Iterator[ControllerResult]]]] = {
    "heartbeat_stop": fence,
    "fence": fence,
    "unfence": unfence,
    "heartbeat_resume": unfence,
    "register": register,
    "start": start,
    "restart": register,
    "clean_stop": clean_stop,
    "unregister": unregister,
    "reassign": reassign,
    "cancel": cancel,
    "elect_leaders": elect_leaders,
    "delete_topics": delete_topics,
    "assign_directories": assign_directories,
    "offline_directory": offline_directory,
    "cordon": cordon,
    "alter_partition": alter,
    "feature": feature,
    "create_topics": create_topics,
    "create_partitions": create_partitions,
    "set_config": set_config,
    "replace_config": replace_config,
}


#: Answers that depend on what the rules do not know: sessions, values of configurations, authorization.
UNDECIDED: Final = ("DUPLICATE_BROKER_REGISTRATION", "INVALID_CONFIG", "INVALID_REQUEST")


def is_decided(cluster: GoldenCluster, step: Step) -> bool:
    """Whether the rules decide the records of a step from the state alone.

    Sessions decide whether a fenced broker that falls silent is fenced again.
    """
    ((name, brokers),) = step["step"].items()
    argument = json.dumps(brokers)
    if name == "unfence" and "STALE_BROKER_EPOCH" in json.dumps(step["response"]):
        return False
    if name == "heartbeat_stop" and any(cluster.registration(broker).fenced for broker in brokers):
        return False
    draws_replicas = name == "create_partitions" and "assignments" not in argument
    draws_replicas |= name == "create_topics" and argument.count("assignments") < argument.count('"name"')
    depends = name in ("register", "start", "set_config", "replace_config", "create_topics") and any(
        error in json.dumps(step["response"]) for error in UNDECIDED
    )
    return name in STEPS and not draws_replicas and not depends


def decide(cluster: GoldenCluster, step: Step) -> list[RecordAndVersion]:
    """The records that kframe decides for a step; each decision is applied before the next."""
    ((name, argument),) = step["step"].items()
    decided: list[RecordAndVersion] = []
    try:
        for decision in STEPS[name](cluster, argument):
            decided += [item for item in decision.records if not isinstance(item.record, records.NoOpRecord)]
            for record in decision.records:
                cluster.apply(record)
    except RequestRefused:
        pass
    return decided


def read_scenario(name: str) -> dict[str, Any]:
    scenario: dict[str, Any] = yaml.safe_load((GOLDEN / "scenarios" / f"{name}.yaml").read_text())
    return scenario
