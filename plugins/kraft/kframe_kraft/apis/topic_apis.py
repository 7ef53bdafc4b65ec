"""Requests of administrators for topics: CreateTopics, DeleteTopics and CreatePartitions.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import (
    KraftContext,
    controller_apis,
    mutation_quotas,
    topic_requests,
)
from kframe.plugin.server import AclOperation, MutationQuota
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.apis.topic_access import deletion_access, forbidden_topics, hidden_configs, without_configs
from kframe_kraft.uuids import random_uuid

_random: Final = random.SystemRandom()
#: The first version of DeleteTopics that names topics also by id.
_BY_ID: Final = 6
#: The first version of CreateTopics whose response has the settings of new topics.
_WITH_CONFIGS: Final = 5
#: The first version of each API that refuses what exceeds a quota (KIP-599). Earlier ones only delay the client.
_STRICT_CREATE, _STRICT_DELETE, _STRICT_GROW = 6, 5, 3
#: A request for topics, decided within a quota.
_Decide: TypeAlias = Callable[
    [KraftContext, MutationQuota], ControllerResult[list[topic_requests.CreatableTopicResult]]
]


class TopicApis:
    """Answers for the active controller. Clients may do what ``authorizer`` allows."""

    def __init__(self, controller: ActiveController, authorizer: OperationAuthorizer) -> None:
        self._controller = controller
        self._authorizer = authorizer

    async def create_topics(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """CreateTopics."""
        topics = [
            topic_requests.CreatableTopic(
                topic["name"],
                topic["num_partitions"],
                topic["replication_factor"],
                tuple((each["partition_index"], tuple(each["broker_ids"])) for each in topic["assignments"]),
                {each["name"]: each["value"] for each in topic["configs"]},
            )
            for topic in body["topics"]
        ]
        validate_only = body.get("validate_only", False)
        access, with_configs = Access(self._authorizer, session), header.api_version >= _WITH_CONFIGS
        unauthorized = forbidden_topics(access, AclOperation.CREATE, [topic.name for topic in topics])
        hidden = hidden_configs(access, [topic.name for topic in topics])
        results, throttle_ms = await self._decide(
            lambda context, quota: controller_apis.create_topics(
                context,
                topics,
                lambda _name: random_uuid(),
                validate_only=validate_only,
                with_configs=with_configs,
                unauthorized=unauthorized,
                quota=quota,
            ),
            header,
            session,
            _STRICT_CREATE,
        )
        return {"throttle_time": throttle_ms, "topics": without_configs(_created(results), hidden)}

    async def delete_topics(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DeleteTopics, by name and by id."""
        if header.api_version < _BY_ID:
            names, ids = list(body["topic_names"]), []
        else:
            names = [topic["name"] for topic in body["topics"] if topic["name"] is not None]
            ids = [UUID(bytes=topic["topic_id"]) for topic in body["topics"] if topic["name"] is None]
        access = await self._deletion_access(Access(self._authorizer, session), names, ids)
        results, throttle_ms = await self._decide(
            lambda context, quota: controller_apis.delete_topics(context, names, ids, access=access, quota=quota),
            header,
            session,
            _STRICT_DELETE,
        )
        responses = _results(results)
        _random.shuffle(responses)  # Positions must not tell which topics exist.
        return {"throttle_time": throttle_ms, "responses": responses}

    async def _deletion_access(
        self, access: Access, names: Sequence[str], ids: Collection[UUID]
    ) -> controller_apis.TopicAccess:
        """What the client may do with these topics. Names of ids need the metadata."""
        if access.is_authorized(AclOperation.DELETE, log_denied=False):
            return controller_apis.EVERY_TOPIC
        of_ids = await self._controller.ask(lambda context: ControllerResult((), _names_of(context, ids)))
        return deletion_access(access, [*names, *of_ids])

    async def create_partitions(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """CreatePartitions."""
        topics = [
            topic_requests.CreatePartitionsTopic(
                topic["name"],
                topic["count"],
                None
                if topic["assignments"] is None
                else tuple(tuple(each["broker_ids"]) for each in topic["assignments"]),
            )
            for topic in body["topics"]
        ]
        validate_only = body["validate_only"]
        access = Access(self._authorizer, session)
        unauthorized = forbidden_topics(access, AclOperation.ALTER, [topic.topic for topic in topics])
        results, throttle_ms = await self._decide(
            lambda context, quota: controller_apis.create_partitions(
                context, topics, validate_only=validate_only, unauthorized=unauthorized, quota=quota
            ),
            header,
            session,
            _STRICT_GROW,
        )
        return {"throttle_time": throttle_ms, "results": _results(results)}

    async def _decide(
        self, decide: _Decide, header: Header, session: ClientSession, strict_since: int
    ) -> tuple[list[topic_requests.CreatableTopicResult], int]:
        """The results of a request within the quota of its client, and the throttle time."""
        user, client_id = session.principal.name, header.client_id or ""
        strict = header.api_version >= strict_since

        def event(context: KraftContext) -> ControllerResult[tuple[list[topic_requests.CreatableTopicResult], int]]:
            quota = mutation_quotas.quota_of(context, user, client_id, strict=strict)
            result = decide(context, quota)
            throttle_ms = mutation_quotas.throttle_ms(context, quota)
            return ControllerResult(result.parts, (result.response, throttle_ms), result.atomic)

        return await self._controller.ask(event)


def _names_of(context: KraftContext, topic_ids: Collection[UUID]) -> list[str]:
    """The names of the topics that exist."""
    topics = context.metadata.topics
    return [topics.names[topics.index_by_id[each]] for each in topic_ids if each in topics.index_by_id]


def _results(results: Iterable[topic_requests.CreatableTopicResult]) -> list[Fields]:
    return [
        {
            "name": result.topic if result.topic or result.topic_id is None else None,
            "topic_id": None if result.topic_id is None else result.topic_id.bytes,
            "error_code": result.error,
            "error_message": result.message,
        }
        for result in results
    ]


def _created(results: Sequence[topic_requests.CreatableTopicResult]) -> list[Fields]:
    """The results of CreateTopics. Kafka never reports a setting as read-only here."""
    return [
        {
            **fields,
            "num_partitions": result.partitions,
            "replication_factor": result.replication_factor,
            "configs": [
                {
                    "name": config.name,
                    "value": config.value,
                    "read_only": False,
                    "config_source": config.source,
                    "is_sensitive": False,
                }
                for config in result.configs
            ],
        }
        for result, fields in zip(results, _results(results), strict=True)
    ]
