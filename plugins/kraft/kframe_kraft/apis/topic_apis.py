"""Requests of administrators for topics: CreateTopics, DeleteTopics and CreatePartitions.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID, uuid4

from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin.kraft import directory_ids
from kframe.plugin.kraft_controller import controller_apis, topic_requests
from kframe_kraft.apis.active import ActiveController

#: The first version of DeleteTopics that names topics also by id.
_BY_ID: Final = 6


class TopicApis:
    """Answers for the active controller."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

    async def create_topics(self, header: Header, body: Fields) -> Fields:
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
        results = await self._controller.ask(
            lambda context: controller_apis.create_topics(context, topics, new_topic_id, validate_only=validate_only)
        )
        return {"throttle_time": 0, "topics": _results(results, configs=[])}

    async def delete_topics(self, header: Header, body: Fields) -> Fields:
        """DeleteTopics, by name and by id."""
        if header.api_version < _BY_ID:
            names, ids = list(body["topic_names"]), []
        else:
            names = [topic["name"] for topic in body["topics"] if topic["name"] is not None]
            ids = [UUID(bytes=topic["topic_id"]) for topic in body["topics"] if topic["name"] is None]
        results = await self._controller.ask(lambda context: controller_apis.delete_topics(context, names, ids))
        return {"throttle_time": 0, "responses": _results(results)}

    async def create_partitions(self, header: Header, body: Fields) -> Fields:
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
        results = await self._controller.ask(lambda context: controller_apis.create_partitions(context, topics))
        return {"throttle_time": 0, "results": _results(results)}


def new_topic_id(_name: str) -> UUID:
    """A random id, none of Kafka's reserved ones."""
    while directory_ids.is_reserved(topic_id := uuid4()):
        pass
    return topic_id


def _results(results: Iterable[topic_requests.CreatableTopicResult], **fields: object) -> list[Fields]:
    return [
        {
            "name": result.topic if result.topic or result.topic_id is None else None,
            "topic_id": None if result.topic_id is None else result.topic_id.bytes,
            "error_code": result.error,
            "error_message": result.message,
            **fields,
        }
        for result in results
    ]
