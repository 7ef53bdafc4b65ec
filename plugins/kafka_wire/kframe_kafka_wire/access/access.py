"""What the client of a request may do."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType
from kframe_kafka_wire.access.authorizer import OperationAuthorizer
from kframe_kafka_wire.access.session import ClientSession
from kframe_kafka_wire.records.acls import SUPPORTED

_log = logging.getLogger("kframe.kafka_wire")


@dataclass(frozen=True, slots=True)
class Access:
    """What ``authorizer`` allows the client of ``session`` (Kafka ``AuthHelper``). Callable from any thread."""

    authorizer: OperationAuthorizer
    session: ClientSession

    def is_authorized(
        self,
        operation: AclOperation,
        kind: AclResourceType = AclResourceType.CLUSTER,
        name: str = CLUSTER,
        *,
        log_denied: bool = True,
    ) -> bool:
        """Whether the client may do the operation on a resource."""
        session = self.session
        allowed = self.authorizer.allows(session.principal, session.host, operation, kind, name)
        if not allowed and log_denied:
            _log.info(
                "%s from %s is denied %s of %s %s", session.principal, session.host, operation.name, kind.name, name
            )
        return allowed

    def operations(self, kind: AclResourceType, name: str) -> int:
        """The authorized operations on a resource as a bit mask."""
        allowed = (op for op in SUPPORTED[kind] if self.is_authorized(op, kind, name, log_denied=False))
        return sum(1 << operation for operation in allowed)
