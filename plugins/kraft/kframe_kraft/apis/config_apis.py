"""Requests of administrators for configurations: IncrementalAlterConfigs, AlterConfigs and DescribeConfigs.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import (
    BROKER_LOGGER,
    DescribedConfig,
    KraftContext,
    RequestRefused,
    ResourceType,
    configs,
    controller_apis,
    describe_configs,
)
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType
from kframe_kraft.apis.active import ActiveController

#: By the number in a request (Kafka ``AlterConfigOp.OpType``).
_OPERATIONS: Final = dict(enumerate(configs.KraftConfigOperation))
#: The resources that have settings: topics, brokers and their loggers, client metrics, groups.
_DESCRIBED: Final = (2, 4, BROKER_LOGGER, 16, 32)
#: An error with its message, and the settings of a resource.
_Description: TypeAlias = tuple[ErrorCode, str | None, list[DescribedConfig]]


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
    BROKER_LOGGER: _OF_CLUSTER,
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

    async def describe_configs(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DescribeConfigs, without documentation."""
        resources = [(each["resource_type"], each["resource_name"]) for each in body["resources"]]
        for kind, name in resources:
            if kind not in _DESCRIBED:
                message = f"Unexpected resource type {kind} for resource {name}"
                raise RequestRefused(ErrorCode.INVALID_REQUEST, message)
        access = Access(self._authorizer, session)
        refusals = {each: _refusal(access, AclOperation.DESCRIBE_CONFIGS, each) for each in resources}
        described = await self._controller.ask(
            lambda context: ControllerResult(
                (), [_described(context, resource, refusals[resource]) for resource in resources]
            )
        )
        results = [
            {
                "error_code": error,
                "error_message": message,
                "resource_type": resource["resource_type"],
                "resource_name": resource["resource_name"],
                "configs": [
                    _entry(config, with_synonyms=body["include_synonyms"])
                    for config in settings
                    if not resource["configuration_keys"] or config.name in resource["configuration_keys"]
                ],
            }
            for resource, (error, message, settings) in zip(body["resources"], described, strict=True)
        ]
        return {"throttle_time": 0, "results": results}

    async def _alter(
        self, changes: list[configs.KraftConfigChange], session: ClientSession, *, validate_only: bool
    ) -> Fields:
        access, forwarded = Access(self._authorizer, session), session.is_forwarded
        refusals = {
            change.resource: refusal
            for change in changes
            if (refusal := _refusal(access, _operation_to_alter(change.resource), change.resource)) is not None
        }
        results = await self._controller.ask(
            lambda context: controller_apis.alter_configs(
                context, changes, validate_only=validate_only, forwarded=forwarded, refusals=refusals
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


def _operation_to_alter(resource: tuple[int, str]) -> AclOperation:
    return AclOperation.CLUSTER_ACTION if resource[0] == BROKER_LOGGER else AclOperation.ALTER_CONFIGS


def _refusal(access: Access, operation: AclOperation, resource: tuple[int, str]) -> configs.ConfigResult | None:
    """The result of a resource that the client may not use; None for others, and for those of unknown types.

    Kafka 4.4 ``ControllerApis.authorizeAlterResource`` and ``ConfigHelper``.
    """
    kind, name = resource
    if kind not in _ACL_RESOURCES:
        return None
    acl_kind, error, message = _ACL_RESOURCES[kind]
    acl_name = CLUSTER if acl_kind is AclResourceType.CLUSTER else name
    return (
        None if access.is_authorized(operation, acl_kind, acl_name) else configs.ConfigResult(resource, error, message)
    )


def _described(context: KraftContext, resource: tuple[int, str], refusal: configs.ConfigResult | None) -> _Description:
    if refusal is not None:
        return refusal.error, refusal.message, []
    try:
        return ErrorCode.NONE, None, describe_configs(context, resource)
    except RequestRefused as problem:
        return problem.error, problem.message, []


def _entry(config: DescribedConfig, *, with_synonyms: bool) -> Fields:
    synonyms = [{"name": each.name, "value": each.value, "source": each.source} for each in config.synonyms]
    return {
        "name": config.name,
        "value": config.value,
        "read_only": config.is_read_only,
        "config_source": config.source,
        "is_sensitive": config.is_sensitive,
        "synonyms": synonyms if with_synonyms else (),
        "config_type": config.type,
        "documentation": None,
    }


def _operation(number: int) -> configs.KraftConfigOperation:
    operation = _OPERATIONS.get(number)
    if operation is None:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown operation type {number}")
    return operation
