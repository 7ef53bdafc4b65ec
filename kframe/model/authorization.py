"""What ACLs allow: the rule of Kafka's authorizers (Kafka 4.4 ``StandardAuthorizerData``, 3.9 ``AclAuthorizer``)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final, Protocol

from kframe.model.acls import WILDCARD, AclOperation, PatternType, Permission
from kframe.model.address_ranges import range_contains

WILDCARD_PRINCIPAL: Final = "User:*"
#: Operations that an allowed operation implies. A denied operation implies none.
_IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


class AccessControlEntry(Protocol):
    """Whether a principal (``User:*`` is any) may do an operation from a host (``*`` is any), by Kafka's codes."""

    @property
    def principal(self) -> str:
        """TYPE:NAME."""

    @property
    def host(self) -> str:
        """An address, ``*``, or a range in CIDR notation."""

    @property
    def operation(self) -> int:
        """``AclOperation``."""

    @property
    def permission_type(self) -> int:
        """``Permission``."""


def patterns_of(name: str) -> Iterator[tuple[PatternType, str]]:
    """The patterns that apply to a resource: its own name, the wildcard, and the prefixes of its name."""
    yield PatternType.LITERAL, name
    if name != WILDCARD:
        yield PatternType.LITERAL, WILDCARD
    for length in range(1, len(name) + 1):
        yield PatternType.PREFIXED, name[:length]


def applies(
    entry: AccessControlEntry, principal: str, host: str, operations: Container[int], *, has_ranges: bool = False
) -> bool:
    """Whether an entry applies to a principal and host, and to one of these operations.

    ``has_ranges``: hosts of entries may be ranges of addresses (KIP-1276).
    """
    return (
        entry.principal in (principal, WILDCARD_PRINCIPAL)
        and (entry.operation == AclOperation.ALL or entry.operation in operations)
        and (entry.host in (host, WILDCARD) or (has_ranges and range_contains(entry.host, host)))
    )


def is_allowed(
    entries: Iterable[AccessControlEntry],
    principal: str,
    host: str,
    operation: AclOperation,
    *,
    default: bool,
    has_ranges: bool = False,
) -> bool:
    """Whether the entries of a resource allow an operation.

    A denying entry precedes allowing ones. ``default`` is the answer for a resource without entries
    (``allow.everyone.if.no.acl.found``). ``has_ranges`` as in ``applies``.
    """
    sufficient = {operation, *_IMPLIED_BY.get(operation, ())}
    has_entries = has_allowed = False
    for entry in entries:
        has_entries = True
        is_denial = entry.permission_type == Permission.DENY
        operations = {operation} if is_denial else sufficient
        if applies(entry, principal, host, operations, has_ranges=has_ranges):
            if is_denial:
                return False
            has_allowed = True
    return has_allowed if has_entries else default
