"""Random ACLs and requests: kframe's authorizer answers as Kafka 4.4's own ``StandardAuthorizer``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

import pytest
from kframe_kafka_wire.records.principals import parse_principal
from kframe_kraft.server.authorizer import AuthorizerSettings, StandardAuthorizer

import verification.kraft
from kframe.plugin.kraft import ClusterMetadata, replay
from kframe.plugin.server import AclOperation, AclResourceType, PatternType, Permission
from verification.kraft.kafka_records import metadata_jars
from verification.kraft.secured_controller import AclLine
from verification.zookeeper.java import JVM, compiled

pytestmark = pytest.mark.real

CASES: Final = int(os.environ.get("KFRAME_AUTHORIZER_CASES", "2000"))
REQUESTS: Final = 20
CLIENTS: Final = ("User:ann", "User:bob", "Group:ann", "User:root", "User:a:b")
PRINCIPALS: Final = (*CLIENTS, "User:*")
NAMES: Final = ("a", "ab", "abc", "b", "abd", "kafka-cluster", "ac")
KINDS: Final = (AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER)
OPERATIONS: Final = tuple(set(AclOperation) - {AclOperation.ANY})
ACL_HOSTS: Final = (
    "*",
    "*",
    "*",
    "10.0.0.1",
    "10.0.0.0/24",
    "10.0.0.2/31",
    "::/0",
    "0:0:0:0:0:0:0:1",
    "2001:db8::/32",
    "x/8",
)
HOSTS: Final = ("10.0.0.1", "10.0.0.3", "10.0.1.1", "::1", "2001:db8::5")


class Request(NamedTuple):
    """An operation of a principal on a resource."""

    principal: str
    host: str
    operation: AclOperation
    kind: AclResourceType
    name: str


class Oracle:
    """Kafka's authorizer in a Java process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answers(self, settings: AuthorizerSettings, acls: list[AclLine], requests: list[Request]) -> list[bool]:
        """Whether Kafka allows each request."""
        lines = [
            f"{acl.kind} {acl.name} {acl.pattern_type} {acl.principal} {acl.host} {acl.operation} {acl.permission}"
            for acl in acls
        ]
        users, everyone = ";".join(sorted(settings.super_users)), str(settings.allow_everyone).lower()
        asked = "|".join(" ".join(map(str, request)) for request in requests)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{users}\t{everyone}\t{'|'.join(lines)}\t{asked}\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().strip()
        assert len(reply) == len(requests), reply
        return [answer == "1" for answer in reply]


@contextmanager
def oracle() -> Iterator[Oracle]:
    source = Path(verification.kraft.__file__).parent / "AuthorizerOracle.java"
    command = ["java", *JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", compiled(source, metadata_jars())]
    process = subprocess.Popen(
        [*command, "AuthorizerOracle"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    try:
        yield Oracle(process)
    finally:
        process.communicate(timeout=60)


def random_acl(random: Random) -> AclLine:
    pattern_type = random.choice((PatternType.LITERAL, PatternType.PREFIXED))
    names = (*NAMES, "*") if pattern_type is PatternType.LITERAL else NAMES
    return AclLine(
        random.choice(OPERATIONS),
        random.choice(names),
        random.choice(KINDS),
        pattern_type,
        random.choice(PRINCIPALS),
        random.choice(ACL_HOSTS),
        random.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def random_request(random: Random) -> Request:
    operation = random.choice(OPERATIONS)
    return Request(random.choice(CLIENTS), random.choice(HOSTS), operation, random.choice(KINDS), random.choice(NAMES))


def test_random_requests_are_answered_as_by_kafka() -> None:
    random, counts = Random(7), {True: 0, False: 0}
    with oracle() as kafka:
        for _ in range(CASES):
            settings = AuthorizerSettings(frozenset({"User:root"}), random.random() < 0.3)
            acls = list({random_acl(random) for _ in range(random.randrange(25))})
            requests = [random_request(random) for _ in range(REQUESTS)]
            metadata = ClusterMetadata()
            for number, acl in enumerate(acls):
                replay(metadata, acl.record(UUID(int=number + 1)), 0)
            authorizer = StandardAuthorizer(metadata, settings)
            for request, expected in zip(requests, kafka.answers(settings, acls, requests), strict=True):
                answer = authorizer.allows(parse_principal(request.principal), *request[1:])
                assert answer == expected, (settings, request, acls)
                counts[answer] += 1
    assert min(counts.values()) > CASES
