"""ACLs in ZooKeeper as Kafka's AclAuthorizer stores them: entries, resource patterns, reading and writing.

Kafka 3.9 ``AclEntry`` and ``ZkData`` (``ZkAclStore``, ``ZkAclChangeStore``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kframe.plugin import StoreError
from kframe.plugin.server import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclFilter,
    AclOperation,
    AclResourceType,
    PatternType,
    Permission,
    patterns_of,
)
from kframe_kafka_wire.records.principals import parse_principal
from kframe_kafka_wire.records.store import Records, RecordWriter, attempts, decode_record

_ACL_VERSION: Final = 1


#: The operations of each resource type (``AclEntry.supportedOperations``).
SUPPORTED: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.GROUP: (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.DESCRIBE, AclOperation.WRITE),
    AclResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    AclResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


#: Names in ZooKeeper (``SecurityUtils.operationName`` and ``resourceTypeName``).
_OPERATION_NAMES: Final[Mapping[AclOperation, str]] = {
    operation: _camel(operation.name)
    for operation in AclOperation
    if operation not in (AclOperation.ANY, AclOperation.TWO_PHASE_COMMIT)
}
_OPERATIONS: Final = {name: operation for operation, name in _OPERATION_NAMES.items()}
_KIND_NAMES: Final = {kind: _camel(kind.name) for kind in SUPPORTED}
#: The roots below which patterns of each type are stored, by type of resource and name.
_ROOTS: Final = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
_LITERAL_CHANGE: Final = "/kafka-acl-changes/acl_changes_"
_EXTENDED_CHANGE: Final = "/kafka-acl-extended-changes/acl_changes_"


@dataclass(frozen=True, slots=True)
class Acl:
    """An entry: whether a principal (``User:*`` is any) may do an operation from a host (``*`` is any)."""

    principal: str
    allow: bool
    operation: AclOperation
    host: str

    @property
    def permission_type(self) -> Permission:
        """Whether it allows or denies, as a code."""
        return Permission.ALLOW if self.allow else Permission.DENY

    def is_selected_by(self, acl_filter: AclFilter) -> bool:
        """Whether a filter selects the entry, of any resource pattern."""
        return acl_filter.matches_entry(self.principal, self.host, self.operation, self.permission_type)


class ResourcePattern(NamedTuple):
    """The resources of an entry: a single resource, or all resources whose names have a prefix."""

    kind: AclResourceType
    pattern_type: PatternType
    name: str

    @property
    def path(self) -> str:
        """The path of its entries."""
        return f"{_ROOTS[self.pattern_type]}/{_KIND_NAMES[self.kind]}/{self.name}"

    def is_selected_by(self, acl_filter: AclFilter) -> bool:
        """Whether a filter may select entries of the pattern."""
        return acl_filter.matches_pattern(*self)


def exact_patterns(acl_filter: AclFilter) -> list[ResourcePattern]:
    """The patterns that a filter names literally. They may be newer than any list of patterns."""
    if acl_filter.resource_name is None or acl_filter.resource_type not in SUPPORTED:
        return []
    types = tuple(_ROOTS) if acl_filter.pattern_type == PatternType.ANY else (acl_filter.pattern_type,)
    return [
        ResourcePattern(AclResourceType(acl_filter.resource_type), PatternType(code), acl_filter.resource_name)
        for code in types
        if code in _ROOTS
    ]


@dataclass(frozen=True, slots=True)
class AclTable:
    """All entries, by resource name and by prefix."""

    literal: Mapping[tuple[AclResourceType, str], tuple[Acl, ...]] = field(default_factory=dict)
    prefixed: Mapping[tuple[AclResourceType, str], tuple[Acl, ...]] = field(default_factory=dict)

    def entries_of(self, kind: AclResourceType, name: str) -> list[Acl]:
        """The entries that apply to a resource: its own, those of ``*``, and those of prefixes of its name."""
        tables = {PatternType.LITERAL: self.literal, PatternType.PREFIXED: self.prefixed}
        return [acl for pattern_type, text in patterns_of(name) for acl in tables[pattern_type].get((kind, text), ())]

    def items(self) -> Iterator[tuple[ResourcePattern, tuple[Acl, ...]]]:
        """Every resource pattern with its entries, in order of type, pattern type and name."""
        tables = {PatternType.LITERAL: self.literal, PatternType.PREFIXED: self.prefixed}
        entries = {
            ResourcePattern(kind, pattern_type, name): acls
            for pattern_type, table in tables.items()
            for (kind, name), acls in table.items()
        }
        yield from sorted(entries.items(), key=lambda item: item[0])


def read_acls(records: Records) -> AclTable:
    """All stored entries. A malformed record denies everything. Raises StoreError."""
    return AclTable(*(_read_tree(records, root) for root in _ROOTS.values()))


def read_acl_changes(records: Records) -> object:
    """The stored notifications. If they are unchanged, so are all entries. Raises StoreError."""
    return [
        sorted(records.read_record_names(prefix.rpartition("/")[0])) for prefix in (_LITERAL_CHANGE, _EXTENDED_CHANGE)
    ]


def _read_tree(records: Records, root: str) -> dict[tuple[AclResourceType, str], tuple[Acl, ...]]:
    table = {}
    for kind, folder in _KIND_NAMES.items():
        for name in records.read_record_names(f"{root}/{folder}"):
            data = records.read_record(f"{root}/{folder}/{name}")
            if data is not None:
                try:
                    table[kind, name] = decode_acls(data)
                except ValueError:
                    table[kind, name] = (
                        Acl(WILDCARD_PRINCIPAL, allow=False, operation=AclOperation.ALL, host=WILDCARD),
                    )
    return table


def decode_acls(data: bytes) -> tuple[Acl, ...]:
    """The entries in a record. Raises ValueError for a record that Kafka would not write."""
    if not data:
        return ()
    try:
        return tuple(
            Acl(
                str(parse_principal(entry["principal"])),
                _is_allow(entry["permissionType"]),
                _OPERATIONS[entry["operation"]],
                str(entry["host"]),
            )
            for entry in decode_record(data)["acls"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a list of ACLs: {error}") from None


def _is_allow(text: str) -> bool:
    if text not in ("Allow", "Deny"):
        raise ValueError(f"permissionType: found {text}, expected Allow or Deny")
    return text == "Allow"


def encode_acls(acls: set[Acl]) -> bytes:
    """A record of these entries in Kafka's format."""
    ordered = sorted(acls, key=lambda acl: (acl.principal, acl.allow, acl.operation, acl.host))
    entries = [
        {
            "principal": acl.principal,
            "permissionType": "Allow" if acl.allow else "Deny",
            "operation": _OPERATION_NAMES[acl.operation],
            "host": acl.host,
        }
        for acl in ordered
    ]
    return json.dumps({"version": _ACL_VERSION, "acls": entries}, separators=(",", ":")).encode()


