"""Calls of Kafka's command-line tools whose outputs are compared under kframe and under Kafka's own controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

#: ``prepare`` creates these before the comparison.
TOPIC, OTHER_TOPIC, GROUP = "parity", "parity-other", "parity-group"
PARTITIONS, RECORDS = 3, 12
_TOPIC: Final = ("--entity-type", "topics", "--entity-name", TOPIC)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool. ``input`` is its standard input.

    In the arguments, ``{broker}`` is replaced by the id of a broker. ``{unique}`` is replaced by a number that no other
    call has, because a deleted topic may still exist during the next call. The calls in ``after`` undo the call; their
    outputs are compared as well. ``shows`` is in the output once nodes have applied the change of the call before.
    """

    tool: str
    arguments: tuple[str, ...]
    input: str = ""
    after: tuple[ToolCall, ...] = ()
    shows: str = ""

    @property
    def name(self) -> str:
        """The command line. It omits address and credentials."""
        return " ".join((self.tool, *self.arguments))

    def steps(self) -> Iterator[ToolCall]:
        """The call and those after it."""
        yield self
        yield from self.after


def call(tool: str, *arguments: str, stdin: str = "", after: tuple[ToolCall, ...] = ()) -> ToolCall:
    """A call with its arguments."""
    return ToolCall(tool, arguments, stdin, after)


def _describe(*entity: str) -> ToolCall:
    return call("kafka-configs", "--describe", *entity)


def _alter(*entity: str, add: str, delete: str) -> ToolCall:
    """Add, show and delete settings."""
    undo = call("kafka-configs", "--alter", *entity, "--delete-config", delete)
    shown = replace(_describe(*entity), shows=delete.partition(",")[0])
    return call("kafka-configs", "--alter", *entity, "--add-config", add, after=(shown, undo))


def _acl(*resource: str) -> ToolCall:
    """Add, list and remove an ACL."""
    entry = ("--allow-principal", "User:added", "--operation", "Read", *resource)
    undo = call("kafka-acls", "--remove", "--force", *entry)
    return call("kafka-acls", "--add", *entry, after=(call("kafka-acls", "--list", "--principal", "User:added"), undo))


