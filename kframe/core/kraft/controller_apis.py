"""Requests of administrators for several topics or resources, as they arrive (Kafka 4.4 ``ControllerApis``).

Repeated, unknown and forbidden names are answered here. The rules of the other modules decide the rest of a request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final
from uuid import UUID

from kframe.core.kraft.configuration import configs
from kframe.core.kraft.configuration.configs import ConfigResult, KraftConfigChange
from kframe.core.kraft.configuration.descriptions import BROKER_LOGGER
from kframe.core.kraft.configuration.topic_configs import effective_topic_configs
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.topics import topic_requests
from kframe.core.kraft.topics.topic_requests import CreatableTopic, CreatableTopicResult, CreatePartitionsTopic
from kframe.core.mutation_quotas import UNLIMITED, MutationQuota
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import ResourceType
from kframe.model.kraft.metadata import Resource

#: The topic of the metadata log, which no request creates.
METADATA_TOPIC: Final = "__cluster_metadata"
#: The types of resources that Kafka knows. Those of loggers have no settings here.
_RESOURCE_TYPES: Final = (*ResourceType, BROKER_LOGGER)


@dataclass(frozen=True, slots=True)
class TopicAccess:
    """The topics that a client may delete, and describe. None is every topic."""

    deletable: Collection[str] | None = None
    describable: Collection[str] | None = None

    def allows(self, name: str) -> bool:
        """Whether the client may delete a topic."""
        return self.deletable is None or name in self.deletable

    def shows(self, name: str) -> bool:
        """Whether the client may know that a topic exists."""
        return self.describable is None or name in self.describable


EVERY_TOPIC: Final = TopicAccess()


def create_topics(
    context: KraftContext,
    requested: Sequence[CreatableTopic],
    new_id: Callable[[str], UUID],
    *,
    validate_only: bool = False,
    with_configs: bool = False,
    unauthorized: Collection[str] = (),
    quota: MutationQuota = UNLIMITED,
) -> ControllerResult[list[CreatableTopicResult]]:
    """Create topics; the response is a list of CreatableTopicResult, one for each name.

    See ``topic_requests.create_topics``. A name that occurs twice is refused, and so are METADATA_TOPIC and the names
    that the client may not create. ``with_configs``: the results of new topics have their settings.
    Raises RequestRefused for too many partitions or records.
    """
    refused = _duplicate_topics(topic.name for topic in requested)
    if METADATA_TOPIC not in refused and any(topic.name == METADATA_TOPIC for topic in requested):
        message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        refused[METADATA_TOPIC] = CreatableTopicResult(METADATA_TOPIC, ErrorCode.INVALID_REQUEST, message)
    for topic in requested:
        if topic.name in unauthorized and topic.name not in refused:
            failure = CreatableTopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            refused[topic.name] = failure
    valid = [topic for topic in requested if topic.name not in refused]
    result = topic_requests.create_topics(context, valid, new_id, validate_only=validate_only, quota=quota)
    results = result.response
    if with_configs:
        values = {topic.name: topic.configs for topic in valid}
        results = [_with_configs(context, each, values[each.topic]) for each in results]
    return replace(result, response=[*results, *refused.values()])


def create_partitions(
    context: KraftContext,
    requested: Sequence[CreatePartitionsTopic],
    *,
    validate_only: bool = False,
    unauthorized: Collection[str] = (),
    quota: MutationQuota = UNLIMITED,
) -> ControllerResult[list[CreatableTopicResult]]:
    """Add partitions to topics; the response is a list of CreatableTopicResult, one for each name.

    A name that occurs twice is refused, and so are those of topics that the client may not alter. Raises
    RequestRefused for too many partitions.
    """
    refused = _duplicate_topics(topic.topic for topic in requested)
    for topic in requested:
        if topic.topic in unauthorized and topic.topic not in refused:
            refused[topic.topic] = CreatableTopicResult(topic.topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    valid = [topic for topic in requested if topic.topic not in refused]
    result = topic_requests.create_partitions(context, valid, quota=quota)
    parts = () if validate_only else result.parts
    return replace(result, parts=parts, response=[*result.response, *refused.values()])


def delete_topics(
    context: KraftContext,
    names: Sequence[str],
    topic_ids: Sequence[UUID] = (),
    *,
    access: TopicAccess = EVERY_TOPIC,
    quota: MutationQuota = UNLIMITED,
) -> ControllerResult[list[CreatableTopicResult]]:
    """Delete topics by name and by id; the response is a list of CreatableTopicResult.

    A refused id has an empty name in the response. A topic that is named twice, or by name and by id, is not deleted.
    ``access`` has the topics of the request. The response does not tell whether a topic exists that the client may not
    describe, nor its name.
    """
    known, deleting = context.metadata.topics, list[UUID]()
    results = [*_duplicate_topics(names).values()]
    for topic_id, times in Counter(topic_ids).items():
        if times > 1:
            results.append(
                CreatableTopicResult("", ErrorCode.INVALID_REQUEST, "Duplicate topic id.", topic_id=topic_id)
            )
        elif topic_id not in known.index_by_id:
            message = "This server does not host this topic ID."
            results.append(CreatableTopicResult("", ErrorCode.UNKNOWN_TOPIC_ID, message, topic_id=topic_id))
        elif not access.allows(name := known.names[known.index_by_id[topic_id]]):
            results.append(_unauthorized(name if access.shows(name) else "", topic_id))
        else:
            deleting.append(topic_id)
    for name, times in Counter(names).items():
        index = known.index_by_name.get(name)
        if times > 1:
            continue
        if not access.shows(name) or (index is not None and not access.allows(name)):
            results.append(_unauthorized(name))
        elif index is None:
            message = "This server does not host this topic-partition."
            results.append(CreatableTopicResult(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message))
        elif known.ids[index] in topic_ids:
            message = "The provided topic name maps to an ID that was already supplied."
            deleting = [topic_id for topic_id in deleting if topic_id != known.ids[index]]
            results.append(CreatableTopicResult(name, ErrorCode.INVALID_REQUEST, message, topic_id=known.ids[index]))
        else:
            deleting.append(known.ids[index])
    result = topic_requests.delete_topics(context, deleting, quota=quota)
    return replace(result, response=[*result.response, *results])


def alter_configs(
    context: KraftContext,
    changes: Sequence[KraftConfigChange],
    *,
    validate_only: bool = False,
    forwarded: bool = True,
    refusals: Mapping[Resource, ConfigResult] = MappingProxyType({}),
) -> ControllerResult[list[ConfigResult]]:
    """Change configurations; the response is a list of ConfigResult, one for each resource. See
    ``configs.alter_configs``.

    A resource that occurs twice is refused. ``refusals`` are the results of resources that the client may not alter.
    Raises RequestRefused for too many records.
    """
    times = Counter(change.resource for change in changes)
    duplicates = {
        resource: ConfigResult(resource, ErrorCode.INVALID_REQUEST, "Duplicate resource.")
        for resource, count in times.items()
        if count > 1
    }
    unknown = {
        resource: ConfigResult(resource, ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource type {resource[0]}.")
        for resource in times
        if resource[0] not in _RESOURCE_TYPES
    }
    refused = {**refusals, **unknown, **duplicates}
    valid = [change for change in changes if change.resource not in refused]
    result = configs.alter_configs(context, valid, forwarded=forwarded)
    response = [*result.response, *refused.values()]
    return ControllerResult((), response) if validate_only else replace(result, response=response)


def _unauthorized(name: str, topic_id: UUID | None = None) -> CreatableTopicResult:
    """The response for a topic that the client may not delete."""
    error, message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
    return CreatableTopicResult(name, error, message, topic_id=topic_id)


def _with_configs(
    context: KraftContext, result: CreatableTopicResult, values: Mapping[str, str | None]
) -> CreatableTopicResult:
    """The result with the settings of a topic, if it is created."""
    if result.error is not ErrorCode.NONE:
        return result
    own = {name: value for name, value in values.items() if value is not None}
    return replace(result, configs=tuple(effective_topic_configs(context, own)))


def _duplicate_topics(names: Iterable[str]) -> dict[str, CreatableTopicResult]:
    """The responses for the names that occur more than once."""
    return {
        name: CreatableTopicResult(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        for name, times in Counter(names).items()
        if times > 1
    }