def update_acls(writer: RecordWriter, pattern: ResourcePattern, change: Callable[[set[Acl]], set[Acl]]) -> None:
    """Replace the entries of a resource pattern by the result of ``change``. Notify all brokers.

    A record without entries is deleted. The write is a compare-and-set: after a concurrent write, ``change`` is called
    again. Raises StoreError if concurrent writes continue, or if the stored entries are malformed (Kafka 3.9
    ``AclAuthorizer.updateResourceAcls``).
    """
    attempted = False
    for stored in attempts(writer, pattern.path):
        try:
            before = set() if stored is None else set(decode_acls(stored[0]))
        except ValueError as error:
            raise StoreError(f"{pattern.path}: {error}") from None
        after = change(before)
        if after == before and (after or stored is None):
            break
        attempted = True
        if after:
            succeeded = writer.write_record(pattern.path, encode_acls(after), None if stored is None else stored[1])
        else:
            succeeded = stored is None or writer.delete_record(pattern.path, stored[1])
        if succeeded:
            break
    if attempted:
        # Notify even if the last attempt changed nothing: an earlier attempt with a lost response may have succeeded.
        writer.append_record(*_change_of(pattern))


def _change_of(pattern: ResourcePattern) -> tuple[str, bytes]:
    """The path prefix and the data of the notification that entries of a pattern have changed."""
    if pattern.pattern_type is PatternType.LITERAL:
        return _LITERAL_CHANGE, f"{pattern.kind.name}:{pattern.name}".encode()
    content: dict[str, Any] = {
        "version": 1,
        "resourceType": pattern.kind.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
    }
    return _EXTENDED_CHANGE, json.dumps(content, separators=(",", ":")).encode()
