"""Requests of administrators for configurations: IncrementalAlterConfigs and AlterConfigs.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from typing import Final

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft_controller import RequestRefused, configs, controller_apis
from kframe_kraft.apis.active import ActiveController

#: By the number in a request (Kafka ``AlterConfigOp.OpType``).
_OPERATIONS: Final = dict(enumerate(configs.KraftConfigOperation))


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
        return await self._alter(changes, validate_only=body["validate_only"])

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
        return await self._alter(changes, validate_only=body["validate_only"])

    async def _alter(self, changes: list[configs.KraftConfigChange], *, validate_only: bool) -> Fields:
        results = await self._controller.ask(
            lambda context: controller_apis.alter_configs(context, changes, validate_only=validate_only)
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


def _operation(number: int) -> configs.KraftConfigOperation:
    operation = _OPERATIONS.get(number)
    if operation is None:
        raise RequestRefused(ErrorCode.INVALID_REQUEST, f"Unknown operation type {number}")
    return operation
