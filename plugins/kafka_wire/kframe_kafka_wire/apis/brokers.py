"""Requests of brokers: controlled shutdown, producer ids, and requests that only a broker serves (sections 6 and 8)."""

from __future__ import annotations

from typing import Final

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import NO_BROKER_EPOCH
from kframe.plugin.server import AclOperation, AclResourceType, FeatureUpdate
from kframe_kafka_wire.apis.calls import Call, RequestError
from kframe_kafka_wire.protocol.codec import Fields

#: Types of feature updates (``UpgradeType``): safe downgrade and unsafe downgrade.
_DOWNGRADES: Final = (2, 3)


async def controlled_shutdown(call: Call) -> Fields:
    """The partitions with other replicas that the broker still leads. If there are none, it may shut down."""
    broker_epoch = call.body.get("broker_epoch", NO_BROKER_EPOCH)
    result = await call.context.wait(call.context.controller.controlled_shutdown(call.body["broker_id"], broker_epoch))
    remaining = [{"topic_name": topic, "partition_index": number} for topic, number in result.partitions]
    return {"error_code": result.error, "remaining_partitions": remaining}


async def allocate_producer_ids(call: Call) -> Fields:
    """A block of ids for a broker's producers."""
    broker_id, broker_epoch = call.body["broker_id"], call.body["broker_epoch"]
    if broker_id == call.context.node.broker_id:
        # The controller never requests producer ids from itself.
        return {"error_code": ErrorCode.BROKER_ID_NOT_REGISTERED}
    result = await call.context.wait(call.context.controller.allocate_producer_ids(broker_id, broker_epoch))
    return {"error_code": result.error, "producer_id_start": result.first, "producer_id_len": result.length}


async def init_producer_id(call: Call) -> Fields:
    """An id for an idempotent producer, from a block of the controller. Transactions need a coordinator."""
    if call.body["transactional_id"] is not None:
        raise RequestError(ErrorCode.NOT_COORDINATOR)
    if not call.is_authorized(AclOperation.IDEMPOTENT_WRITE) and not call.is_authorized_on_any(
        AclOperation.WRITE, AclResourceType.TOPIC
    ):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if call.body.get("producer_id", -1) >= 0 and call.body.get("producer_epoch", -1) < 0:
        raise RequestError(ErrorCode.INVALID_REQUEST)
    context = call.context
    async with context.producer_ids_lock:
        if not context.producer_ids:
            block = await context.wait(context.controller.allocate_producer_ids(context.node.broker_id))
            if block.error is not ErrorCode.NONE:
                raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # Producers retry this error on another node.
            context.producer_ids = range(block.first, block.first + block.length)
        producer_id, context.producer_ids = context.producer_ids[0], context.producer_ids[1:]
    return {"producer_id": producer_id, "producer_epoch": 0}


async def stale_controller(call: Call) -> Fields:
    """Refuse LeaderAndIsr, StopReplica and UpdateMetadata: the controller has no replicas and obeys no other
    controller."""
    return {"error_code": ErrorCode.STALE_CONTROLLER_EPOCH}


async def update_features(call: Call) -> Fields:
    """Brokers in ZooKeeper mode support no feature, so none can be finalized."""
    if not call.is_authorized(AclOperation.ALTER):
        return {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "error_message": "Cluster authorization failed."}
    updates = tuple(
        FeatureUpdate(
            update["feature"],
            update["max_version_level"],
            update.get("allow_downgrade", False) or update.get("upgrade_type") in _DOWNGRADES,
        )
        for update in call.body["feature_updates"]
    )
    result = await call.context.wait(call.context.controller.update_features(updates))
    results = [
        {"feature": name, "error_code": code, "error_message": _UNSUPPORTED if code else None}
        for name, code in result.codes.items()
    ]
    message = None if result.error is ErrorCode.NONE else result.error.name
    return {"error_code": result.error, "error_message": message, "results": results}


_UNSUPPORTED: Final = "Could not apply finalized feature update because the provided feature is not supported."
