"""The step ``request``: requests in Kafka's field names, for ACLs, client quotas and SCRAM credentials."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from kframe.core.kraft.security import acls, quotas, scram
from kframe.core.kraft.security.acls import AclEntry, AclResult
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.acls import AclFilter, PatternType
from kframe.scenario.kraft.arguments import RawRequest
from kframe.scenario.kraft.quorum_run import QuorumRun


def send_request(run: QuorumRun, argument: RawRequest) -> Any:
    """Answer a request. Raises ScenarioError for an API or a body that is not supported."""
    where = f"{run.scenario.source}: request"
    handler = _HANDLERS.get(argument.api)
    if handler is None:
        raise ScenarioError(where, f"the API {argument.api!r}", f"one of {', '.join(sorted(_HANDLERS))}")
    try:
        return sort_structs(handler(run, argument.body))
    except KeyError as error:
        raise ScenarioError(f"{where}.body", f"no field {error}", f"a body of {argument.api}") from error
    except (TypeError, ValueError) as error:
        raise ScenarioError(f"{where}.body", str(error), f"a body of {argument.api}") from error


def sort_structs(value: Any) -> Any:
    """A response with the structs of each list sorted."""
    if isinstance(value, dict):
        return {key: sort_structs(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [sort_structs(item) for item in value]
        return sorted(items, key=json.dumps) if items and isinstance(items[0], dict) else items
    return value


def _create_acls(run: QuorumRun, body: dict[str, Any]) -> dict[str, Any]:
    entries = [
        AclEntry(
            item["resourceType"],
            item["resourceName"],
            item.get("resourcePatternType", PatternType.LITERAL),
            item["principal"],
            item["host"],
            item["operation"],
            item["permissionType"],
        )
        for item in body["creations"]
    ]
    if not run.has_authorizer:
        return {"results": [_error(ErrorCode.SECURITY_DISABLED, acls.NO_AUTHORIZER) for _ in entries]}
    results = run.quorum.submit(lambda context: acls.create_acls(context, entries, run.names.new_id))
    return {"results": [_error(result.error, result.message or "") for result in results]}


def _delete_acls(run: QuorumRun, body: dict[str, Any]) -> dict[str, Any]:
    filters = [
        AclFilter(
            item["resourceTypeFilter"],
            item["resourceNameFilter"],
            item.get("patternTypeFilter", PatternType.LITERAL),
            item["principalFilter"],
            item["hostFilter"],
            item["operation"],
            item["permissionType"],
        )
        for item in body["filters"]
    ]
    if not run.has_authorizer:
        refused = _error(ErrorCode.SECURITY_DISABLED, acls.NO_AUTHORIZER)
        return {"filterResults": [{**refused, "matchingAcls": []} for _ in filters]}
    results = run.quorum.submit(lambda context: acls.delete_acls(context, filters))
    return {
        "filterResults": [
            {**_error(result.error, result.message), "matchingAcls": _deleted(result)} for result in results
        ]
    }


def _deleted(result: AclResult) -> list[dict[str, Any]]:
    return [
        {
            **_error(ErrorCode.NONE, None),
            "resourceType": acl.resource_type,
            "resourceName": acl.resource_name,
            "patternType": acl.pattern_type,
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permissionType": acl.permission_type,
        }
        for acl in result.deleted
    ]


def _alter_quotas(run: QuorumRun, body: dict[str, Any]) -> dict[str, Any]:
    changes = [
        quotas.QuotaChange(
            tuple((part["entityType"], part["entityName"]) for part in entry["entity"]),
            {change["key"]: None if change["remove"] else float(change["value"]) for change in entry["ops"]},
        )
        for entry in body["entries"]
    ]
    validate_only = body.get("validateOnly", False)
    results = run.quorum.submit(
        lambda context: quotas.alter_client_quotas(context, changes, validate_only=validate_only)
    )
    return {
        "entries": [
            {
                **_error(result.error, result.message),
                "entity": [{"entityType": kind, "entityName": name} for kind, name in result.entity],
            }
            for result in results
        ]
    }


def _alter_credentials(run: QuorumRun, body: dict[str, Any]) -> dict[str, Any]:
    deletions = [scram.ScramDeletion(item["name"], item["mechanism"]) for item in body.get("deletions", [])]
    upsertions = [
        scram.ScramUpsertion(
            item["name"],
            item["mechanism"],
            item["iterations"],
            base64.b64decode(item["salt"], validate=True),
            base64.b64decode(item["saltedPassword"], validate=True),
        )
        for item in body.get("upsertions", [])
    ]
    results = run.quorum.submit(lambda context: scram.alter_credentials(context, deletions, upsertions))
    return {"results": [{"user": result.user, **_error(result.error, result.message)} for result in results]}


def _error(error: ErrorCode, message: str | None) -> dict[str, Any]:
    return {"errorCode": int(error), "errorMessage": message}


_HANDLERS: Final[dict[str, Callable[[QuorumRun, dict[str, Any]], dict[str, Any]]]] = {
    "AlterClientQuotas": _alter_quotas,
    "AlterUserScramCredentials": _alter_credentials,
    "CreateAcls": _create_acls,
    "DeleteAcls": _delete_acls,
}
