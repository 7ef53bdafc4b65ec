"""Tables of users with ACLs, the controller that knows them, and what its responses say, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kframe.errors import ErrorCode
from kframe.plugin.server import CLUSTER, AclOperation, AclResourceType, PatternType, Permission
from verification.kraft.secured_controller import AclLine, SecuredController, secured, secured_config
from verification.kraft.served_controller import FakeBroker

NONE = ErrorCode.NONE
NO_CLUSTER, NO_TOPIC, NO_GROUP = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
)
TOPIC_KIND, CLUSTER_KIND, GROUP_KIND = AclResourceType.TOPIC, AclResourceType.CLUSTER, AclResourceType.GROUP
PREFIXED, DENY = PatternType.PREFIXED, Permission.DENY
(
    ALL,
    READ,
    CREATE,
    DELETE,
    ALTER,
    DESCRIBE,
    CLUSTER_ACTION,
    DESCRIBE_CONFIGS,
    ALTER_CONFIGS,
) = (
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


class UserTable:
    """The users of a table of tests, and the ACLs of each."""

    def __init__(self) -> None:
        self._acls = [AclLine(ALL, CLUSTER, CLUSTER_KIND, principal="User:admin", permission=DENY)]
        self._users: list[str] = []

    def granted(self, *acls: AclLine) -> str:
        """The name of a user with these ACLs, and no others."""
        user = f"user{len(self._users)}"
        self._users.append(user)
        self._acls.extend(replace(acl, principal=f"User:{user}") for acl in acls)
        return user

    @contextmanager
    def started(self, directory: Path, topics: Iterable[str]) -> Iterator[SecuredController]:
        """A controller with two brokers, these topics and all ACLs, until the end of the block."""
        with secured(directory, secured_config(*self._users)) as started:
            for broker_id in (0, 1):
                fake = FakeBroker(started.client(), broker_id)
                fake.register()
                fake.heartbeat(fake.epoch)
            body = {"topics": [topic(name) for name in topics], "timeout": 1000, "validate_only": False}
            assert codes(started.client().ask(19, body)) == {NONE}
            started.add_acls(*self._acls)
            yield started


def on_cluster(operation: AclOperation, **fields: Any) -> AclLine:
    """An ACL of the cluster."""
    return AclLine(operation, CLUSTER, CLUSTER_KIND, **fields)


def topic(name: str) -> dict[str, Any]:
    """A topic of a CreateTopics request."""
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}


def codes(response: object) -> set[int]:
    """All error codes in a response."""
    if isinstance(response, Mapping):
        own = {value for key, value in response.items() if key in ("error_code", "partition_error_code")}
        return own.union(*(codes(value) for value in response.values()))
    if isinstance(response, Sequence) and not isinstance(response, str | bytes):
        return set().union(*(codes(each) for each in response))
    return set()
