"""Decides cases of the KRaft oracle with kframe's rules, in the JSON form of the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.model.kafka_uuids import uuid_of_text, uuid_text
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_json import to_json
from kframe.model.kraft.records import (
    BrokerEndpoint,
    BrokerFeature,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from kframe.model.kraft.releases import LATEST_RELEASE, Release, supported_features
from kframe.scenario.kraft.sessions import JavaHeartbeats
from tests.kraft import oracle_events
from tests.kraft.oracle_json import image, readable_uuid, sort_runs

CLUSTER_ID: Final = "oracle"


def features_of(release: Release) -> tuple[BrokerFeature, ...]:
    """The features that the brokers of a case support."""
    return tuple(
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported_features(release).items()
        if name in (METADATA_VERSION, ELR_VERSION)
    )


def has_tie(heartbeats: JavaHeartbeats, now_ns: int) -> bool:
    """Whether the first two expired sessions share a bucket: then Kafka's order is that of their insertion."""
    expired = heartbeats.expired_sessions(now_ns)[:2]
    return len(expired) == 2 and expired[1] in heartbeats.contact_ns.bucket(expired[0])


class Oracle:
    """An active controller of a release with the state of a case."""

    def __init__(self, case: Mapping[str, Any], release: Release = LATEST_RELEASE) -> None:
        config = case.get("config", {})
        node_id = config.get("node.id", 3000)
        settings = KraftSettings(
            cluster_id=CLUSTER_ID,
            node_id=node_id,
            quorum_ids=(node_id,),
            min_insync_replicas=int(config.get("min.insync.replicas", 1)),
            unclean_leader_election_enable=str(config.get("unclean.leader.election.enable", False)).lower() == "true",
            default_replication_factor=config.get("default.replication.factor", 3),
            num_partitions=config.get("num.partitions", 1),
            max_elections=config.get("max.elections", 1000),
            release=release,
            supported_features=supported_features(release),
        )
        self.session_timeout_ns = config.get("broker.session.timeout.ms", 9000) * 1_000_000
        self.next_offset = 0
        self.topics_created = 0
        self.topic_names: dict[UUID, str] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.context = KraftContext(
            ClusterMetadata(),
            JavaHeartbeats(self.session_timeout_ns),
            settings,
            JavaRandom(0),
        )
        self._load(case, config)
        self.restore_heartbeats(case)

    def restore_heartbeats(self, case: Mapping[str, Any]) -> None:
        """Reset the offset, the heartbeats and the random numbers to those of the case."""
        config = case.get("config", {})
        self.next_offset = config.get("next.offset", 1000)
        self.topics_created = 0
        self.context.random = JavaRandom(config.get("random.seed", 0))
        self.context.now_ns = 10**12
        self.activate()
        for broker in case.get("brokers", ()):
            self._restore_heartbeats(broker)

    def replay(self, record: MetadataRecord, offset: int = 0) -> None:
        self.context.replay(record, offset)
        if isinstance(record, TopicRecord):
            self.topic_names[record.topic_id] = record.name
            self.topic_ids[record.name] = record.topic_id

    def activate(self) -> None:
        """Reset the heartbeats, as after a failover."""
        context = self.context
        context.heartbeats = JavaHeartbeats.activated(
            self.session_timeout_ns, context.metadata.brokers.registrations, context.now_ns
        )

    def topic_name(self, topic_id: UUID) -> str:
        return self.topic_names.get(topic_id, uuid_text(topic_id))

    def topic_id(self, name: str) -> UUID:
        return self.topic_ids.get(name) or uuid_of_text(name)

    def _load(self, case: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        highest = self.context.settings.supported_features[METADATA_VERSION][1]
        self.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=config.get(METADATA_VERSION, highest)))
        self.replay(FeatureLevelRecord(name=ELR_VERSION, feature_level=config.get(ELR_VERSION, 0)))
        for name, values in config.get("dynamic", {}).items():
            self._load_configs(ResourceType.BROKER, name, values)
        for broker in case.get("brokers", ()):
            self._load_broker(broker)
        for topic in case.get("topics", ()):
            self.replay(TopicRecord(name=topic["name"], topic_id=uuid_of_text(topic["id"])))
            self._load_configs(ResourceType.TOPIC, topic["name"], topic.get("configs", {}))
            for partition in topic["partitions"]:
                self._load_partition(uuid_of_text(topic["id"]), partition)

    def _load_configs(self, kind: ResourceType, name: str, values: Mapping[str, str]) -> None:
        for key, value in values.items():
            self.replay(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))

    def _load_broker(self, broker: Mapping[str, Any]) -> None:
        broker_id = broker["id"]
        epoch = broker.get("epoch", 100 + broker_id)
        incarnation = broker.get("incarnation")
        cordoned = broker.get("cordoned")
        record = RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=uuid_of_text(incarnation) if incarnation else readable_uuid(f"broker{broker_id}"),
            broker_epoch=epoch,
            end_points=end_points(broker_id),
            features=features_of(self.context.settings.release),
            rack=broker.get("rack"),
            fenced=broker.get("fenced", False),
            in_controlled_shutdown=broker.get("inControlledShutdown", False),
            log_dirs=tuple(map(uuid_of_text, broker.get("directories", ()))),
            cordoned_log_dirs=None if cordoned is None else tuple(map(uuid_of_text, cordoned)),
        )
        self.replay(record, broker.get("registeredOffset", epoch))

    def _restore_heartbeats(self, broker: Mapping[str, Any]) -> None:
        heartbeats, broker_id = self.context.heartbeats, broker["id"]
        session = broker.get("session")
        if session is not None:
            age_ns = 0 if session else self.session_timeout_ns + 1
            key = broker_id, broker.get("epoch", 100 + broker_id)
            heartbeats.contact_ns[key] = self.context.now_ns - age_ns
        if broker.get("metadataOffset", -1) != -1:
            heartbeats.touch(broker_id, broker.get("fenced", False), broker["metadataOffset"])
        if broker.get("controlledShutdownOffset", -1) != -1:
            heartbeats.begin_controlled_shutdown(broker_id, broker["controlledShutdownOffset"])

    def _load_partition(self, topic_id: UUID, partition: Mapping[str, Any]) -> None:
        replicas = partition["replicas"]
        record = PartitionRecord(
            partition_id=partition["partition"],
            topic_id=topic_id,
            replicas=tuple(replicas),
            isr=tuple(partition.get("isr", ())),
            removing_replicas=tuple(partition.get("removing", ())),
            adding_replicas=tuple(partition.get("adding", ())),
            leader=partition.get("leader", -1),
            leader_recovery_state=int(partition.get("recoveryState") == "RECOVERING"),
            leader_epoch=partition.get("leaderEpoch", 0),
            partition_epoch=partition.get("partitionEpoch", 0),
            directories=tuple(map(uuid_of_text, partition.get("directories", ()))),
            eligible_leader_replicas=tuple(partition.get("elr", ())) or None,
            last_known_elr=tuple(partition.get("lastKnownElr", ())) or None,
        )
        self.replay(record)


