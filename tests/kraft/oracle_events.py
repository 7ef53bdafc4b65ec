"""The events of the KRaft oracle as calls of kframe's rules. The responses have the oracle's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from kframe.core.kraft.brokers import broker_events, log_directories, registration
from kframe.core.kraft.configuration import configs
from kframe.core.kraft.configuration.configs import KraftConfigOperation
from kframe.core.kraft.controller_result import ControllerResult, PartitionResult, RequestRefused
from kframe.core.kraft.features import feature_updates
from kframe.core.kraft.replication import alter_partition, directories, elections, reassignment
from kframe.core.kraft.topics import topic_requests
from kframe.errors import ErrorCode
from kframe.model.kafka_uuids import uuid_of_text, uuid_text
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import KraftElection, ResourceType
from kframe.model.kraft.releases import ReleaseRule, has_rule
from kframe.scenario.kraft.sessions import JavaHeartbeats
from tests.kraft import oracle_cases
from tests.kraft.oracle_json import readable_uuid

if TYPE_CHECKING:
    from tests.kraft.oracle_cases import Oracle

Event: TypeAlias = Mapping[str, Any]
#: The decision, the response in JSON, and a broker whose controlled shutdown begins with the batch.
Decided: TypeAlias = tuple[ControllerResult[Any], Any, int | None]


class NotApplicable(Exception):
    """The event cannot occur in this state."""


class Undecided(Exception):
    """Kafka decides by the order of a hash table."""


def decide(oracle: Oracle, event: Event) -> Decided:
    return EVENTS[event["type"]](oracle, event)


def _registration(oracle: Oracle, event: Event) -> BrokerRegistration:
    stored = oracle.context.metadata.brokers.registrations.get(event["broker"])
    if stored is None:
        raise NotApplicable
    return stored


def _epoch(oracle: Oracle, broker: int) -> int:
    stored = oracle.context.metadata.brokers.registrations.get(broker)
    return -1 if stored is None else stored.broker_epoch


def _uuids(values: Any) -> tuple[UUID, ...]:
    return tuple(map(uuid_of_text, values or ()))


def broker_fenced(oracle: Oracle, event: Event) -> Decided:
    return broker_events.fence_broker(oracle.context, _registration(oracle, event)), None, None


def broker_unfenced(oracle: Oracle, event: Event) -> Decided:
    return broker_events.unfence_broker(oracle.context, _registration(oracle, event)), None, None


def controlled_shutdown_begun(oracle: Oracle, event: Event) -> Decided:
    stored = _registration(oracle, event)
    if stored.fenced:
        raise NotApplicable
    return broker_events.begin_controlled_shutdown(oracle.context, stored), None, stored.broker_id


def heartbeat(oracle: Oracle, event: Event) -> Decided:
    cordoned = event.get("cordonedDirectories")
    request = broker_events.BrokerHeartbeat(
        broker_id=event["broker"],
        broker_epoch=event.get("epoch", _epoch(oracle, event["broker"])),
        metadata_offset=event.get("offset", oracle.next_offset - 1),
        want_fence=event.get("wantFence", False),
        want_shut_down=event.get("wantShutDown", False),
        offline_directories=_uuids(event.get("offlineDirectories")),
        cordoned_directories=None if cordoned is None else _uuids(cordoned),
    )
    decision = broker_events.handle_heartbeat(oracle.context, request)
    reply = decision.response
    response = {
        "isCaughtUp": reply.is_caught_up,
        "isFenced": reply.is_fenced,
        "inControlledShutdown": reply.in_controlled_shutdown,
        "shouldShutDown": reply.should_shut_down,
    }
    return decision, response, request.broker_id if reply.in_controlled_shutdown else None


def _pass(decision: ControllerResult[Any]) -> Decided:
    return decision, {"more": decision.response}, None


def fence_stale_broker(oracle: Oracle, event: Event) -> Decided:
    heartbeats = oracle.context.heartbeats
    assert isinstance(heartbeats, JavaHeartbeats)
    if oracle_cases.has_tie(heartbeats, oracle.context.now_ns):
        raise Undecided("several sessions have expired")
    return _pass(broker_events.fence_stale_broker(oracle.context))


def maybe_balance_leaders(oracle: Oracle, event: Event) -> Decided:
    return _pass(elections.balance_leaders(oracle.context))


def unclean_check(oracle: Oracle, event: Event) -> Decided:
    return _pass(elections.elect_unclean_leaders(oracle.context))


def broker_registered(oracle: Oracle, event: Event) -> Decided:
    broker, context = event["broker"], oracle.context
    stored = context.metadata.brokers.registrations.get(broker)
    previous = stored.broker_epoch if stored is not None and event.get("clean") else -1
    listed = event.get("directories")
    incarnation = event.get("incarnation")
    if event.get("expireSession") and stored is not None:
        expired_ns = context.now_ns - oracle.session_timeout_ns - 1
        context.heartbeats.contact_ns[broker, stored.broker_epoch] = expired_ns
    request = registration.BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=oracle_cases.CLUSTER_ID,
        incarnation_id=uuid_of_text(incarnation) if incarnation else readable_uuid(f"new{oracle.next_offset}"),
        end_points=oracle_cases.end_points(broker),
        features=oracle_cases.features_of(oracle.context.settings.release),
        rack=event.get("rack", stored.rack if stored is not None else None),
        directories=_uuids(listed) if listed is not None else stored.directories if stored is not None else (),
        previous_broker_epoch=event.get("previousEpoch", previous),
        detects_clean_shutdown=event.get("requestVersion", 4) >= 3,
    )
    decision = registration.register_broker(context, request, oracle.next_offset)
    return decision, {"brokerEpoch": decision.response}, None


def broker_unregistered(oracle: Oracle, event: Event) -> Decided:
    return registration.unregister_broker(oracle.context, event["broker"]), None, None


def directories_offline(oracle: Oracle, event: Event) -> Decided:
    decision = log_directories.handle_directories_offline(
        oracle.context, _registration(oracle, event), _uuids(event["directories"])
    )
    return decision, None, None


def directories_cordoned(oracle: Oracle, event: Event) -> Decided:
    decision = log_directories.cordon_directories(_registration(oracle, event), _uuids(event["directories"]))
    return decision, None, None


def assign_directories(oracle: Oracle, event: Event) -> Decided:
    assignments = [
        directories.DirectoryAssignment(
            uuid_of_text(item["directory"]), oracle.topic_id(item["topic"]), item["partition"]
        )
        for item in event["assignments"]
    ]
    epoch = event.get("epoch", _epoch(oracle, event["broker"]))
    decision = directories.assign_directories(oracle.context, event["broker"], epoch, assignments)
    response = [
        {
            "topic": oracle.topic_name(result.assignment.topic_id),
            "partition": result.assignment.partition,
            "error": result.error.name,
            "directory": uuid_text(result.assignment.directory),
        }
        for result in decision.response
    ]
    return decision, _sorted(response), None


def alter_partitions(oracle: Oracle, event: Event) -> Decided:
    broker = event["broker"]
    proposals = [_proposal(oracle, item, event.get("requestVersion", 3)) for item in event["partitions"]]
    epoch = event.get("epoch", _epoch(oracle, broker))
    decision = alter_partition.alter_partitions(oracle.context, broker, epoch, proposals)
    response = []
    for result in decision.response:
        node = {"topic": oracle.topic_name(result.topic_id), "partition": result.partition, "error": result.error.name}
        if result.error is ErrorCode.NONE:
            node |= {
                "leader": result.leader,
                "leaderEpoch": result.leader_epoch,
                "partitionEpoch": result.partition_epoch,
                "recoveryState": "RECOVERING" if result.recovery else "RECOVERED",
                "isr": list(result.isr),
            }
        response.append(node)
    return decision, _sorted(response), None


def _proposal(oracle: Oracle, item: Event, version: int) -> alter_partition.KraftIsrProposal:
    topic_id, metadata = oracle.topic_id(item["topic"]), oracle.context.metadata
    topic = metadata.topics.index_by_id.get(topic_id)
    row = None if topic is None else metadata.topics.row_of(topic, item["partition"])
    p = metadata.partitions
    epochs = (0, 0) if row is None else (int(p.leader_epoch[row]), int(p.partition_epoch[row]))
    members = [
        (member["id"], member["epoch"]) if isinstance(member, dict) else (member, _epoch(oracle, member))
        for member in item["isr"]
    ]
    return alter_partition.KraftIsrProposal(
        topic_id=topic_id,
        partition=item["partition"],
        isr=tuple((member, -1) if version < 3 else (member, epoch) for member, epoch in members),
        leader_epoch=item.get("leaderEpoch", epochs[0]),
        partition_epoch=item.get("partitionEpoch", epochs[1]),
        recovery=int(item.get("recoveryState") == "RECOVERING"),
    )


def elect_leaders(oracle: Oracle, event: Event) -> Decided:
    kind = KraftElection.UNCLEAN if event.get("election") == "unclean" else KraftElection.PREFERRED
    named = event.get("partitions")
    names = None if named is None else [(item["topic"], item["partition"]) for item in named]
    decision = elections.elect_leaders(oracle.context, kind, names)
    return decision, _partition_results(decision), None


def _partition_results(decision: ControllerResult[Any]) -> list[dict[str, Any]]:
    results: list[PartitionResult] = decision.response
    return _sorted(
        [{"topic": result.topic, "partition": result.partition, "error": result.error.name} for result in results]
    )


def reassign(oracle: Oracle, event: Event) -> Decided:
    requests = [
        reassignment.RequestedReassignment(
            item["topic"],
            item["partition"],
            None if event["type"] == "cancel" or item.get("replicas") is None else tuple(item["replicas"]),
        )
        for item in event["partitions"]
    ]
    allowed = event.get("allowReplicationFactorChange", True)
    decision = reassignment.reassign_partitions(oracle.context, requests, allow_factor_change=allowed)
    return decision, _partition_results(decision), None


def list_reassignments(oracle: Oracle, event: Event) -> Decided:
    named = event.get("topics")
    names = None if named is None else [(item["name"], item["partitions"]) for item in named]
    response = [
        {
            "topic": item.topic,
            "partition": item.partition,
            "replicas": list(item.replicas),
            "adding": list(item.adding),
            "removing": list(item.removing),
        }
        for item in reassignment.list_reassignments(oracle.context, names)
    ]
    return ControllerResult((), None), _sorted(response), None


def create_topics(oracle: Oracle, event: Event) -> Decided:
    requested = {item["name"]: uuid_of_text(item["id"]) for item in event["topics"] if "id" in item}
    created = oracle.topics_created

    def new_id(name: str) -> UUID:
        nonlocal created
        if name in requested:
            return requested[name]
        created += 1
        return readable_uuid(f"created{created}")

    validate_only = event.get("validateOnly", False)
    new_topics = [
        topic_requests.CreatableTopic(
            item["name"],
            item.get("partitions", -1),
            item.get("replicationFactor", -1),
            tuple(_assignment(index, value) for index, value in enumerate(item.get("assignments", ()))),
            item.get("configs", {}),
        )
        for item in event["topics"]
    ]
    decision = topic_requests.create_topics(oracle.context, new_topics, new_id, validate_only=validate_only)
    if not validate_only:
        oracle.topics_created = created
    response = []
    for result in decision.response:
        node = {"topic": result.topic, "error": result.error.name}
        if result.topic_id is not None and not validate_only:
            node["id"] = uuid_text(result.topic_id)
        response.append(node)
    return decision, _sorted(response), None


def _assignment(index: int, value: Any) -> tuple[int, tuple[int, ...]]:
    if isinstance(value, dict):
        return value["partition"], tuple(value["replicas"])
    return index, tuple(value)


def create_partitions(oracle: Oracle, event: Event) -> Decided:
    requests = [
        topic_requests.CreatePartitionsTopic(
            item["name"],
            item["count"],
            None if item.get("assignments") is None else tuple(tuple(replicas) for replicas in item["assignments"]),
        )
        for item in event["topics"]
    ]
    decision = topic_requests.create_partitions(oracle.context, requests)
    response = [{"topic": result.topic, "error": result.error.name} for result in decision.response]
    if event.get("validateOnly"):
        decision = ControllerResult((), decision.response, atomic=True)
    return decision, _sorted(response), None


def delete_topics(oracle: Oracle, event: Event) -> Decided:
    topic_ids = [oracle.topic_id(name) for name in event["topics"]]
    decision = topic_requests.delete_topics(oracle.context, topic_ids)
    response = [
        {"topic": oracle.topic_name(topic_id), "error": result.error.name}
        for topic_id, result in zip(topic_ids, decision.response, strict=True)
    ]
    return decision, _sorted(response), None


def set_config(oracle: Oracle, event: Event) -> Decided:
    kinds = {
        "topic": ResourceType.TOPIC,
        "broker": ResourceType.BROKER,
        "client-metrics": ResourceType.CLIENT_METRICS,
        "group": ResourceType.GROUP,
    }
    operations: dict[str, tuple[KraftConfigOperation, str | None]] = {
        key: (KraftConfigOperation.DELETE if value is None else KraftConfigOperation.SET, value)
        for key, value in event.get("configs", {}).items()
    }
    for name, operation in (("append", KraftConfigOperation.APPEND), ("subtract", KraftConfigOperation.SUBTRACT)):
        operations |= {key: (operation, value) for key, value in event.get(name, {}).items()}
    resource = int(kinds[event["resource"]]), event["name"]
    change = configs.KraftConfigChange(resource, operations, event.get("replaceAll", False))
    decision = configs.alter_configs(oracle.context, [change], forwarded=event.get("forwarded", True))
    return decision, {"error": decision.response[0].error.name}, None


def update_features(oracle: Oracle, event: Event) -> Decided:
    upgrade_type = feature_updates.UpgradeType(event.get("upgradeType", "upgrade"))
    updates = {name: (level, upgrade_type) for name, level in event["features"].items()}
    try:
        validate_only = event.get("validateOnly", False)
        decision = feature_updates.update_features(
            oracle.context, updates, validate_only=validate_only, kraft_version=1
        )
        error, refused = "NONE", decision.response
    except RequestRefused as refusal:
        error, refused = refusal.error.name, dict.fromkeys(updates, refusal.message)
        decision = ControllerResult((), {}, atomic=not _answers_together(oracle))
    if _answers_together(oracle):
        return decision, {"error": error}, None
    codes = {name: {"error": "INVALID_UPDATE_VERSION" if name in refused else "NONE"} for name in updates}
    return decision, codes, None


def _answers_together(oracle: Oracle) -> bool:
    return has_rule(oracle.context.settings.release, ReleaseRule.FEATURES_TOGETHER)


def describe_features(oracle: Oracle, event: Event) -> Decided:
    levels = oracle.context.settings.supported_features
    return ControllerResult((), None), {name: list(bounds) for name, bounds in levels.items()}, None


def advance_time(oracle: Oracle, event: Event) -> Decided:
    oracle.context.now_ns += event["ms"] * 1_000_000
    return ControllerResult((), None), None, None


def failover(oracle: Oracle, event: Event) -> Decided:
    oracle.activate()
    return ControllerResult((), None), None, None


def _sorted(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(nodes, key=lambda node: (node.get("topic", ""), node.get("partition", 0)))


EVENTS: Final[dict[str, Callable[[Oracle, Event], Decided]]] = {
    "broker_fenced": broker_fenced,
    "broker_unfenced": broker_unfenced,
    "controlled_shutdown_begun": controlled_shutdown_begun,
    "heartbeat": heartbeat,
    "fence_stale_broker": fence_stale_broker,
    "broker_registered": broker_registered,
    "broker_unregistered": broker_unregistered,
    "directories_offline": directories_offline,
    "directories_cordoned": directories_cordoned,
    "assign_directories": assign_directories,
    "alter_partition": alter_partitions,
    "elect_leaders": elect_leaders,
    "maybe_balance_leaders": maybe_balance_leaders,
    "unclean_check": unclean_check,
    "reassign": reassign,
    "cancel": reassign,
    "list_reassignments": list_reassignments,
    "create_topics": create_topics,
    "create_partitions": create_partitions,
    "delete_topics": delete_topics,
    "set_config": set_config,
    "describe_features": describe_features,
    "update_features": update_features,
    "advance_time": advance_time,
    "failover": failover,
}
