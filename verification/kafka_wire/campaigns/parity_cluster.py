"""The cluster whose answers are compared: its listeners, principals and ACLs, under Kafka's controller or kframe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER

from verification.kafka_wire.campaigns.parity_calls import (
    GROUP,
    OTHER_TOPIC,
    PARTITIONS,
    READING,
    RECORDS,
    TOPIC,
)
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.secured import PLAIN_MODULE, SCRAM_MODULE, login, tls_settings
from verification.kafka_wire.tools import Tools
from verification.zookeeper.certificates import Authority
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.servers import HOST

KFRAME: Final = 1000
SUPER, ALLOWED, DENIED, ANONYMOUS = "kafka", "alice", "eve", "anonymous"
SCRAM: Final = "SCRAM-SHA-256"
_PASSWORDS: Final = {SUPER: "secret", ALLOWED: "a-secret", DENIED: "x"}
_ALLOWED: Final = ("Describe", "DescribeConfigs")


@dataclass(frozen=True, slots=True)
class Setup:
    """The security of a cluster."""

    tls: bool
    authorizer: bool

    @property
    def name(self) -> str:
        """The name in reports and folders."""
        return f"{'TLS' if self.tls else 'plain'}-{'authorizer' if self.authorizer else 'open'}"

    @property
    def protocols(self) -> tuple[str, str]:
        """The protocols of the listeners. The second requires passwords."""
        return ("SSL", "SASL_SSL") if self.tls else ("PLAINTEXT", "SASL_PLAINTEXT")


SETUPS: Final = tuple(Setup(tls, authorizer) for tls in (False, True) for authorizer in (True, False))


@dataclass(frozen=True, slots=True)
class ClientPrincipal:
    """A principal at a listener."""

    principal: str
    protocol: str
    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name in reports."""
        mechanism = self.settings.get("sasl.mechanism")
        return f"{self.principal} on {self.protocol}" + (f" ({mechanism})" if mechanism else "")


