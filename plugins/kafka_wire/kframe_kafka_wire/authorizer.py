"""Who may do what, as Kafka's AclAuthorizer decides it from ``/kafka-acl``. Where one is configured, silence is no.

Kafka 3.9 ``AclAuthorizer`` and ``AclEntry``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, Protocol

from kframe import KframeError
from kframe_kafka_wire.principals import Principal
from kframe_kafka_wire.records import Records, decode_record

_log = logging.getLogger("kframe.kafka_wire")

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
#: The resource that stands for the cluster as a whole.
CLUSTER: Final = "kafka-cluster"
#: How long ACLs that were read are believed.
REFRESH_S: Final = 2.0


class Operation(IntEnum):
    """What is done to a resource (``AclOperation``)."""

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


class Kind(IntEnum):
    """Kinds of resources (``ResourceType``)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


#: What there is to be allowed of each kind (``AclEntry.supportedOperations``).
SUPPORTED: Final[Mapping[Kind, tuple[Operation, ...]]] = {
    Kind.TOPIC: (
        Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DESCRIBE, Operation.DELETE, Operation.ALTER,
        Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
    ),
    Kind.CLUSTER: (
        Operation.CREATE, Operation.CLUSTER_ACTION, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE, Operation.ALTER, Operation.DESCRIBE,
    ),
}  # fmt: skip
#: Who may do one of these may do the other as well; only for what is allowed, not for what is denied.
_IMPLIED: Final = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
_NAMES: Final = {
    "All": Operation.ALL, "Read": Operation.READ, "Write": Operation.WRITE, "Create": Operation.CREATE,
    "Delete": Operation.DELETE, "Alter": Operation.ALTER, "Describe": Operation.DESCRIBE,
    "ClusterAction": Operation.CLUSTER_ACTION, "DescribeConfigs": Operation.DESCRIBE_CONFIGS,
    "AlterConfigs": Operation.ALTER_CONFIGS, "IdempotentWrite": Operation.IDEMPOTENT_WRITE,
}  # fmt: skip
_FOLDERS: Final = {
    Kind.TOPIC: "Topic",
    Kind.GROUP: "Group",
    Kind.CLUSTER: "Cluster",
    Kind.TRANSACTIONAL_ID: "TransactionalId",
}


class Authorizer(Protocol):
    """Decides who may do what."""

    def allows(self, principal: Principal, host: str, operation: Operation, kind: Kind, name: str) -> bool:
        """Whether ``principal``, coming from ``host``, may do that to the resource. Callable from any thread."""


class Everybody:
    """No authorizer is configured: everybody may do everything, as in Kafka."""

    def allows(self, principal: Principal, host: str, operation: Operation, kind: Kind, name: str) -> bool:
        """Yes."""
        return True


@dataclass(frozen=True, slots=True)
class Acl:
    """One entry: who (``User:*`` is anybody) may or may not do what from which host (``*``: any)."""

    principal: str
    allow: bool
    operation: Operation
    host: str

    def speaks_of(self, principal: Principal, host: str, operations: set[Operation]) -> bool:
        """Whether it is about that."""
        return (
            self.principal in (str(principal), f"{principal.kind}:*")
            and self.host in (host, "*")
            and (self.operation is Operation.ALL or self.operation in operations)
        )


@dataclass(frozen=True, slots=True)
class AclTable:
    """All entries: by name, and by the prefix of names."""

    literal: Mapping[tuple[Kind, str], tuple[Acl, ...]] = field(default_factory=dict)
    prefixed: Mapping[tuple[Kind, str], tuple[Acl, ...]] = field(default_factory=dict)

    def about(self, kind: Kind, name: str) -> list[Acl]:
        """The entries for a resource: its own, those of ``*``, those of its prefixes."""
        found = [*self.literal.get((kind, name), ()), *self.literal.get((kind, "*"), ())]
        for length in range(1, len(name) + 1):
            found += self.prefixed.get((kind, name[:length]), ())
        return found


class AclAuthorizer:
    """The entries that ``read`` gives, believed for ``REFRESH_S`` and read again beside the answering.

    Until they were read once only ``super_users`` may do anything. If reading fails, what was read before counts on.
    """

    def __init__(
        self, read: Callable[[], AclTable], super_users: frozenset[str] = frozenset(), *, if_none_found: bool = False
    ) -> None:
        """``if_none_found``: what may be done to a resource that has no entry (``allow.everyone.if.no.acl.found``)."""
        self._read = read
        self._super_users = super_users
        self._if_none_found = if_none_found
        self._table: AclTable | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="kframe-acls", daemon=True)

    def start(self) -> None:
        """Read now, and from then on in a thread of its own until ``stop``."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def refresh(self) -> None:
        """Read the entries."""
        try:
            self._table = self._read()
        except KframeError as error:
            _log.warning("ACLs cannot be read, the last ones count on: %s", error)

    def allows(self, principal: Principal, host: str, operation: Operation, kind: Kind, name: str) -> bool:
        """Denied by an entry: no; allowed by one: yes; no entry at all: as configured; else no."""
        if str(principal) in self._super_users:
            return True
        table = self._table
        if table is None:
            return False
        entries = table.about(kind, name)
        if not entries:
            return self._if_none_found
        denied = any(one.speaks_of(principal, host, {operation}) for one in entries if not one.allow)
        enough = {operation} | _IMPLIED.get(operation, set())
        return not denied and any(one.speaks_of(principal, host, enough) for one in entries if one.allow)

    def _keep(self) -> None:
        while not self._stopped.wait(REFRESH_S):
            self.refresh()


def read_acls(records: Records) -> AclTable:
    """What stands below ``/kafka-acl`` and ``/kafka-acl-extended/prefixed``; what cannot be read denies."""
    return AclTable(_read_tree(records, "/kafka-acl"), _read_tree(records, "/kafka-acl-extended/prefixed"))


def _read_tree(records: Records, root: str) -> dict[tuple[Kind, str], tuple[Acl, ...]]:
    found = {}
    for kind, folder in _FOLDERS.items():
        for name in records.read_record_names(f"{root}/{folder}"):
            data = records.read_record(f"{root}/{folder}/{name}")
            if data is not None:
                found[kind, name] = _entries(data)
    return found


def _entries(data: bytes) -> tuple[Acl, ...]:
    listed = decode_record(data).get("acls")
    try:
        return tuple(
            Acl(one["principal"], one["permissionType"] == "Allow", _NAMES[one["operation"]], one.get("host", "*"))
            for one in listed or ()
        )
    except (KeyError, TypeError):
        return (Acl("User:*", allow=False, operation=Operation.ALL, host="*"),)


def authorizer_of(config: Mapping[str, str], records: Records) -> Authorizer:
    """What ``authorizer.class.name`` asks for: nothing is everybody, AclAuthorizer its rules; any other class is not
    here, and then only ``super.users`` may do anything."""
    name = config.get("authorizer.class.name", "").strip()
    if not name:
        return Everybody()
    super_users = frozenset(one.strip() for one in config.get("super.users", "").split(";") if one.strip())
    if name != ACL_AUTHORIZER:
        _log.warning("%s is not here: nobody but super.users may do anything on our listeners", name)
        return AclAuthorizer(lambda: _DENY_ALL, super_users)
    everyone = config.get("allow.everyone.if.no.acl.found", "false").strip().lower() == "true"
    return AclAuthorizer(lambda: read_acls(records), super_users, if_none_found=everyone)


_DENY_ALL: Final = AclTable()
