"""Requests about the cluster as a whole: DescribeCluster and UpdateFeatures.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from typing import Final

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import KRAFT_VERSION, ControllerResult
from kframe.plugin.kraft_controller import KraftContext, RequestRefused, feature_updates
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.apis.quorum_apis import NodeFacts
from kframe_kraft.controller import Event

_BROKERS, _CONTROLLERS = 1, 2
_FAILED_TOGETHER: Final = "The update failed for all features since the following feature had an error"
_NOT_REQUESTED: Final = -(2**31)
#: By the number in a request (Kafka ``FeatureUpdate.UpgradeType``).
_DIRECTIONS: Final = dict(enumerate(feature_updates.UpgradeType, 1))


class ClusterApis:
    """Answers for the active controller, which is ``node_id``. ``kraft_version`` is the level of its quorum."""

    def __init__(
        self,
        controller: ActiveController,
        node_id: int,
        node: NodeFacts,
        kraft_version: int,
        register: Event[None],
        authorizer: OperationAuthorizer,
    ) -> None:
        """``register`` registers this controller, if the level allows it and it has not. Clients may do what
        ``authorizer`` allows."""
        self._authorizer = authorizer
        self._controller = controller
        self._register = register
        self._node_id = node_id
        self._node = node
        self._kraft_version = kraft_version

    async def describe_cluster(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DescribeCluster, for clients of controllers (KIP-919): the registered controllers, and the leader."""
        kind = body.get("endpoint_type", _BROKERS)
        if kind != _CONTROLLERS:
            error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if kind == _BROKERS else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
            error = error if header.api_version else ErrorCode.INVALID_REQUEST
            message = f"this listener serves clients of controllers (endpoint type {_CONTROLLERS}), not type {kind}"
            raise RequestRefused(error, message)
        others = await self._controller.ask(self._other_controllers)
        operations = _NOT_REQUESTED
        if body["include_cluster_authorized_operations"]:
            access = Access(self._authorizer, session)
            is_shown = access.is_authorized(AclOperation.DESCRIBE, log_denied=False)
            operations = access.operations(AclResourceType.CLUSTER, CLUSTER) if is_shown else 0
        return {
            "throttle_time": 0,
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "endpoint_type": kind,
            "cluster_id": self._node.cluster_id,
            "controller_id": self._node_id,
            "brokers": [_controller(self._node_id, *self._node.endpoint()), *others],
            "cluster_authorized_operations": operations,
        }

    def _other_controllers(self, context: KraftContext) -> ControllerResult[list[Fields]]:
        registered = context.metadata.controllers.items()
        return ControllerResult(
            (),
            [
                _controller(controller_id, each.end_points[0].host, each.end_points[0].port)
                for controller_id, each in registered
                if controller_id != self._node_id and each.end_points
            ],
        )

    async def update_features(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """UpdateFeatures, all or none. The level of ``kraft.version`` cannot change.

        From version 2 on, which Kafka has since 4.0, the response names no features.
        """
        updates = {each["feature"]: (each["max_version_level"], _direction(each)) for each in body["feature_updates"]}
        if updates.get(KRAFT_VERSION, (self._kraft_version,))[0] != self._kraft_version:
            message = f"kframe does not change {KRAFT_VERSION}, which is {self._kraft_version}"
            raise RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, message)
        validate_only = body.get("validate_only", False)
        try:
            refused = await self._controller.ask(
                lambda context: feature_updates.update_features(
                    context, updates, validate_only=validate_only, kraft_version=self._kraft_version
                )
            )
        except RequestRefused as refusal:
            raise RequestRefused(refusal.error, f"{_FAILED_TOGETHER}: {refusal.message}") from refusal
        self._controller.submit(self._register)
        results = [
            {
                "feature": name,
                "error_code": ErrorCode.INVALID_UPDATE_VERSION if name in refused else ErrorCode.NONE,
                "error_message": refused.get(name),
            }
            for name in updates
        ]
        return {"throttle_time": 0, "error_code": ErrorCode.NONE, "error_message": None, "results": results}


def _controller(controller_id: int, host: str, port: int) -> Fields:
    return {"broker_id": controller_id, "host": host, "port": port, "rack": None, "is_fenced": False}


def _direction(update: Fields) -> feature_updates.UpgradeType:
    """The direction of an update. Version 0 only says whether the level may go down."""
    if "upgrade_type" not in update:
        downgrade, upgrade = feature_updates.UpgradeType.SAFE_DOWNGRADE, feature_updates.UpgradeType.UPGRADE
        return downgrade if update["allow_downgrade"] else upgrade
    direction = _DIRECTIONS.get(update["upgrade_type"])
    if direction is None:
        message = f"{update['feature']}: found upgrade type {update['upgrade_type']}, expected 1, 2 or 3"
        raise RequestRefused(ErrorCode.INVALID_UPDATE_VERSION, message)
    return direction
