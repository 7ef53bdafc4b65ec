"""Run Kafka's tools on a cluster under Kafka's own controller, then under kframe. The outputs must be the same.

Brokers and kframe have two listeners, with and without passwords, each with or without TLS. Each call runs as every
principal: ``kafka`` may do anything, ``alice`` some things, ``eve`` nothing, and anonymous clients may describe a
topic. Passwords are checked by PLAIN, and without TLS also by SCRAM.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from kframe_kafka_wire.access.authorizer import ACL_AUTHORIZER

from verification.kafka_wire.campaigns.parity_calls import (
    GROUP,
    OTHER_TOPIC,
    PARTITIONS,
    READING,
    RECORDS,
    TOPIC,
    WRITING,
    ToolCall,
)
from verification.kafka_wire.campaigns.parity_report import Outputs, ParityComparison, compare, page
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.secured import PLAIN_MODULE, SCRAM_MODULE, login, tls_settings
from verification.kafka_wire.tools import Tools, jars
from verification.zookeeper.certificates import Authority
from verification.zookeeper.java import missing
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.servers import HOST, ServerHandle, ServerOptions, running
from verification.zookeeper.tools import ToolProcess

__all__ = ["SETUPS", "Rounds", "Setup", "add_options", "compared", "missing", "normalized", "page", "run"]

KFRAME: Final = 1000
SUPER, ALLOWED, DENIED, ANONYMOUS = "kafka", "alice", "eve", "anonymous"
SCRAM: Final = "SCRAM-SHA-256"
_PASSWORDS: Final = {SUPER: "secret", ALLOWED: "a-secret", DENIED: "x"}
#: Short client timeouts, so that a missing response is a difference and does not block the test.
_CLIENT: Final = {"request.timeout.ms": "15000", "default.api.timeout.ms": "30000"}
_UNIQUE: Final = count(1)
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


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often calls run under kframe. Each round runs every call at most once as every client."""

    repeat: int
    """A call runs in at least this many rounds."""
    tool_runs: int = 0
    """A tool's calls run in further rounds until it has run this many times as each client."""
    seconds: float = float("inf")
    """The latest start of a round after the first."""

    def includes(self, number: int, tool_runs: int) -> bool:
        """Whether a call runs in this round, after ``tool_runs`` runs of its tool in earlier rounds."""
        return number < self.repeat or tool_runs < self.tool_runs


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


#: Patterns of output that differs in every run, and their replacements.
_VARYING: Final = (
    (re.compile(rf"{re.escape(HOST)}:\d+"), "HOST:PORT"),
    (re.compile(r"\d+\.?\d* records/sec.*"), "RATES"),
    (
        re.compile(r"Request Request\(.*?\) is not authorized|Request \w+ of \S+ is not authorized", re.DOTALL),
        "Request is not authorized",
    ),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d\.\d+Z)?|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+|\d{13}"), "TIME"),
    (re.compile(r"(?<=Created delegation token with tokenId : )\S+|^\S{22} \S{88}(?= )", re.MULTILINE), "TOKEN"),
    (re.compile(r"(?<=^TOKEN )(User:\S+)\s+User:\S+", re.MULTILINE), r"\1"),  # The requester of the token.
    (re.compile(r"(?<=number of tokens : )\d+|(?<=\"size\":)\d+|(?<=^parity-other:\d:)\d+", re.MULTILINE), "NUMBER"),
    # Topics that are created and deleted meanwhile.
    (re.compile(r"^(__\w+:\d+:\d+|.*\badded-\d+-0\b.*|added-\d+)$", re.MULTILINE), ""),
    (re.compile(r"^(\s*Topic: added-\d+\b.*|Dynamic configs for topic added-\d+ .*)$", re.MULTILINE), ""),
    (re.compile(r"\badded-\d+\b"), "ADDED"),
    # Groups that a client may not delete: brokers delete an empty group with any topic, or after some minutes.
    (re.compile(r"^(readers-\d+(\s+\w+)?\s*|Consumer group 'readers-\d+' has no active members\.)$", re.MULTILINE), ""),
    (re.compile(r"\breaders-\d+\b"), "READERS"),
    (re.compile(r"^  \S+=\w+ sensitive=false synonyms={}$", re.MULTILINE), ""),  # Loggers appear and disappear.
    (re.compile(r"(?<=[\[}]),?{"), "\n"),
    (re.compile(r"[\]},]+(\"version\":1})?$", re.MULTILINE), ""),  # The order of brokers varies.
    (re.compile(r"\S*/client.properties"), "PROPERTIES"),
    (re.compile(r"^\[TIME\] (WARN|INFO) .*\n", re.MULTILINE), ""),
    (re.compile(r"^\s+at \S+\(.*\)\n|^\s+\.\.\. \d+ more\n", re.MULTILINE), ""),
)


def normalized(text: str) -> str:
    """An output without parts that differ in every run. Lines are sorted, because tools print hash tables."""
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return "\n".join(sorted({_ordered(line.strip()) for line in text.splitlines() if line.strip()}))