def end_points(broker_id: int) -> tuple[BrokerEndpoint, ...]:
    return (BrokerEndpoint(name="PLAINTEXT", host=f"broker-{broker_id}", port=9092, security_protocol=0),)


def decide_case(case: Mapping[str, Any], release: Release = LATEST_RELEASE) -> dict[str, Any]:
    """The results of a case in the JSON form of the oracle, by the rules of a release."""
    independent = case.get("independent", False)
    with_image = case.get("image", not independent)
    results = []
    oracle = Oracle(case, release)
    for index, event in enumerate(case.get("events", ())):
        if independent and index and with_image:
            oracle = Oracle(case, release)
        elif independent:
            oracle.restore_heartbeats(case)
        result = _decide(oracle, event, applies=with_image or not independent)
        results.append(result)
        if independent and with_image:
            result["image"] = image(oracle.context, oracle.next_offset, oracle.context.now_ns)
    output: dict[str, Any] = {"results": results}
    if "id" in case:
        output["id"] = case["id"]
    if with_image and not independent:
        output["image"] = image(oracle.context, oracle.next_offset, oracle.context.now_ns)
    return output


def _decide(oracle: Oracle, event: Mapping[str, Any], *, applies: bool) -> dict[str, Any]:
    try:
        decision, response, after_replay = oracle_events.decide(oracle, event)
    except oracle_events.NotApplicable:
        return {"skipped": True}
    except oracle_events.Undecided as tie:
        return {"undecided": str(tie)}
    except RequestRefused as refusal:
        return {"error": refusal.error.name}
    result = _result(oracle, decision, response)
    if not applies:
        return result
    for versioned in decision.records:
        oracle.replay(versioned.record, oracle.next_offset)
        oracle.next_offset += 1
    if after_replay is not None:
        oracle.context.heartbeats.begin_controlled_shutdown(after_replay, oracle.next_offset - 1)
    return result


