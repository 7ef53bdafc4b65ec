"""Creation and deletion of ACLs (Kafka 4.4 ``AclControlManager``, and the checks of ``AclApis``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.decision import ControllerResult, RecordAndVersion, check_record_count
from kframe.errors import ErrorCode
from kframe.model.kraft.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

UNKNOWN: Final = 0
#: Any type of resource, pattern, operation or permission.
ANY: Final = 1
#: Literal and prefixed patterns that apply to a name (``PatternType.MATCH``).
MATCH: Final = 2
LITERAL: Final = 3
PREFIXED: Final = 4
#: ``ResourceType.CLUSTER``, whose only resource is ``kafka-cluster``.
CLUSTER: Final = 4
WILDCARD: Final = "*"
#: The message of every request for ACLs without an authorizer (SECURITY_DISABLED).
NO_AUTHORIZER: Final = "No Authorizer is configured."


@dataclass(frozen=True, slots=True)
class AclEntry:
    """An ACL by Kafka's codes."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class KraftAclFilter:
    """Selects ACLs: None and ANY match everything."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission_type: int = ANY

    def matches(self, acl: AclEntry) -> bool:
        """Whether the filter selects an ACL (Kafka ``AclBindingFilter.matches``)."""
        codes = (self.resource_type, acl.resource_type), (self.operation, acl.operation), (
            self.permission_type, acl.permission_type)  # fmt: skip
        texts = (self.principal, acl.principal), (self.host, acl.host)
        return (
            all(wanted in (ANY, actual) for wanted, actual in codes)
            and all(wanted in (None, actual) for wanted, actual in texts)
            and self._matches_pattern(acl)
        )

    def _matches_pattern(self, acl: AclEntry) -> bool:
        if self.pattern_type not in (ANY, MATCH, acl.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == acl.resource_name:
            return True
        if self.pattern_type != MATCH:
            return False
        if acl.pattern_type == PREFIXED:
            return self.resource_name.startswith(acl.resource_name)
        return acl.pattern_type == LITERAL and acl.resource_name == WILDCARD


@dataclass(frozen=True, slots=True)
class AclResult:
    """The result of a creation or of a filter, with the ACLs that the filter has deleted."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    deleted: tuple[AclEntry, ...] = ()


def create_acls(context: KraftContext, acls: Sequence[AclEntry], new_id: Callable[[], UUID]) -> ControllerResult:
    """Create ACLs; the answer is a list of AclResult. An ACL that exists already is not written again."""
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
            records.append(RecordAndVersion(_record(new_id(), acl), 0))
    check_record_count(records)
    return ControllerResult(records, atomic=True, response=results)


def delete_acls(context: KraftContext, filters: Sequence[KraftAclFilter]) -> ControllerResult:
    """Delete the ACLs that filters select. The answer is a list of AclResult, one for each filter."""
    stored = list(_stored(context))
    results, deleted = [], dict[UUID, None]()
    for acl_filter in filters:
        if UNKNOWN in (acl_filter.resource_type, acl_filter.pattern_type):
            results.append(AclResult(ErrorCode.INVALID_REQUEST, "Unknown patternFilter."))
        elif UNKNOWN in (acl_filter.operation, acl_filter.permission_type):
            results.append(AclResult(ErrorCode.INVALID_REQUEST, "Unknown entryFilter."))
        else:
            selected = [(acl_id, acl) for acl_id, acl in stored if acl_filter.matches(acl)]
            deleted |= dict.fromkeys(acl_id for acl_id, _ in selected)
            results.append(AclResult(deleted=tuple(acl for _, acl in selected)))
    records = [RecordAndVersion(RemoveAccessControlEntryRecord(id=acl_id), 0) for acl_id in deleted]
    check_record_count(records)
    return ControllerResult(records, atomic=True, response=results)


def _stored(context: KraftContext) -> Iterator[tuple[UUID, AclEntry]]:
    for acl_id, record in context.metadata.acls.items():
        yield acl_id, AclEntry(
            record.resource_type, record.resource_name, record.pattern_type, record.principal, record.host,
            record.operation, record.permission_type,
        )  # fmt: skip


def _record(acl_id: UUID, acl: AclEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def _problem(acl: AclEntry) -> str | None:
    """What forbids an ACL."""
    if acl.pattern_type not in (LITERAL, PREFIXED):
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
