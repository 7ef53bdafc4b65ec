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

from verification.kafka_wire.campaigns.parity_calls import (
    READING,
    WRITING,
    ToolCall,
)
from verification.kafka_wire.campaigns.parity_cluster import (
    SETUPS,
    SUPER,
    ClientPrincipal,
    ParityCluster,
    Setup,
    prepare,
)
from verification.kafka_wire.campaigns.parity_report import Outputs, ParityComparison, compare, page
from verification.kafka_wire.tools import Tools, jars
from verification.zookeeper.java import missing
from verification.zookeeper.servers import HOST, ServerHandle, ServerOptions, running
from verification.zookeeper.tools import ToolProcess

__all__ = ["Rounds", "add_options", "compared", "missing", "normalized", "page", "run"]

#: Short client timeouts, so that a missing response is a difference and does not block the test.
_CLIENT: Final = {"request.timeout.ms": "15000", "default.api.timeout.ms": "30000"}
_UNIQUE: Final = count(1)
#: What ``kafka-configs --alter`` prints after a change, and the most seconds until brokers have applied it.
_CHANGED: Final = "Completed updating"
_APPLIED_S: Final = 5.0


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
    unique, output = str(next(_UNIQUE)), ""
    for position, step in enumerate(call.steps()):
        arguments = [each.replace("{broker}", "1").replace("{unique}", unique) for each in step.arguments]
        end = time.monotonic() + (_APPLIED_S if _CHANGED in output else 0)
        code, output = tools.run_with_code(step.tool, *arguments, stdin=step.input)
        # A broker applies a setting when ZooKeeper notifies it, shortly after the response to the client.
        while step.shows not in output and time.monotonic() < end:
            code, output = tools.run_with_code(step.tool, *arguments, stdin=step.input)
        name = step.name if step is call else f"{step.name} [{position} after: {call.name}]"
        outputs.setdefault((client, name), Counter())[f"exit {code}\n{normalized(output)}"] += 1
