"""DescribeAcls, CreateAcls and DeleteAcls (Kafka 4.4 ``AclApis``).

Handlers raise RequestRefused and NotController.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.apis.acls import acl_filter_of
from kframe_kafka_wire.protocol.codec import Fields, Header

from kframe.plugin import ErrorCode
from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import RequestRefused, acls
from kframe_kraft.apis.active import ActiveController
from kframe_kraft.uuids import random_uuid

_PATTERN: Final = "resource_type", "resource_name", "pattern_type"


class AclApis:
    """Answers for the active controller. Without an authorizer there are no ACLs."""

    def __init__(self, controller: ActiveController, *, has_authorizer: bool) -> None:
        self._controller = controller
        self._has_authorizer = has_authorizer

    async def describe_acls(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DescribeAcls."""
        self._require_authorizer("No Authorizer is configured on the broker")
        acl_filter = acl_filter_of(body)
        problem = acls.filter_problem(acl_filter)
        if problem is not None:
            raise RequestRefused(ErrorCode.INVALID_REQUEST, problem)
        selected = await self._controller.ask(
            lambda context: ControllerResult((), acls.describe_acls(context, acl_filter))
        )
        return {"throttle_time": 0, "error_code": ErrorCode.NONE, "resources": _resources(selected)}

    async def create_acls(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """CreateAcls. Each ACL is created or refused alone."""
        self._require_authorizer(acls.NO_AUTHORIZER)
        entries = [
            acls.AclEntry(
                each["resource_type"],
                each["resource_name"],
                each["resource_pattern_type"],
                each["principal"],
                each["host"],
                each["operation"],
                each["permission_type"],
            )
            for each in body["creations"]
        ]
        results = await self._controller.ask(lambda context: acls.create_acls(context, entries, random_uuid))
        # As in Kafka, the message of a created ACL is empty, not null.
        return {
            "throttle_time": 0,
            "results": [{**_error(each), "error_message": each.message or ""} for each in results],
        }

    async def delete_acls(self, header: Header, body: Fields, session: ClientSession) -> Fields:
        """DeleteAcls."""
        self._require_authorizer(acls.NO_AUTHORIZER)
        filters = [acl_filter_of(each) for each in body["filters"]]
        results = await self._controller.ask(lambda context: acls.delete_acls(context, filters))
        deleted = [{**_error(result), "matching_acls": [_binding(acl) for acl in result.deleted]} for result in results]
        return {"throttle_time": 0, "filter_results": deleted}

    def _require_authorizer(self, message: str) -> None:
        if not self._has_authorizer:
            raise RequestRefused(ErrorCode.SECURITY_DISABLED, message)


def _resources(selected: Iterable[acls.AclEntry]) -> list[Fields]:
    """ACLs by resource pattern."""
    bindings = (_binding(acl) for acl in selected)
    return [
        {**dict(zip(_PATTERN, pattern, strict=True)), "acls": list(of_pattern)}
        for pattern, of_pattern in groupby(bindings, key=lambda binding: [binding[name] for name in _PATTERN])
    ]


def _binding(acl: acls.AclEntry) -> Fields:
    return {
        "error_code": ErrorCode.NONE,
        "resource_type": acl.resource_type,
        "resource_name": acl.resource_name,
        "pattern_type": acl.pattern_type,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }


def _error(result: acls.AclResult) -> Fields:
    return {"error_code": result.error, "error_message": result.message}
