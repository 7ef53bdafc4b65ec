"""DescribeAcls, CreateAcls and DeleteAcls, from and to ZooKeeper (Kafka 3.9 ``AclApis`` and ``AclAuthorizer``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from kframe.plugin import ErrorCode, KframeError
from kframe.plugin.server import CLUSTER, AclFilter, AclOperation, AclResourceType, PatternType, Permission
from kframe_kafka_wire.access.authorizer import AclAuthorizer, FixedAuthorizer
from kframe_kafka_wire.apis.calls import Call, RequestError
from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.records.acls import SUPPORTED, Acl, ResourcePattern, exact_patterns, read_acls, update_acls
from kframe_kafka_wire.records.principals import parse_principal
from kframe_kafka_wire.records.store import RecordWriter

_NO_AUTHORIZER: Final = "No Authorizer is configured."
_FAILED: Final = "Failed to create ACL"


async def describe_acls(call: Call) -> Fields:
    """The entries that the filter matches, by resource pattern."""
    _authorizer(call, "No Authorizer is configured on the broker")
    acl_filter = acl_filter_of(call.body)
    table = await call.context.read(read_acls)
    resources = []
    for pattern, acls in table.items():
        selected = [acl for acl in acls if acl.is_selected_by(acl_filter)]
        if selected and pattern.is_selected_by(acl_filter):
            resources.append({**_pattern_fields(pattern), "acls": [_acl_fields(acl) for acl in selected]})
    return {"resources": resources}


async def create_acls(call: Call) -> Fields:
    """Add entries. Each creation succeeds or fails separately."""
    authorizer = _authorizer(call, _NO_AUTHORIZER)
    results: list[Fields] = [{} for _ in call.body["creations"]]
    additions: dict[ResourcePattern, dict[int, Acl]] = {}
    for index, creation in enumerate(call.body["creations"]):
        try:
            pattern, acl = _binding(creation)
        except RequestError as error:
            results[index] = {"error_code": error.code, "error_message": error.message}
        else:
            additions.setdefault(pattern, {})[index] = acl
    for pattern, acls in additions.items():
        try:
            await call.context.write(partial(_add, pattern=pattern, new=set(acls.values())))
        except KframeError as error:
            for index in acls:
                results[index] = {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "error_message": str(error)}
    await call.context.read(lambda _records: authorizer.refresh())
    return {"results": results}


async def delete_acls(call: Call) -> Fields:
    """Delete the entries that any filter matches. Each is reported for the first filter that matches it."""
    authorizer = _authorizer(call, _NO_AUTHORIZER)
    filters = [acl_filter_of(each) for each in call.body["filters"]]
    table = await call.context.read(read_acls)
    patterns = dict.fromkeys([pattern for pattern, _ in table.items()])
    patterns |= dict.fromkeys(pattern for each in filters for pattern in exact_patterns(each))
    matching: list[list[Fields]] = [[] for _ in filters]
    for pattern in patterns:
        selecting_filters = [(index, each) for index, each in enumerate(filters) if pattern.is_selected_by(each)]
        if not selecting_filters:
            continue
        filter_indexes: dict[Acl, int] = {}
        failure: Fields = {}
        try:
            await call.context.write(
                partial(_remove, pattern=pattern, selecting_filters=selecting_filters, filter_indexes=filter_indexes)
            )
        except KframeError as error:
            failure = {"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "error_message": str(error)}
        for acl, index in filter_indexes.items():
            matching[index].append({**_pattern_fields(pattern), **_acl_fields(acl), **failure})
    await call.context.read(lambda _records: authorizer.refresh())
    return {"filter_results": [{"matching_acls": acls} for acls in matching]}


def _add(writer: RecordWriter, pattern: ResourcePattern, new: set[Acl]) -> None:
    update_acls(writer, pattern, lambda acls: acls | new)


def _remove(
    writer: RecordWriter,
    pattern: ResourcePattern,
    selecting_filters: Sequence[tuple[int, AclFilter]],
    filter_indexes: dict[Acl, int],
) -> None:
    """Delete entries of a pattern. ``filter_indexes`` receives each with the index of the first matching filter."""

    def change(acls: set[Acl]) -> set[Acl]:
        for acl in acls:
            index = next((index for index, each in selecting_filters if acl.is_selected_by(each)), None)
            if index is not None:
                filter_indexes.setdefault(acl, index)
        return acls - filter_indexes.keys()

    update_acls(writer, pattern, change)


def _authorizer(call: Call, message: str) -> AclAuthorizer:
    """The authorizer with entries in ZooKeeper. Raises RequestError if none or another one is configured."""
    authorizer = call.context.authorizer
    if isinstance(authorizer, FixedAuthorizer) and authorizer.super_users is not None:
        raise RequestError(ErrorCode.SECURITY_DISABLED, "kframe has no access to the ACLs of this authorizer")
    if not isinstance(authorizer, AclAuthorizer):
        raise RequestError(ErrorCode.SECURITY_DISABLED, message)
    return authorizer


def acl_filter_of(fields: Fields) -> AclFilter:
    """The filter in a DescribeAcls request, or in an element of a DeleteAcls request."""
    return AclFilter(
        fields["resource_type_filter"],
        fields["resource_name_filter"],
        fields.get("pattern_type_filter", PatternType.LITERAL),
        fields["principal_filter"],
        fields["host_filter"],
        fields["operation"],
        fields["permission_type"],
    )


def _binding(fields: Fields) -> tuple[ResourcePattern, Acl]:
    """The entry to create. Raises RequestError for an invalid entry
    (``AuthorizerUtils``, ``AclAuthorizer.validateAclBinding``)."""
    kind, name = fields["resource_type"], fields["resource_name"]
    if kind == AclResourceType.CLUSTER and name != CLUSTER:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER}")
    if not name:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
    pattern_type = fields.get("resource_pattern_type", PatternType.LITERAL)
    specific = pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
    known = fields["permission_type"] in (Permission.ALLOW, Permission.DENY) and kind in SUPPORTED and specific
    if not known or "/" in name or fields["operation"] not in _OPERATIONS:
        raise RequestError(ErrorCode.INVALID_REQUEST, _FAILED)
    try:
        principal = parse_principal(fields["principal"])
    except ValueError:
        raise RequestError(ErrorCode.INVALID_REQUEST, _FAILED) from None
    allow = fields["permission_type"] == Permission.ALLOW
    acl = Acl(str(principal), allow, AclOperation(fields["operation"]), fields["host"])
    return ResourcePattern(AclResourceType(kind), PatternType(pattern_type), name), acl


_OPERATIONS: Final = frozenset(AclOperation) - {AclOperation.ANY, AclOperation.TWO_PHASE_COMMIT}


def _pattern_fields(pattern: ResourcePattern) -> Fields:
    return {"resource_type": pattern.kind, "resource_name": pattern.name, "pattern_type": pattern.pattern_type}


def _acl_fields(acl: Acl) -> Fields:
    return {
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation,
        "permission_type": acl.permission_type,
    }
