"""Requests of administrators for topics: CreateTopics, DeleteTopics and CreatePartitions.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias
from uuid import UUID, uuid4

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin.kraft import ControllerResult, directory_ids
from kframe.plugin.kraft_controller import (
    KraftContext,
    controller_apis,
    mutation_quotas,
    topic_requests,
)
from kframe.plugin.server import MutationQuota
from kframe_kraft.apis.active import ActiveController

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
    """Answers for the active controller."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

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
        with_configs = header.api_version >= _WITH_CONFIGS
        results, throttle_ms = await self._decide(
            lambda context, quota: controller_apis.create_topics(
                context, topics, new_topic_id, validate_only=validate_only, with_configs=with_configs, quota=quota
            ),
            header,
            session,
            _STRICT_CREATE,
        )
        return {"throttle_time": throttle_ms, "topics": _created(results)}

    async def delete_topics(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DeleteTopics, by name and by id."""
        if header.api_version < _BY_ID:
            names, ids = list(body["topic_names"]), []
        else:
            names = [topic["name"] for topic in body["topics"] if topic["name"] is not None]
            ids = [UUID(bytes=topic["topic_id"]) for topic in body["topics"] if topic["name"] is None]
        results, throttle_ms = await self._decide(
            lambda context, quota: controller_apis.delete_topics(context, names, ids, quota=quota),
            header,
            session,
            _STRICT_DELETE,
        )
        return {"throttle_time": throttle_ms, "responses": _results(results)}

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
        results, throttle_ms = await self._decide(
            lambda context, quota: controller_apis.create_partitions(
                context, topics, validate_only=validate_only, quota=quota
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


def new_topic_id(_name: str) -> UUID:
    """A random id, none of Kafka's reserved ones."""
    while directory_ids.is_reserved(topic_id := uuid4()):
        pass
    return topic_id


def _results(results: Iterable[topic_requests.CreatableTopicResult]) -> list[Fields]:
    return [
        {
            "name": result.topic or None,
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