#: Calls that change nothing.
READING: Final = (
    call("kafka-acls", "--list"),
    call("kafka-acls", "--list", "--topic", TOPIC),
    call("kafka-acls", "--list", "--topic", "pre-x", "--resource-pattern-type", "match"),
    call("kafka-acls", "--list", "--topic", "pre-", "--resource-pattern-type", "prefixed"),
    call("kafka-acls", "--list", "--cluster", "--principal", "User:alice"),
    _describe("--entity-type", "users"),
    _describe("--entity-type", "clients"),
    _describe("--entity-type", "ips"),
    _describe("--entity-type", "users", "--entity-name", "alice"),
    _describe("--entity-type", "users", "--entity-default"),
    _describe("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app"),
    _describe("--entity-type", "clients", "--entity-default"),
    _describe("--entity-type", "ips", "--entity-name", "127.0.0.9"),
    _describe("--entity-type", "topics"),
    _describe(*_TOPIC),
    _describe(*_TOPIC, "--all"),
    _describe("--entity-type", "topics", "--entity-name", "missing"),
    _describe("--entity-type", "brokers", "--entity-default"),
    _describe("--entity-type", "brokers", "--entity-name", "{broker}"),
    _describe("--entity-type", "brokers"),
    _describe("--entity-type", "broker-loggers", "--entity-name", "{broker}"),
    _describe("--entity-type", "client-metrics"),
    call("kafka-client-metrics", "--list"),
    call("kafka-topics", "--list"),
    call("kafka-topics", "--describe"),
    call("kafka-topics", "--describe", "--topic", TOPIC),
    call("kafka-topics", "--describe", "--topic", "missing"),
    call("kafka-topics", "--describe", "--unavailable-partitions"),
    call("kafka-topics", "--describe", "--under-replicated-partitions"),
    call("kafka-topics", "--describe", "--topics-with-overrides"),
    call("kafka-consumer-groups", "--list"),
    call("kafka-consumer-groups", "--list", "--state"),
    call("kafka-consumer-groups", "--describe", "--group", GROUP),
    call("kafka-consumer-groups", "--describe", "--group", GROUP, "--state"),
    call("kafka-consumer-groups", "--describe", "--group", GROUP, "--members"),
    call("kafka-consumer-groups", "--describe", "--all-groups"),
    call("kafka-cluster", "cluster-id"),
    call("kafka-cluster", "unregister", "--id", "99"),
    call("kafka-broker-api-versions"),
    call("kafka-features", "describe"),
    call("kafka-log-dirs", "--describe"),
    call("kafka-log-dirs", "--describe", "--broker-list", "{broker}", "--topic-list", TOPIC),
    call("kafka-get-offsets"),
    call("kafka-get-offsets", "--topic", TOPIC, "--time", "-2"),
    call("kafka-metadata-quorum", "describe", "--status"),
    call("kafka-transactions", "list"),
    call("kafka-transactions", "describe", "--transactional-id", "missing"),
    call("kafka-transactions", "describe-producers", "--topic", TOPIC, "--partition", "0"),
    call("kafka-delegation-tokens", "--describe"),
    call("kafka-delegation-tokens", "--describe", "--owner-principal", "User:alice"),
    call("kafka-reassign-partitions", "--list"),
    call("kafka-leader-election", "--election-type", "preferred", "--topic", TOPIC, "--partition", "0"),
    call("kafka-console-consumer", "--topic", TOPIC, "--partition", "0", "--offset", "earliest", "--max-messages", "1",
         "--timeout-ms", "20000"),
    call("kafka-console-consumer", "--topic", TOPIC, "--from-beginning", "--max-messages", str(RECORDS), "--timeout-ms",
         "20000", "--consumer-property", "enable.auto.commit=false", "--group", "readers-{unique}",
         after=(call("kafka-consumer-groups", "--delete", "--group", "readers-{unique}"),)),
)  # fmt: skip
#: Calls that change something, each with calls that undo the change.
WRITING: Final = (
    _acl("--topic", "added"),
    _acl("--topic", "added-", "--resource-pattern-type", "prefixed"),
    _acl("--cluster"),
    _acl("--group", "added"),
    call("kafka-acls", "--remove", "--force", "--topic", "missing"),
    _alter("--entity-type", "users", "--entity-name", "added", add="producer_byte_rate=1000,request_percentage=12.5",
           delete="producer_byte_rate,request_percentage"),
    _alter("--entity-type", "users", "--entity-name", "added", add="SCRAM-SHA-512=[iterations=4096,password=x]",
           delete="SCRAM-SHA-512"),
    _alter("--entity-type", "users", "--entity-name", "added", "--entity-type", "clients", "--entity-default",
           add="consumer_byte_rate=7", delete="consumer_byte_rate"),
    _alter("--entity-type", "clients", "--entity-name", "added", add="controller_mutation_rate=3.25",
           delete="controller_mutation_rate"),
    _alter("--entity-type", "ips", "--entity-name", "127.0.0.7", add="connection_creation_rate=5",
           delete="connection_creation_rate"),
    _alter("--entity-type", "clients", "--entity-name", "added", add="unknown_rate=3", delete="unknown_rate"),
    _alter(*_TOPIC, add="max.message.bytes=54321", delete="max.message.bytes"),
    _alter("--entity-type", "brokers", "--entity-default", add="log.retention.ms=777", delete="log.retention.ms"),
    call("kafka-topics", "--create", "--topic", "added-{unique}", "--partitions", "1", "--replication-factor", "1",
         after=(call("kafka-topics", "--delete", "--topic", "added-{unique}"),)),
    call("kafka-topics", "--delete", "--topic", "missing"),
    call("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1"),
    call("kafka-delegation-tokens", "--renew", "--renew-time-period", "-1", "--hmac", "bWlzc2luZw=="),
    call("kafka-delegation-tokens", "--expire", "--expiry-time-period", "-1", "--hmac", "bWlzc2luZw=="),
    call("kafka-console-producer", "--topic", OTHER_TOPIC, stdin="a\nb\n"),
    call("kafka-producer-perf-test", "--topic", OTHER_TOPIC, "--num-records", "5", "--record-size", "10",
         "--throughput", "-1"),
    call("kafka-features", "upgrade", "--feature", "metadata.version=20"),
)  # fmt: skip
#: Calls whose requests any node may receive, by tools that send few other requests.
ANY_NODE: Final = tuple(
    each for each in READING if each.tool in ("kafka-acls", "kafka-configs", "kafka-delegation-tokens", "kafka-topics")
)