class ParityCluster:
    """Brokers under Kafka's controller with example content. ``take_over`` makes kframe the controller."""

    def __init__(self, folder: Path, zookeeper: str, setup: Setup, brokers: int) -> None:
        self.setup = setup
        self.folder = folder
        self._zookeeper = zookeeper
        self._authority = Authority(folder / "tls")
        first, second = setup.protocols
        users = " ".join(f'user_{name}="{password}"' for name, password in _PASSWORDS.items())
        self._shared = {
            "inter.broker.listener.name": second,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "super.users": "User:kafka;User:CN=kafka",
            "delegation.token.secret.key": "of-all-nodes",
            "inter.broker.protocol.version": "3.9",
            f"listener.name.{second.lower()}.plain.sasl.jaas.config": f'{PLAIN_MODULE} username="{SUPER}" '
            f'password="{_PASSWORDS[SUPER]}" {users};',
            f"listener.name.{second.lower()}.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE};",
        }
        if setup.authorizer:
            self._shared["authorizer.class.name"] = ACL_AUTHORIZER
        if setup.tls:
            self._shared |= {"ssl.client.auth": "requested", **self._tls("node")}
        settings = {
            "listeners": f"{first}://{HOST}:{{port}},{second}://{HOST}:{{other_port}}",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        ids = range(1, brokers + 1)
        self.cluster = Cluster(folder, zookeeper, ids, {**self._shared, **settings})
        self.kframe: InstanceProcess | None = None

    def start(self) -> None:
        """Start the brokers, of which one becomes controller."""
        self.cluster.start()

    def take_over(self) -> None:
        """Start kframe, and wait until all brokers know it as controller."""
        first, second = self.setup.protocols
        listeners = {"listeners": f"{first}://{{address}},{second}://{{other_address}}"}
        self.kframe = InstanceProcess(
            self._zookeeper, self.folder / "kframe", KFRAME, "--insist", settings={**self._shared, **listeners}
        )
        self.kframe.await_ready(active=True)

    def end(self) -> None:
        """Kill all processes."""
        self.cluster.kill()
        if self.kframe is not None:
            self.kframe.kill()

    def clients(self) -> Iterator[ClientPrincipal]:
        """Every principal on every listener."""
        first, second = self.setup.protocols
        tls = self._tls(None) if self.setup.tls else {}
        yield ClientPrincipal(ANONYMOUS, first, {"security.protocol": first, **tls})
        for name, password in _PASSWORDS.items():
            if self.setup.tls:
                yield ClientPrincipal(name, first, {"security.protocol": first, **self._tls(name)})
            for mechanism in ("PLAIN",) if self.setup.tls else ("PLAIN", SCRAM):
                yield ClientPrincipal(
                    name, second, {"security.protocol": second, **tls, **login(mechanism, name, password)}
                )

    def address(self, protocol: str) -> str:
        """The bootstrap address of the first broker."""
        broker = self.cluster.brokers[1]
        return broker.address if protocol == self.setup.protocols[0] else f"{HOST}:{broker.other_port}"

    def _tls(self, name: str | None) -> dict[str, str]:
        key = None if name is None else self._authority.issue(name, HOST).key_and_certificate
        return tls_settings(self._authority.path, key)


def prepare(tools: Tools, setup: Setup) -> None:
    """Create the topics, records, group, quotas, credentials and ACLs that the calls show."""
    for topic in (TOPIC, OTHER_TOPIC):
        config_options = ("--config", "retention.ms=360000000") if topic == TOPIC else ()
        tools.run(
            "kafka-topics",
            "--create",
            "--topic",
            topic,
            "--partitions",
            str(PARTITIONS),
            "--replication-factor",
            "1",
            *config_options,
        )
    stdin = "".join(f"{number}:value-{number}\n" for number in range(RECORDS))
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    tools.run("kafka-console-producer", "--topic", TOPIC, *keyed, stdin=stdin)
    tools.run(
        "kafka-console-consumer",
        "--topic",
        TOPIC,
        "--group",
        GROUP,
        "--from-beginning",
        "--max-messages",
        str(RECORDS),
        "--timeout-ms",
        "60000",
    )
    for kind, name, config in (
        ("users", "alice", "producer_byte_rate=1000000"),
        *(("users", user, f"{SCRAM}=[iterations=4096,password={word}]") for user, word in _PASSWORDS.items()),
        ("users", "bob?=/&", "SCRAM-SHA-512=[iterations=4096,password=pencil]"),
        ("clients", "app", "consumer_byte_rate=2000000,request_percentage=150.5"),
        ("ips", "127.0.0.9", "connection_creation_rate=77"),
    ):
        tools.run("kafka-configs", "--alter", "--entity-type", kind, "--entity-name", name, "--add-config", config)
    for kind, config in {"users": "producer_byte_rate=9000000", "clients": "controller_mutation_rate=1000.25"}.items():
        tools.run("kafka-configs", "--alter", "--entity-type", kind, "--entity-default", "--add-config", config)
    tools.run(
        "kafka-configs",
        "--alter",
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
        "--entity-type",
        "clients",
        "--entity-name",
        "app",
        "--add-config",
        "producer_byte_rate=500000",
    )
    tools.run(
        "kafka-producer-perf-test",
        "--topic",
        OTHER_TOPIC,
        "--num-records",
        "5",
        "--record-size",
        "10",
        "--throughput",
        "-1",
        "--transactional-id",
        "parity",
        "--transaction-duration-ms",
        "60000",
    )
    for each in READING:
        tools.run_with_code(each.tool, *each.arguments)  # Some calls create a group, or the loggers of a broker.
    tools.run("kafka-delegation-tokens", "--create", "--max-life-time-period", "-1", "--owner-principal", "User:alice")
    if setup.authorizer:
        _allow(tools)


def _allow(tools: Tools) -> None:
    """Allow alice to describe the cluster and to use a topic. Allow anonymous clients to describe a topic."""
    for user in ("User:alice", "User:CN=alice"):
        for operation in _ALLOWED:
            tools.run("kafka-acls", "--add", "--allow-principal", user, "--operation", operation, "--cluster")
        for operation in ("Read", "Write"):
            tools.run(
                "kafka-acls",
                "--add",
                "--allow-principal",
                user,
                "--operation",
                operation,
                "--topic",
                OTHER_TOPIC[:6],
                "--resource-pattern-type",
                "prefixed",
            )
        tools.run("kafka-acls", "--add", "--allow-principal", user, "--operation", "Read", "--group", "*")
    tools.run("kafka-acls", "--add", "--allow-principal", "User:ANONYMOUS", "--operation", "Describe", "--topic", TOPIC)
    tools.run(
        "kafka-acls",
        "--add",
        "--deny-principal",
        "User:eve",
        "--deny-host",
        "10.0.0.1",
        "--operation",
        "All",
        "--topic",
        "pre-",
        "--resource-pattern-type",
        "prefixed",
    )
