"""Creation and deletion of ACLs (Kafka 4.4 ``AclControlManager``, and the checks of ``AclApis``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Final
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, check_record_count
from kframe.errors import ErrorCode
from kframe.model.acls import ANY, CLUSTER, AclFilter, AclOperation, AclResourceType, PatternType, Permission
from kframe.model.address_ranges import is_range, parse_range
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

#: The codes that an ACL may have. Filters may have ANY as well.
_RESOURCE_TYPES: Final = frozenset(AclResourceType) - {AclResourceType.ANY}
_OPERATIONS: Final = frozenset(AclOperation) - {AclOperation.ANY}
_PERMISSIONS: Final = frozenset(Permission) - {Permission.ANY}
_PATTERN_TYPES: Final = frozenset({PatternType.LITERAL, PatternType.PREFIXED})
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
        refusal = _refusal(acl, context.level)
        if refusal is not None:
            results.append(refusal)
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
        problem = filter_problem(acl_filter)
        if problem is not None:
            results.append(AclResult(ErrorCode.INVALID_REQUEST, problem))
        else:
            selected = [(acl_id, acl) for acl_id, acl in stored if _selects(acl_filter, acl)]
            deleted |= dict.fromkeys(acl_id for acl_id, _ in selected)
            results.append(AclResult(deleted=tuple(acl for _, acl in selected)))
    records = [RecordAndVersion(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in deleted]
    check_record_count(records)
    return ControllerResult(records, results, atomic=True)


def describe_acls(context: KraftContext, acl_filter: AclFilter) -> list[AclEntry]:
    """The ACLs that a filter selects, by resource pattern (Kafka 4.4 ``AclCache.acls``)."""
    selected = (acl for _, acl in _stored(context) if _selects(acl_filter, acl))
    return sorted(selected, key=lambda acl: (acl.resource_type, acl.resource_name, acl.pattern_type))


def filter_problem(acl_filter: AclFilter) -> str | None:
    """Why a filter is refused, or None."""
    if acl_filter.resource_type not in {ANY, *_RESOURCE_TYPES} or acl_filter.pattern_type not in frozenset(PatternType):
        return "Unknown patternFilter."
    if acl_filter.operation not in {ANY, *_OPERATIONS} or acl_filter.permission_type not in {ANY, *_PERMISSIONS}:
        return "Unknown entryFilter."
    return None


def _selects(acl_filter: AclFilter, acl: AclEntry) -> bool:
    return acl_filter.matches_pattern(
        acl.resource_type, acl.pattern_type, acl.resource_name
    ) and acl_filter.matches_entry(acl.principal, acl.host, acl.operation, acl.permission_type)


def _stored(context: KraftContext) -> Iterator[tuple[UUID, AclEntry]]:
    for acl_id, record in context.metadata.acls.items():
        yield acl_id, AclEntry(**{field.name: getattr(record, field.name) for field in fields(AclEntry)})


def _refusal(acl: AclEntry, level: int) -> AclResult | None:
    """The result of an invalid ACL; None for a valid one. The level is that of ``metadata.version``."""
    problem = _problem(acl)
    if problem is not None:
        return AclResult(ErrorCode.INVALID_REQUEST, problem)
    if not is_range(acl.host):
        return None
    if level < MetadataLevel.ADDRESS_RANGES:
        required = level_name(MetadataLevel.ADDRESS_RANGES)
        message = f"CIDR-based ACL host patterns require metadata version {required} or higher."
        return AclResult(ErrorCode.UNSUPPORTED_VERSION, message)
    try:
        parse_range(acl.host)
    except ValueError as error:
        return AclResult(ErrorCode.INVALID_REQUEST, f"Invalid CIDR notation '{acl.host}': {error}")
    return None


def _problem(acl: AclEntry) -> str | None:
    """Why an ACL is invalid apart from a range of addresses, or None."""
    if acl.resource_type == AclResourceType.CLUSTER and acl.resource_name != CLUSTER:
        return f"The only valid name for the CLUSTER resource is {CLUSTER}"
    if not acl.resource_name:
        return "Invalid empty resource name"
    if acl.resource_type not in _RESOURCE_TYPES:
        return f"Invalid resourceType {acl.resource_type}"
    if acl.pattern_type not in _PATTERN_TYPES:
        return f"Invalid patternType {acl.pattern_type}"
    if acl.operation not in _OPERATIONS:
        return f"Invalid operation {acl.operation}"
    if acl.permission_type not in _PERMISSIONS:
        return f"Invalid permissionType {acl.permission_type}"
    if ":" not in acl.principal:
        return (
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)"
        )
    if not acl.host:
        return "Host pattern cannot be null or empty"
    return None
