"""Authorization by the ACLs below ``/kafka-acl``, as in Kafka's AclAuthorizer (Kafka 3.9 ``AclAuthorizer``,
``AclEntry``).

If an authorizer is configured, operations without a matching ACL are denied.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from kframe.plugin import KframeError
from kframe.plugin.server import WILDCARD, AclOperation, AclResourceType, PatternType, applies, is_allowed
from kframe_kafka_wire.records.acls import AclTable, ResourcePattern, read_acl_changes, read_acls
from kframe_kafka_wire.records.principals import Principal
from kframe_kafka_wire.records.store import Records

_log = logging.getLogger("kframe.kafka_wire")

ACL_AUTHORIZER: Final = "kafka.security.authorizer.AclAuthorizer"
#: Seconds between two checks for changed ACLs, and between two unconditional reloads.
POLL_S: Final = 0.2
REFRESH_S: Final = 30.0
#: Seconds between two attempts of the first load: the store may be opened after the server.
_INITIAL_POLL_S: Final = 0.05


class OperationAuthorizer(Protocol):
    """Decides whether a principal may do an operation."""

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> bool:
        """Whether ``principal`` on ``host`` may do the operation on the resource. Callable from any thread."""


class Authorizer(OperationAuthorizer, Protocol):
    """Decides also about all resources of a type."""

    def allows_any(self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType) -> bool:
        """Whether ``principal`` may do the operation on any resource of this type. Callable from any thread.

        See ``authorizeByResourceType``.
        """

    def is_ready(self) -> bool:
        """Whether the rules are loaded. Until then no request is answered."""


class FixedAuthorizer:
    """Decides without ACLs: allows everything if no authorizer is configured, else only super users."""

    def __init__(self, super_users: frozenset[str] | None = None) -> None:
        """``super_users`` are given if the configured authorizer is not supported."""
        self.super_users = super_users

    def is_ready(self) -> bool:
        """Always true."""
        return True

    def allows_any(self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType) -> bool:
        """Whether the principal may do anything."""
        return self.super_users is None or str(principal) in self.super_users

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> bool:
        """Whether the principal may do anything."""
        return self.allows_any(principal, host, operation, kind)


class AclAuthorizer:
    """Authorizes by the entries that ``read`` returns. They are read again when the result of ``changes`` differs.

    Reading happens in a thread of its own. Before the first load, only ``super_users`` may do anything. If reading
    fails, the last entries stay in effect.
    """

    def __init__(
        self,
        read: Callable[[], AclTable],
        super_users: frozenset[str] = frozenset(),
        *,
        allow_everyone: bool = False,
        changes: Callable[[], object] = lambda: None,
    ) -> None:
        """``allow_everyone``: the decision for resources without entries (``allow.everyone.if.no.acl.found``)."""
        self._read = read
        self._changes = changes
        self._last_changes: object = None
        self._read_s = float("-inf")
        self._super_users = super_users
        self._allow_everyone = allow_everyone
        self._table: AclTable | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kframe-acls", daemon=True)

    def start(self) -> None:
        """Read now. Then read periodically in a thread until ``stop``."""
        self.refresh()
        self._thread.start()

    def stop(self) -> None:
        """Stop reading ACLs."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def is_ready(self) -> bool:
        """Whether the entries were loaded once."""
        return self._table is not None

    def refresh(self) -> None:
        """Read the entries."""
        try:
            self._table = self._read()
            self._read_s = time.monotonic()
        except KframeError as error:
            if self.is_ready():
                _log.warning("ACLs cannot be read; the last ones remain in effect: %s", error)
            else:
                _log.debug("ACLs cannot be read yet: %s", error)

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> bool:
        """A denying entry wins over an allowing one. Without any entry for the resource the configured default
        applies."""
        if str(principal) in self._super_users:
            return True
        table = self._table
        if table is None:
            return False
        entries = table.entries_of(kind, name)
        return is_allowed(entries, str(principal), host, operation, default=self._allow_everyone)

    def allows_any(self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType) -> bool:
        """Whether an entry allows the operation, and no denying entry covers all of it (Kafka 3.9
        ``AclAuthorizer``)."""
        if str(principal) in self._super_users:
            return True
        table = self._table
        if table is None:
            return False
        applying = [
            (pattern, acl.allow)
            for pattern, acls in table.items()
            if pattern.kind is kind
            for acl in acls
            if applies(acl, str(principal), host, {operation})
        ]
        denied = {pattern for pattern, allow in applying if not allow}
        if any(pattern.pattern_type is PatternType.LITERAL and pattern.name == WILDCARD for pattern in denied):
            return False
        return self._allow_everyone or any(allow and not _is_covered(pattern, denied) for pattern, allow in applying)

    def _run(self) -> None:
        while not self._stopped.wait(POLL_S if self.is_ready() else _INITIAL_POLL_S):
            self.refresh_if_changed()

    def refresh_if_changed(self) -> None:
        """Read the entries if they have changed, were not read yet, or were read long ago."""
        try:
            changes = self._changes()
        except KframeError as error:
            _log.debug("it is not known whether ACLs were changed: %s", error)
            return
        if not self.is_ready() or changes != self._last_changes or time.monotonic() - self._read_s > REFRESH_S:
            self.refresh()
            self._last_changes = changes


def _is_covered(allowed: ResourcePattern, denied: set[ResourcePattern]) -> bool:
    """Whether denying entries cover the whole allowed pattern."""
    name, literal = allowed.name, allowed.pattern_type is PatternType.LITERAL
    if literal and name == WILDCARD:
        return False
    if literal and allowed in denied:
        return True
    prefixes = (ResourcePattern(allowed.kind, PatternType.PREFIXED, name[:end]) for end in range(1, len(name) + 1))
    return any(prefix in denied for prefix in prefixes)


def authorizer_of(config: Mapping[str, str], records: Records) -> Authorizer:
    """The authorizer of ``authorizer.class.name``: none, AclAuthorizer, or for other classes ``super.users`` only."""
    name = config.get("authorizer.class.name", "").strip()
    if not name:
        return FixedAuthorizer()
    super_users = frozenset(user.strip() for user in config.get("super.users", "").split(";") if user.strip())
    if name != ACL_AUTHORIZER:
        _log.warning("%s is not supported: only super.users are authorized", name)
        return FixedAuthorizer(super_users)
    everyone = config.get("allow.everyone.if.no.acl.found", "false").strip().lower() == "true"
    return AclAuthorizer(
        lambda: read_acls(records), super_users, allow_everyone=everyone, changes=lambda: read_acl_changes(records)
    )