def _result(oracle: Oracle, decision: ControllerResult[Any], response: Any) -> dict[str, Any]:
    names = dict(oracle.topic_names)
    names |= {
        item.record.topic_id: item.record.name for item in decision.records if isinstance(item.record, TopicRecord)
    }
    result: dict[str, Any] = {"records": [to_json(*item) for item in sort_runs(decision.records, names)]}
    if decision.atomic:
        result["atomic"] = True
    if response is not None:
        result["response"] = response
    return result


def comparable(output: Any) -> Any:
    """The output without messages, and with ``skipped`` as a Boolean."""
    if isinstance(output, list):
        return [comparable(item) for item in output]
    if not isinstance(output, dict):
        return output
    return {key: True if key == "skipped" else comparable(value) for key, value in output.items() if key != "message"}


#: Defects of Kafka that its classes show without a fault, and kframe does not copy.
PARTITIONS_IN_SPITE_OF_AN_ERROR: Final = "CreatePartitions writes partitions of a topic that has an error"
REPEATED_CHANGES: Final = "an index lists a partition twice after ClearElr, so a change is written twice"


def defect(event: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """The defect of Kafka that a result shows, or None."""
    records = expected.get("records", [])
    response = expected.get("response")
    has_error = isinstance(response, list) and any(result.get("error", "NONE") != "NONE" for result in response)
    if event["type"] == "create_partitions" and records and has_error:
        return PARTITIONS_IN_SPITE_OF_AN_ERROR
    if event["type"] in ("broker_registered", "broker_unregistered"):
        changes = [record for record in records if record["type"] == "PARTITION_CHANGE_RECORD"]
        if any(first == second for first, second in pairwise(changes)):
            return REPEATED_CHANGES
    return None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of a case, and the reasons for excluded results by number of the event."""

    differences: list[str]
    excluded: dict[int, str]


def compare_case(case: Mapping[str, Any], expected: Mapping[str, Any], release: Release = LATEST_RELEASE) -> Comparison:
    """Compare kframe's results with those of Kafka's classes of a release.

    A sequence is compared until Kafka has a fault, shows a defect or decides by the order of a hash table. Of
    independent events only these are excluded.
    """
    actual, kafka = decide_case(case, release), comparable(expected)
    events, results = case["events"], kafka["results"]
    excluded: dict[int, str] = {}
    for index, (event, result, kafka_result) in enumerate(zip(events, actual["results"], results, strict=False)):
        reason = "fault" if "fault" in kafka_result else result.get("undecided") or defect(event, kafka_result)
        if reason is not None:
            excluded[index] = reason
            if not case.get("independent"):
                break
    end = len(results) if not excluded or case.get("independent") else min(excluded)
    messages = [
        f"{case.get('id')} event {index} {events[index]}:\nkframe {actual['results'][index]}\nKafka  {results[index]}"
        for index in range(end)
        if index not in excluded and actual["results"][index] != results[index]
    ]
    if end == len(results) and actual.get("image") != kafka.get("image"):
        messages.append(f"{case.get('id')} image:\nkframe {actual.get('image')}\nKafka  {kafka.get('image')}")
    return Comparison(messages, excluded)
