"""Creation and deletion of ACLs (Kafka 4.4 ``AclControlManager``, and the checks of ``AclApis``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, check_record_count
from kframe.errors import ErrorCode
from kframe.model.acls import ANY, AclFilter, PatternType
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

UNKNOWN: Final = 0
#: ``ResourceType.CLUSTER``, whose only resource is ``kafka-cluster``.
CLUSTER: Final = 4
#: The message of every request for ACLs without an authorizer (SECURITY_DISABLED).
NO_AUTHORIZER: Final = "No Authorizer is configured."


@dataclass(frozen=True, slots=True)
class AclEntry:
    """An ACL by Kafka's codes: an AccessControlEntryRecord without an id."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class AclResult:
    """The result of a creation or of a filter, with the ACLs that the filter has deleted."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    deleted: tuple[AclEntry, ...] = ()


def create_acls(
    context: KraftContext, acls: Sequence[AclEntry], new_id: Callable[[], UUID]
) -> ControllerResult[list[AclResult]]:
    """Create ACLs; the response is a list of AclResult. An ACL that exists already is not written again."""
    stored = {acl for _, acl in _stored(context)}
    results, records = [], list[RecordAndVersion]()
    for acl in acls:
        problem = _problem(acl)
        if problem is not None:
            results.append(AclResult(ErrorCode.INVALID_REQUEST, problem))
            continue
        results.append(AclResult())
        if acl not in stored:
            stored.add(acl)
            records.append(RecordAndVersion(AccessControlEntryRecord(id=new_id(), **asdict(acl)), 0))
    check_record_count(records)
    return ControllerResult(records, results, atomic=True)


def delete_acls(context: KraftContext, filters: Sequence[AclFilter]) -> ControllerResult[list[AclResult]]:
    """Delete the ACLs that filters select. The response is a list of AclResult, one for each filter."""
    stored = list(_stored(context))
    results, deleted = [], dict[UUID, None]()
    for acl_filter in filters:
        if UNKNOWN in (acl_filter.resource_type, acl_filter.pattern_type):
            results.append(AclResult(ErrorCode.INVALID_REQUEST, "Unknown patternFilter."))
        elif UNKNOWN in (acl_filter.operation, acl_filter.permission_type):
            results.append(AclResult(ErrorCode.INVALID_REQUEST, "Unknown entryFilter."))
        else:
            selected = [(acl_id, acl) for acl_id, acl in stored if _selects(acl_filter, acl)]
            deleted |= dict.fromkeys(acl_id for acl_id, _ in selected)
            results.append(AclResult(deleted=tuple(acl for _, acl in selected)))
    records = [RecordAndVersion(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in deleted]
    check_record_count(records)
    return ControllerResult(records, results, atomic=True)


def _selects(acl_filter: AclFilter, acl: AclEntry) -> bool:
    return acl_filter.matches_pattern(
        acl.resource_type, acl.pattern_type, acl.resource_name
    ) and acl_filter.matches_entry(acl.principal, acl.host, acl.operation, acl.permission_type)


def _stored(context: KraftContext) -> Iterator[tuple[UUID, AclEntry]]:
    for acl_id, record in context.metadata.acls.items():
        yield acl_id, AclEntry(**{field.name: getattr(record, field.name) for field in fields(AclEntry)})


def _problem(acl: AclEntry) -> str | None:
    """The reason why an ACL is invalid, or None."""
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return f"Invalid patternType {acl.pattern_type}"
    if acl.resource_type in (UNKNOWN, ANY):
        return f"Invalid resourceType {acl.resource_type}"
    if acl.operation in (UNKNOWN, ANY):
        return f"Invalid operation {acl.operation}"
    if acl.permission_type in (UNKNOWN, ANY):
        return f"Invalid permissionType {acl.permission_type}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if ":" not in acl.principal:
        return f"Could not parse principal from `{acl.principal}` (no colon is present)"
    if acl.resource_type == CLUSTER and acl.resource_name != "kafka-cluster":
        return "The only valid name for the CLUSTER resource is kafka-cluster"
    return None
