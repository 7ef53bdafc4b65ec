"""Requests of administrators for configurations: IncrementalAlterConfigs and AlterConfigs.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft_controller import RequestRefused, ResourceType, configs, controller_apis
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType
from kframe_kraft.apis.active import ActiveController

#: By the number in a request (Kafka ``AlterConfigOp.OpType``).
_OPERATIONS: Final = dict(enumerate(configs.KraftConfigOperation))


_OF_CLUSTER: Final = AclResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
#: The resource of ACLs, and the refusal, by type of the resource with configurations.
_ACL_RESOURCES: Final[Mapping[int, tuple[AclResourceType, ErrorCode, str]]] = {
    ResourceType.TOPIC: (
        AclResourceType.TOPIC,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "Topic authorization failed.",
    ),
    ResourceType.BROKER: _OF_CLUSTER,
    ResourceType.CLIENT_METRICS: _OF_CLUSTER,
    ResourceType.GROUP: (
        AclResourceType.GROUP,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "Group authorization failed.",
    ),
}


class ConfigApis:
    """Answers for the active controller. Clients may do what ``authorizer`` allows."""

    def __init__(self, controller: ActiveController, authorizer: OperationAuthorizer) -> None:
        self._controller = controller
        self._authorizer = authorizer

    async def incremental_alter_configs(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """IncrementalAlterConfigs."""
        changes = [
            configs.KraftConfigChange(
                (each["resource_type"], each["resource_name"]),
                {entry["name"]: (_operation(entry["config_operation"]), entry["value"]) for entry in each["configs"]},
            )
            for each in body["resources"]
        ]
        return await self._alter(changes, session, validate_only=body["validate_only"])

    async def alter_configs(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AlterConfigs, which deletes what it does not name."""
        changes = [
            configs.KraftConfigChange(
                (each["resource_type"], each["resource_name"]),
                {entry["name"]: (configs.KraftConfigOperation.SET, entry["value"]) for entry in each["configs"]},
                replaces_all=True,
            )
            for each in body["resources"]
        ]
        return await self._alter(changes, session, validate_only=body["validate_only"])

    async def _alter(
        self, changes: list[configs.KraftConfigChange], session: ClientSession, *, validate_only: bool
    ) -> Fields:
        access = Access(self._authorizer, session)
        refusals = {
            change.resource: refusal for change in changes if (refusal := _refusal(access, change.resource)) is not None
        }
        results = await self._controller.ask(
            lambda context: controller_apis.alter_configs(
                context, changes, validate_only=validate_only, refusals=refusals
            )
        )
        responses = [
            {
                "error_code": result.error,
                "error_message": result.message,
                "resource_type": result.resource[0],
                "resource_name": result.resource[1],
            }
            for result in results
        ]
        return {"throttle_time": 0, "responses": responses}


def _refusal(access: Access, resource: tuple[int, str]) -> configs.ConfigResult | None:
    """The result of a resource that the client may not alter; None for others (Kafka ``authorizeAlterResource``)."""
    kind, name = resource
    if kind not in _ACL_RESOURCES:
        return configs.ConfigResult(resource, ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind}.")
    acl_kind, error, message = _ACL_RESOURCES[kind]
    acl_name = CLUSTER if acl_kind is AclResourceType.CLUSTER else name
    if access.is_authorized(AclOperation.ALTER_CONFIGS, acl_kind, acl_name):
        return None
    return configs.ConfigResult(resource, error, message)


def _operation(number: int) -> configs.KraftConfigOperation:
    operation = _OPERATIONS.get(number)
    if operation is None:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown operation type {number}")
    return operation
