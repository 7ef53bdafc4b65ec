"""Requests of administrators for partitions: elections and reassignments.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final, TypeVar

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import KraftElection, PartitionResult, RequestRefused, elections, reassignment
from kframe_kraft.apis.active import ActiveController

#: By the number in a request (Kafka ``ElectionType``). Before version 1 all elections are preferred ones.
_ELECTIONS: Final = {0: KraftElection.PREFERRED, 1: KraftElection.UNCLEAN}
_DONE: Final = {"throttle_time": 0, "error_code": ErrorCode.NONE, "error_message": None}


class PartitionApis:
    """Answers for the active controller."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

    async def elect_leaders(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """ElectLeaders."""
        number = body.get("election_type", 0)
        kind = _ELECTIONS.get(number)
        if kind is None:
            raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown election type {number}")
        requested = body["topic_partitions"]
        named = None
        if requested is not None:
            named = [(topic["topic"], partition) for topic in requested for partition in topic["partitions"]]
        results = await self._controller.ask(lambda context: elections.elect_leaders(context, kind, named))
        topics = [
            {
                "topic": topic,
                "partition_result": [
                    {"partition_id": each.partition, "error_code": each.error, "error_message": each.message}
                    for each in of_topic
                ],
            }
            for topic, of_topic in _by_topic(results)
        ]
        return {**_DONE, "replica_election_results": topics}

    async def alter_reassignments(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AlterPartitionReassignments."""
        requested = [
            reassignment.RequestedReassignment(
                topic["name"],
                partition["partition_index"],
                None if partition["replicas"] is None else tuple(partition["replicas"]),
            )
            for topic in body["topics"]
            for partition in topic["partitions"]
        ]
        allow_factor_change = body.get("allow_replication_factor_change", True)
        results = await self._controller.ask(
            lambda context: reassignment.reassign_partitions(
                context, requested, allow_factor_change=allow_factor_change
            )
        )
        responses = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": each.partition, "error_code": each.error, "error_message": each.message}
                    for each in of_topic
                ],
            }
            for topic, of_topic in _by_topic(results)
        ]
        return {**_DONE, "allow_replication_factor_change": allow_factor_change, "responses": responses}

    async def list_reassignments(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """ListPartitionReassignments."""
        requested = body["topics"]
        named = None if requested is None else [(each["name"], each["partition_indexes"]) for each in requested]
        ongoing = await self._controller.ask(
            lambda context: ControllerResult((), reassignment.list_reassignments(context, named))
        )
        topics = [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": each.partition,
                        "replicas": each.replicas,
                        "adding_replicas": each.adding,
                        "removing_replicas": each.removing,
                    }
                    for each in of_topic
                ],
            }
            for topic, of_topic in _by_topic(ongoing)
        ]
        return {**_DONE, "topics": topics}


OfPartition = TypeVar("OfPartition", PartitionResult, reassignment.OngoingReassignment)


def _by_topic(results: Iterable[OfPartition]) -> Iterable[tuple[str, Iterable[OfPartition]]]:
    return groupby(results, key=lambda each: each.topic)
