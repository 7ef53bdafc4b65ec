"""AlterUserScramCredentials (KIP-554).

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin.kraft_controller import scram
from kframe_kraft.apis.active import ActiveController


class UserApis:
    """Answers for the active controller."""

    def __init__(self, controller: ActiveController) -> None:
        self._controller = controller

    async def alter_credentials(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """AlterUserScramCredentials. The changes of a user are done together, or not."""
        deletions = [scram.ScramDeletion(each["name"], each["mechanism"]) for each in body["deletions"]]
        upsertions = [
            scram.ScramUpsertion(
                each["name"], each["mechanism"], each["iterations"], each["salt"], each["salted_password"]
            )
            for each in body["upsertions"]
        ]
        results = await self._controller.ask(lambda context: scram.alter_credentials(context, deletions, upsertions))
        users = [
            {"user": result.user, "error_code": result.error, "error_message": result.message} for result in results
        ]
        return {"throttle_time": 0, "results": users}
