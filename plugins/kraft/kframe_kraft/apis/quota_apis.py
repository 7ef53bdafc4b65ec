"""The request of administrators for client quotas: AlterClientQuotas.

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections import Counter

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin.kraft_controller import client_quotas
from kframe_kraft.apis.active import ActiveController


class QuotaApis:
    """Answers for the active controller."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

    async def alter_client_quotas(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AlterClientQuotas."""
        changes = [_change(entry) for entry in body["entries"]]
        validate_only = body["validate_only"]
        results = await self._controller.ask(
            lambda context: client_quotas.alter_client_quotas(context, changes, validate_only=validate_only)
        )
        entries = [
            {
                "error_code": result.error,
                "error_message": result.message,
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in result.entity],
            }
            for result in results
        ]
        return {"throttle_time": 0, "entries": entries}


def _change(entry: Fields) -> client_quotas.QuotaChange:
    times = Counter(operation["key"] for operation in entry["ops"])
    return client_quotas.QuotaChange(
        tuple((part["entity_type"], part["entity_name"]) for part in entry["entity"]),
        {operation["key"]: None if operation["remove"] else operation["value"] for operation in entry["ops"]},
        next((key for key, count in times.items() if count > 1), None),
    )
