"""A KRaft controller of kframe with logins and ACLs, and clients that log in, for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from kframe_kafka_wire.connections.broker import Target
from kframe_kafka_wire.connections.node import CLIENT_ID, NodeConnection
from kframe_kafka_wire.listeners.security import Credentials
from kframe_kraft.server.authorizer import AUTHORIZER, STANDARD_AUTHORIZER
from kframe_kraft.server.serving import ServedController

from kframe.plugin.kraft import records
from kframe.plugin.server import AclOperation, AclResourceType, PatternType, Permission
from verification.kraft.served_controller import address, formatted, served

#: A super user.
ADMIN: Final = "admin"


def secured_config(*users: str) -> dict[str, str]:
    """The keys of a listener with logins by PLAIN and SCRAM, and of an authorizer. ``users`` log in by PLAIN."""
    logins = " ".join(f'user_{user}="{password_of(user)}"' for user in (ADMIN, *users))
    return {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.controller.plain.sasl.jaas.config": f"x.PlainLoginModule required {logins};",
        "connection.failed.authentication.delay.ms": "0",
        AUTHORIZER: STANDARD_AUTHORIZER,
        "super.users": f"User:{ADMIN}",
    }


def password_of(user: str) -> str:
    """The password of a user of PLAIN."""
    return f"{user}-secret"


@dataclass(frozen=True, slots=True)
class AclLine:
    """An ACL: what a principal may do, or not."""

    operation: AclOperation
    name: str
    kind: AclResourceType = AclResourceType.TOPIC
    pattern_type: PatternType = PatternType.LITERAL
    principal: str = "User:ann"
    host: str = "*"
    permission: Permission = Permission.ALLOW

    def creation(self) -> dict[str, Any]:
        """The element of a CreateAcls request."""
        return {
            "resource_type": self.kind,
            "resource_name": self.name,
            "resource_pattern_type": self.pattern_type,
            "principal": self.principal,
            "host": self.host,
            "operation": self.operation,
            "permission_type": self.permission,
        }

    def record(self, acl_id: UUID) -> records.AccessControlEntryRecord:
        """The record in the metadata log."""
        fields = {**self.creation(), "pattern_type": self.pattern_type}
        del fields["resource_pattern_type"]
        return records.AccessControlEntryRecord(id=acl_id, **fields)


#: Selects every ACL.
EVERY_ACL: Final = {
    "resource_type_filter": AclResourceType.ANY,
    "resource_name_filter": None,
    "pattern_type_filter": PatternType.ANY,
    "principal_filter": None,
    "host_filter": None,
    "operation": AclOperation.ANY,
    "permission_type": Permission.ANY,
}


class SecuredController:
    """The controller, and connections of users, each opened once."""

    def __init__(self, controller: ServedController) -> None:
        self.controller = controller
        self._stack = ExitStack()
        self._clients: dict[str, NodeConnection] = {}

    def login(self, credentials: Credentials) -> NodeConnection:
        """A new connection. Raises PermanentFailure."""
        target = Target(*address(self.controller), None, credentials, CLIENT_ID)
        client = NodeConnection(target, reply_bytes_max=2**22)
        self._stack.callback(client.close)
        return client

    def client(self, user: str = ADMIN) -> NodeConnection:
        """The connection of a user, by PLAIN."""
        if user not in self._clients:
            self._clients[user] = self.login(Credentials("PLAIN", user, password_of(user)))
        return self._clients[user]

    def add_acls(self, *acls: AclLine) -> None:
        """Create ACLs."""
        results = self.client().ask(30, {"creations": [acl.creation() for acl in acls]})["results"]
        assert [each["error_code"] for each in results] == [0] * len(acls)

    def close(self) -> None:
        """Close all connections."""
        self._stack.close()


@contextmanager
def secured(directory: Path, config: Mapping[str, str]) -> Iterator[SecuredController]:
    """A controller on a new directory, until the end of the block. Brokers keep their sessions."""
    with served(formatted(directory), config=config, session_timeout_ns=10**15) as controller:
        users = SecuredController(controller)
        try:
            yield users
        finally:
            users.close()