def _ordered(line: str) -> str:
    """A line with its settings sorted. Tools print hash tables."""
    head, separator, settings = line.partition(" are ")
    return f"{head}{separator}{', '.join(sorted(settings.split(', ')))}" if line.startswith("Quota configs") else line


def compared(
    folder: Path,
    zookeeper: str,
    setup: Setup,
    brokers: int,
    rounds: Rounds,
    calls: Sequence[ToolCall],
    expected: int = 3,
) -> Iterator[ParityComparison]:
    """Run these calls ``expected`` times under Kafka's controller, and in ``rounds`` under kframe.

    Yields the comparison of all rounds so far, after each.
    """
    cluster, process = ParityCluster(folder, zookeeper, setup, brokers), ToolProcess(folder / "tools", jars())
    try:
        cluster.start()
        clients = list(cluster.clients())
        super_client = next(each for each in clients if each.principal == SUPER)
        address = cluster.address(super_client.protocol)
        prepare(Tools(process, folder / "clients" / "prepare", address, super_client.settings), setup)
        under_kafka: Outputs = {}
        for _ in collect(cluster, process, calls, clients, Rounds(expected), under_kafka):
            pass
        cluster.take_over()
        under_kframe: Outputs = {}
        for _ in collect(cluster, process, calls, clients, rounds, under_kframe):
            yield compare(setup.name, under_kafka, under_kframe)
    finally:
        cluster.end()
        process.kill()


def add_options(parser: argparse.ArgumentParser) -> None:
    """See ``Campaign``."""
    for name, number, text in (
        ("--repeat", 50, "how often each call runs under kframe"),
        ("--tool-runs", 50, "how often each tool runs as each client, at least"),
        ("--expected", 3, "how often each call runs under Kafka's controller"),
        ("--brokers", 1, "how many brokers there are beside kframe"),
    ):
        parser.add_argument(name, type=int, default=number, help=f"{text} (default: {number})")
    parser.add_argument(
        "--minutes",
        type=float,
        default=float("inf"),
        help="how long each set-up runs under kframe; a round that has begun ends",
    )
    parser.add_argument("--setup", action="append", choices=[setup.name for setup in SETUPS], help="only these set-ups")
    parser.add_argument("--call", default="", metavar="PATTERN", help="only calls whose names match (default: all)")


def run(
    options: argparse.Namespace, folder: Path, facts: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], Sequence[str]]]:
    """See ``Campaign``. A step is a round of calls in a set-up."""
    rounds = Rounds(options.repeat, options.tool_runs, 60 * options.minutes)
    calls = [call for call in (*READING, *WRITING) if re.search(options.call, call.name)]
    comparisons: dict[str, Mapping[str, Any]] = {}
    differences: dict[str, str] = {}
    for setup in SETUPS:
        if options.setup is not None and setup.name not in options.setup:
            continue
        with running(ServerHandle(folder / setup.name / "zookeeper", ServerOptions())) as server:
            cluster, zookeeper = folder / setup.name / "cluster", f"{server.address}/parity"
            for done in compared(cluster, zookeeper, setup, options.brokers, rounds, calls, options.expected):
                text = f"{setup.name}: {done.runs} runs, {len(done.differences)} differences"
                print(text, flush=True)
                comparisons[setup.name] = asdict(done)
                if done.differences:
                    differences[setup.name] = text
                yield {**facts, "setups": comparisons}, list(differences.values())


def collect(
    cluster: ParityCluster,
    process: ToolProcess,
    calls: Sequence[ToolCall],
    clients: Sequence[ClientPrincipal],
    rounds: Rounds,
    outputs: Outputs,
) -> Iterator[int]:
    """Run the calls as these clients, and add their output to ``outputs``. Yields the number of each completed
    round."""
    end = time.monotonic() + rounds.seconds
    tools = {client.name: _tools(cluster, process, client) for client in clients}
    tool_runs: Counter[tuple[str, str]] = Counter()
    for number in count():
        before = tool_runs.copy()
        for client in clients:
            for call in calls:
                if rounds.includes(number, before[client.name, call.tool]):
                    tool_runs[client.name, call.tool] += 1
                    _run(tools[client.name], client.name, call, outputs)
        if tool_runs == before:
            return
        yield number
        if time.monotonic() > end:
            return


def _tools(cluster: ParityCluster, process: ToolProcess, client: ClientPrincipal) -> Tools:
    folder = cluster.folder / "clients" / re.sub(r"\W+", "-", client.name)
    return Tools(process, folder, cluster.address(client.protocol), {**_CLIENT, **client.settings})


def _run(tools: Tools, client: str, call: ToolCall, outputs: Outputs) -> None:
    unique = str(next(_UNIQUE))
    for position, step in enumerate(call.steps()):
        arguments = [each.replace("{broker}", "1").replace("{unique}", unique) for each in step.arguments]
        code, output = tools.run_with_code(step.tool, *arguments, stdin=step.input)
        name = step.name if step is call else f"{step.name} [{position} after: {call.name}]"
        outputs.setdefault((client, name), Counter())[f"exit {code}\n{normalized(output)}"] += 1
