"""Requests of administrators for configurations: IncrementalAlterConfigs, AlterConfigs and DescribeConfigs.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import (
    BROKER_LOGGER,
    DescribedConfig,
    KraftContext,
    RequestRefused,
    configs,
    controller_apis,
    describe_configs,
)
from kframe_kraft.apis.active import ActiveController

#: By the number in a request (Kafka ``AlterConfigOp.OpType``).
_OPERATIONS: Final = dict(enumerate(configs.KraftConfigOperation))
#: The resources that have settings: topics, brokers and their loggers, client metrics, groups.
_DESCRIBED: Final = (2, 4, BROKER_LOGGER, 16, 32)
#: An error with its message, and the settings of a resource.
_Description: TypeAlias = tuple[ErrorCode, str | None, list[DescribedConfig]]


class ConfigApis:
    """Answers for the active controller."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

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
        described = await self._controller.ask(
            lambda context: ControllerResult((), [_described(context, resource) for resource in resources])
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
        forwarded = session.is_forwarded
        results = await self._controller.ask(
            lambda context: controller_apis.alter_configs(
                context, changes, validate_only=validate_only, forwarded=forwarded
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


def _described(context: KraftContext, resource: tuple[int, str]) -> _Description:
    try:
        return ErrorCode.NONE, None, describe_configs(context, resource)
    except RequestRefused as refusal:
        return refusal.error, refusal.message, []


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
