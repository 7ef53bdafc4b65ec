"""The authorizer of a KRaft controller: the ACLs in the metadata (Kafka 4.4 ``StandardAuthorizer``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from typing import Final

from kframe_kafka_wire.access.authorizer import FixedAuthorizer, OperationAuthorizer
from kframe_kafka_wire.records.principals import Principal, parse_principal

from kframe.plugin import ConfigError
from kframe.plugin.kraft import ClusterMetadata, records
from kframe.plugin.server import AclOperation, AclResourceType, is_allowed, patterns_of
from kframe.plugin.settings import boolean

AUTHORIZER: Final = "authorizer.class.name"
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS: Final = "super.users"
EVERYONE: Final = "allow.everyone.if.no.acl.found"


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """``super_users`` may do everything. ``allow_everyone``: everyone may use resources without ACLs."""

    super_users: frozenset[str]
    allow_everyone: bool


class StandardAuthorizer:
    """Authorizes by the ACLs of ``metadata``, which another thread may change."""

    def __init__(self, metadata: ClusterMetadata, settings: AuthorizerSettings) -> None:
        self._metadata = metadata
        self._settings = settings

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> bool:
        """See ``OperationAuthorizer``."""
        if str(principal) in self._settings.super_users:
            return True
        return is_allowed(
            self._entries(kind, name),
            str(principal),
            host_address(host),
            operation,
            default=self._settings.allow_everyone,
            has_ranges=True,
        )

    def _entries(self, kind: AclResourceType, name: str) -> Iterator[records.AccessControlEntryRecord]:
        """The ACLs that apply to a resource."""
        acls = self._metadata.acls_by_pattern
        for pattern_type, text in patterns_of(name):
            entries = acls.get((kind, pattern_type, text))
            if entries is not None:
                yield from tuple(entries.values())  # A copy at once: the thread that decides may add entries.


def host_address(host: str) -> str:
    """An address as Java writes it, and ACLs name it: IPv6 without ``::`` (Java ``Inet6Address.getHostAddress``)."""
    address, percent, scope = host.partition("%")
    try:
        parsed = IPv6Address(address)
    except AddressValueError:
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + scope


def authorizer_settings(config: Mapping[str, str]) -> AuthorizerSettings | None:
    """The settings by Kafka's keys; None without an authorizer. Raises ConfigError."""
    name = config.get(AUTHORIZER, "").strip()
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise ConfigError(f"config key {AUTHORIZER}", name, f"{STANDARD_AUTHORIZER}, or nothing")
    users = [user.strip() for user in config.get(SUPER_USERS, "").split(";") if user.strip()]
    try:
        super_users = frozenset(str(parse_principal(user)) for user in users)
    except ValueError as error:
        raise ConfigError(f"config key {SUPER_USERS}", str(error), "TYPE:NAME[;TYPE:NAME]...") from None
    return AuthorizerSettings(super_users, boolean(f"config key {EVERYONE}", config.get(EVERYONE, "false")))


def authorizer_of(settings: AuthorizerSettings | None, metadata: ClusterMetadata) -> OperationAuthorizer:
    """The authorizer of these settings: without any, everything is allowed."""
    return FixedAuthorizer() if settings is None else StandardAuthorizer(metadata, settings)
