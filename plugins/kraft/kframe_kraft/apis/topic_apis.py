"""Requests of administrators for topics: CreateTopics, DeleteTopics and CreatePartitions.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from typing import Final
from uuid import UUID, uuid4

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin.kraft import ControllerResult, directory_ids
from kframe.plugin.kraft_controller import KraftContext, controller_apis, topic_requests
from kframe.plugin.server import AclOperation
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.apis.topic_access import deletion_access, forbidden_topics, hidden_configs, without_configs

_random: Final = random.SystemRandom()
#: The first version of DeleteTopics that names topics also by id.
_BY_ID: Final = 6


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
        access = Access(self._authorizer, session)
        unauthorized = forbidden_topics(access, AclOperation.CREATE, [topic.name for topic in topics])
        hidden = hidden_configs(access, [topic.name for topic in topics])
        results = await self._controller.ask(
            lambda context: controller_apis.create_topics(
                context, topics, new_topic_id, validate_only=validate_only, unauthorized=unauthorized
            )
        )
        return {"throttle_time": 0, "topics": without_configs(_results(results, configs=[]), hidden)}

    async def delete_topics(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DeleteTopics, by name and by id."""
        if header.api_version < _BY_ID:
            names, ids = list(body["topic_names"]), []
        else:
            names = [topic["name"] for topic in body["topics"] if topic["name"] is not None]
            ids = [UUID(bytes=topic["topic_id"]) for topic in body["topics"] if topic["name"] is None]
        access = await self._deletion_access(Access(self._authorizer, session), names, ids)
        results = await self._controller.ask(
            lambda context: controller_apis.delete_topics(context, names, ids, access=access)
        )
        responses = _results(results)
        _random.shuffle(responses)  # Positions must not tell which topics exist.
        return {"throttle_time": 0, "responses": responses}

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
        access = Access(self._authorizer, session)
        unauthorized = forbidden_topics(access, AclOperation.ALTER, [topic.topic for topic in topics])
        results = await self._controller.ask(
            lambda context: controller_apis.create_partitions(context, topics, unauthorized=unauthorized)
        )
        return {"throttle_time": 0, "results": _results(results)}


def new_topic_id(_name: str) -> UUID:
    """A random id, none of Kafka's reserved ones."""
    while directory_ids.is_reserved(topic_id := uuid4()):
        pass
    return topic_id


def _names_of(context: KraftContext, topic_ids: Collection[UUID]) -> list[str]:
    """The names of the topics that exist."""
    topics = context.metadata.topics
    return [topics.names[topics.index_by_id[each]] for each in topic_ids if each in topics.index_by_id]


def _results(results: Iterable[topic_requests.CreatableTopicResult], **fields: object) -> list[Fields]:
    return [
        {
            "name": result.topic or None,
            "topic_id": None if result.topic_id is None else result.topic_id.bytes,
            "error_code": result.error,
            "error_message": result.message,
            **fields,
        }
        for result in results
    ]
