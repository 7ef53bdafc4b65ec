"""The decisions on the requests that records show: topics, partitions, configurations, features and producer ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

from kframe.core.kraft.brokers.producer_ids import allocate_producer_ids
from kframe.core.kraft.brokers.registration import unregister_controller
from kframe.core.kraft.configuration.configs import ConfigResult, KraftConfigChange, KraftConfigOperation, alter_configs
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.features.feature_updates import UpgradeType, update_features
from kframe.core.kraft.topics.topic_requests import (
    CreatableTopic,
    CreatableTopicResult,
    CreatePartitionsTopic,
    create_partitions,
    create_topics,
    delete_topics,
    possible_factors,
)
from kframe.errors import ErrorCode
from kframe.model.kraft import records
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, ResourceType
from kframe.model.kraft.metadata import Resource
from kframe.model.kraft.records import MetadataRecord
from kframe.whatif.shadow.kraft.events import PossibleEvent

#: Why a record is not predicted, by its type.
UNPREDICTED: Final[dict[type[MetadataRecord], str]] = {
    records.RegisterControllerRecord: "a controller says all of its registration",
    records.AccessControlEntryRecord: "the request says all of an ACL",
    records.RemoveAccessControlEntryRecord: "the request names the ACLs",
    records.ClientQuotaRecord: "the request says all of a quota",
    records.UserScramCredentialRecord: "the request says all of a credential",
    records.RemoveUserScramCredentialRecord: "the request names the credentials",
    records.DelegationTokenRecord: "the request says all of a token",
    records.RemoveDelegationTokenRecord: "a request or the time ends tokens",
    records.ZkMigrationStateRecord: "kframe has no rule for the migration from ZooKeeper",
    records.FenceBrokerRecord: "written below metadata.version 3.3-IV2 only",
    records.UnfenceBrokerRecord: "written below metadata.version 3.3-IV2 only",
}
#: The number of records that a request has written, and the request with each possible parameter.
InferredRequest: TypeAlias = tuple[int, list[PossibleEvent]]
_Record = TypeVar("_Record", bound=MetadataRecord)


def infer_request(context: KraftContext, following: Sequence[MetadataRecord]) -> InferredRequest | None:
    """The request that wrote the first of ``following`` records; None if no request did.

    Random and unknown parts are taken from the records: topic ids, replicas, values of configurations.
    """
    match following[0]:
        case records.TopicRecord(name=name):
            count, topic = _created_topic(following)
            return count, [(f"topic created: {name}", lambda context: _create_topic(context, topic, following))]
        case records.PartitionRecord():
            return _created_partitions(context, following)
        case records.RemoveTopicRecord(topic_id=topic_id):
            return 1, [("topic deleted", lambda context: delete_topics(context, [topic_id]))]
        case records.ConfigRecord() | records.FeatureLevelRecord():
            return _changed_settings(context, following)
        case records.ProducerIdsRecord(broker_id=broker_id, broker_epoch=epoch):
            event = f"producer ids allocated: broker {broker_id}"
            return 1, [(event, lambda context: allocate_producer_ids(context, broker_id, epoch))]
        case records.UnregisterControllerRecord(controller_id=controller_id):
            event = f"controller unregistered: controller {controller_id}"
            return 1, [(event, lambda context: unregister_controller(context, controller_id))]
    return None


def _leading(following: Sequence[MetadataRecord], start: int, kind: type[_Record]) -> list[_Record]:
    """The records of a type from ``start`` to the first of another type."""
    leading = []
    for record in following[start:]:
        if not isinstance(record, kind):
            break
        leading.append(record)
    return leading


def _accepted(result: ControllerResult[Sequence[CreatableTopicResult | ConfigResult]]) -> ControllerResult[object]:
    """The decision. Raises RequestRefused for a part that is refused."""
    for part in result.response:
        if part.error is not ErrorCode.NONE:
            raise RequestRefused(part.error, part.message or "")
    return result


def _created_topic(following: Sequence[MetadataRecord]) -> tuple[int, CreatableTopic]:
    topic = following[0]
    assert isinstance(topic, records.TopicRecord)
    configs = [
        config
        for config in _leading(following, 1, records.ConfigRecord)
        if (config.resource_type, config.resource_name) == (ResourceType.TOPIC, topic.name)
    ]
    count = 1 + len(configs)
    count += len(_leading(following, count, records.ClearElrRecord))
    partitions = [
        partition
        for partition in _leading(following, count, records.PartitionRecord)
        if partition.topic_id == topic.topic_id
    ]
    return count + len(partitions), CreatableTopic(
        topic.name,
        assignments=tuple((partition.partition_id, partition.replicas) for partition in partitions),
        configs={config.name: config.value for config in configs},
    )


def _create_topic(
    context: KraftContext, topic: CreatableTopic, following: Sequence[MetadataRecord]
) -> ControllerResult[object]:
    record = following[0]
    assert isinstance(record, records.TopicRecord)
    if not topic.assignments:
        raise RequestRefused(ErrorCode.INVALID_PARTITIONS, "a topic without partitions")
    return _accepted(create_topics(context, [topic], lambda _name: record.topic_id))


def _created_partitions(context: KraftContext, following: Sequence[MetadataRecord]) -> InferredRequest:
    topics = context.metadata.topics
    leading = _leading(following, 0, records.PartitionRecord)
    topic_id = leading[0].topic_id
    added = [partition for partition in leading if partition.topic_id == topic_id]
    index = topics.index_by_id.get(topic_id)
    name = "" if index is None else topics.names[index]
    count = len(added) + (0 if index is None else len(topics.rows_of(index)))
    assignments = tuple(partition.replicas for partition in added)
    factors = (None,) if index is None else possible_factors(context, index)
    requests = [CreatePartitionsTopic(name, count, assignments, factor) for factor in factors]
    event = f"partitions created: {name}"
    return len(added), [(event, partial(_create_partitions, request)) for request in requests]


def _create_partitions(request: CreatePartitionsTopic, context: KraftContext) -> ControllerResult[object]:
    return _accepted(create_partitions(context, [request]))


def _changed_settings(context: KraftContext, following: Sequence[MetadataRecord]) -> InferredRequest:
    configs: list[records.ConfigRecord] = []
    names = set()
    for config in _leading(following, 0, records.ConfigRecord):
        name = config.resource_type, config.resource_name, config.name
        if name in names:  # the next request
            break
        names.add(name)
        configs.append(config)
    levels = _leading(following, len(configs), records.FeatureLevelRecord)
    if levels and (not configs or any(level.name == ELR_VERSION for level in levels)):
        return len(configs) + len(levels), [("features updated", lambda context: _update_features(context, levels))]
    cleared = _leading(following, len(configs), records.ClearElrRecord)
    return len(configs) + len(cleared), [("configurations changed", lambda context: _alter_configs(context, configs))]


def _update_features(context: KraftContext, levels: Sequence[records.FeatureLevelRecord]) -> ControllerResult[object]:
    updates = {}
    for level in levels:
        stored = context.level if level.name == METADATA_VERSION else context.metadata.features.get(level.name, 0)
        kind = UpgradeType.UPGRADE if level.feature_level >= stored else UpgradeType.UNSAFE_DOWNGRADE
        updates[level.name] = level.feature_level, kind
    return update_features(context, updates)


def _alter_configs(context: KraftContext, configs: Sequence[records.ConfigRecord]) -> ControllerResult[object]:
    operations: dict[Resource, dict[str, tuple[KraftConfigOperation, str | None]]] = {}
    for config in configs:
        kind = KraftConfigOperation.DELETE if config.value is None else KraftConfigOperation.SET
        resource = config.resource_type, config.resource_name
        operations.setdefault(resource, {})[config.name] = kind, config.value
    changes = [KraftConfigChange(resource, values) for resource, values in operations.items()]
    return _accepted(alter_configs(context, changes))
