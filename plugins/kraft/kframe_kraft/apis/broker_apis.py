"""Requests of brokers and controllers: registrations, heartbeats, ISRs, directories and producer ids.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final
from uuid import UUID

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import (
    broker_events,
    directory_assignments,
    isr_proposals,
    producer_ids,
    registration,
)
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.controller import WritableLog

#: The first version of BrokerRegistration by which a broker says which process it was before.
_PREVIOUS_EPOCH: Final = 3
_DONE: Final = {"throttle_time": 0, "error_code": ErrorCode.NONE}


class BrokerApis:
    """Answers for the active controller, which writes ``log``."""

    def __init__(self, controller: ActiveController, log: WritableLog, kraft_version: int) -> None:
        self._controller = controller
        self._log = log
        self._kraft_version = kraft_version

    async def register(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """BrokerRegistration. The broker epoch is the offset of its first record."""
        request = registration.BrokerRegistrationRequest(
            body["broker_id"],
            body["cluster_id"],
            UUID(bytes=body["incarnation_id"]),
            tuple(records.BrokerEndpoint(**_listener(each)) for each in body["listeners"]),
            tuple(records.BrokerFeature(**_feature(each)) for each in body["features"]),
            body["rack"],
            tuple(UUID(bytes=each) for each in body.get("log_dirs", ())),
            body.get("previous_broker_epoch", -1),
            body.get("is_migrating_zk_broker", False),
            header.api_version >= _PREVIOUS_EPOCH,
        )
        epoch = await self._controller.ask(
            lambda context: registration.register_broker(context, request, self._log.end, self._kraft_version)
        )
        return {**_DONE, "broker_epoch": epoch}

    async def heartbeat(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """BrokerHeartbeat. One that changes nothing is answered beside the queue of events."""
        cordoned = body.get("cordoned_log_dirs")
        heartbeat = broker_events.BrokerHeartbeat(
            body["broker_id"],
            body["broker_epoch"],
            body["current_metadata_offset"],
            body["want_fence"],
            body["want_shut_down"],
            tuple(UUID(bytes=each) for each in body.get("offline_log_dirs", ())),
            None if cordoned is None else tuple(UUID(bytes=each) for each in cordoned),
        )
        reply = self._controller.heartbeat(heartbeat)
        if reply is None:
            reply = await self._controller.ask(
                lambda context: broker_events.handle_heartbeat(context, heartbeat, self._log.end)
            )
        return {
            **_DONE,
            "is_caught_up": reply.is_caught_up,
            "is_fenced": reply.is_fenced,
            "should_shut_down": reply.should_shut_down,
        }

    async def unregister(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """UnregisterBroker."""
        broker_id = body["broker_id"]
        await self._controller.ask(lambda context: registration.unregister_broker(context, broker_id))
        return {**_DONE, "error_message": None}

    async def register_controller(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """ControllerRegistration."""
        record = records.RegisterControllerRecord(
            controller_id=body["controller_id"],
            incarnation_id=UUID(bytes=body["incarnation_id"]),
            zk_migration_ready=body["zk_migration_ready"],
            end_points=tuple(records.ControllerEndpoint(**_listener(each)) for each in body["listeners"]),
            features=tuple(records.ControllerFeature(**_feature(each)) for each in body["features"]),
        )
        await self._controller.ask(lambda context: registration.register_controller(context, record))
        return {**_DONE, "error_message": None}

    async def unregister_controller(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """UnregisterController. The only voter is the active controller, which is refused."""
        controller_id = body["controller_id"]
        await self._controller.ask(lambda context: registration.unregister_controller(context, controller_id))
        return {**_DONE, "error_message": None}

    async def allocate_producer_ids(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AllocateProducerIds."""
        broker = body["broker_id"], body["broker_epoch"]
        block = await self._controller.ask(lambda context: producer_ids.allocate_producer_ids(context, *broker))
        return {
            **_DONE,
            "producer_id_start": block.start,
            "producer_id_len": block.length,
        }

    async def alter_partition(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AlterPartition."""
        broker = body["broker_id"], body["broker_epoch"]
        proposals = [
            isr_proposals.KraftIsrProposal(
                UUID(bytes=topic["topic_id"]),
                partition["partition_index"],
                _proposed_isr(partition),
                partition["leader_epoch"],
                partition["partition_epoch"],
                partition["leader_recovery_state"],
            )
            for topic in body["topics"]
            for partition in topic["partitions"]
        ]
        results = await self._controller.ask(
            lambda context: isr_proposals.alter_partitions(context, *broker, proposals)
        )
        return {**_DONE, "topics": _isr_topics(results)}

    async def assign_directories(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AssignReplicasToDirs."""
        broker = body["broker_id"], body["broker_epoch"]
        assignments = [
            directory_assignments.DirectoryAssignment(
                UUID(bytes=directory["id_"]), UUID(bytes=topic["topic_id"]), partition["partition_index"]
            )
            for directory in body["directories"]
            for topic in directory["topics"]
            for partition in topic["partitions"]
        ]
        results = await self._controller.ask(
            lambda context: directory_assignments.assign_directories(context, *broker, assignments)
        )
        return {**_DONE, "directories": _directories(results)}


def _listener(fields: Fields) -> Fields:
    return {name: fields[name] for name in ("name", "host", "port", "security_protocol")}


def _feature(fields: Fields) -> Fields:
    return {name: fields[name] for name in ("name", "min_supported_version", "max_supported_version")}


def _proposed_isr(partition: Fields) -> tuple[tuple[int, int], ...]:
    if "new_isr" in partition:
        return tuple((broker_id, isr_proposals.UNKNOWN_EPOCH) for broker_id in partition["new_isr"])
    return tuple((member["broker_id"], member["broker_epoch"]) for member in partition["new_isr_with_epochs"])


def _isr_topics(results: Iterable[isr_proposals.IsrResult]) -> list[Fields]:
    return [
        {
            "topic_id": topic_id.bytes,
            "partitions": [
                {
                    "partition_index": result.partition,
                    "error_code": result.error,
                    "leader_id": result.leader,
                    "leader_epoch": result.leader_epoch,
                    "isr": result.isr,
                    "leader_recovery_state": result.recovery,
                    "partition_epoch": result.partition_epoch,
                }
                for result in of_topic
            ],
        }
        for topic_id, of_topic in groupby(results, key=lambda result: result.topic_id)
    ]


def _directories(results: Iterable[directory_assignments.DirectoryAssignmentResult]) -> list[Fields]:
    return [
        {
            "id_": directory.bytes,
            "topics": [
                {
                    "topic_id": topic_id.bytes,
                    "partitions": [
                        {"partition_index": result.assignment.partition, "error_code": result.error}
                        for result in of_topic
                    ],
                }
                for topic_id, of_topic in groupby(of_directory, key=lambda result: result.assignment.topic_id)
            ],
        }
        for directory, of_directory in groupby(results, key=lambda result: result.assignment.directory)
    ]
