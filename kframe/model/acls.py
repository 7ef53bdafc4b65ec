"""ACLs by Kafka's codes, and filters of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

#: Any resource type, operation or permission type in a filter.
ANY: Final = 1
#: A literal pattern of this name applies to every resource of its type.
WILDCARD: Final = "*"
#: The name of the cluster resource.
CLUSTER: Final = "kafka-cluster"


class AclOperation(IntEnum):
    """Operations on resources (Kafka ``AclOperation``)."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15
    """Since Kafka 4."""


class AclResourceType(IntEnum):
    """Types of resources (Kafka ``ResourceType``)."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Permission(IntEnum):
    """Whether an entry allows or denies (Kafka ``AclPermissionType``)."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class PatternType(IntEnum):
    """How a resource pattern or a filter compares names (Kafka ``PatternType``). Patterns are LITERAL or PREFIXED."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Selects ACLs, as in DescribeAcls and DeleteAcls (Kafka ``AclBindingFilter``). None and ANY match everything.

    A filter compares texts exactly: a principal or host does not match the ``*`` of an ACL.
    """

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission_type: int = ANY

    def matches_pattern(self, resource_type: int, pattern_type: int, name: str) -> bool:
        """Whether the filter selects ACLs of a resource pattern (Kafka ``ResourcePatternFilter.matches``).

        MATCH selects the patterns that apply to a resource with the name of the filter: the literal one, the
        wildcard, and prefixes of the name.
        """
        if self.resource_type not in (ANY, resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern_type):
            return False
        if self.resource_name is None or self.resource_name == name:
            return True
        if self.pattern_type != PatternType.MATCH:
            return False
        if pattern_type == PatternType.PREFIXED:
            return self.resource_name.startswith(name)
        return pattern_type == PatternType.LITERAL and name == WILDCARD

    def matches_entry(self, principal: str, host: str, operation: int, permission_type: int) -> bool:
        """Whether the filter selects an entry of a pattern (Kafka ``AccessControlEntryFilter.matches``)."""
        return (
            self.principal in (None, principal)
            and self.host in (None, host)
            and self.operation in (ANY, operation)
            and self.permission_type in (ANY, permission_type)
        )
