"""Check that the responses of live controllers are linearizable under faults.

Three brokers run under two instances of ``kframe controller run``, each of which reaches ZooKeeper through a proxy of
its own.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from kframe.testing.waiting import until
from verification.kafka_wire.campaigns import history_check
from verification.kafka_wire.campaigns.churn import pause
from verification.kafka_wire.campaigns.fault_cluster import is_active
from verification.kafka_wire.campaigns.history_check import HistoryOperation
from verification.kafka_wire.campaigns.history_clients import HistoryClient, SharedHistory
from verification.kafka_wire.instances import InstanceProcess
from verification.support.evidence import facts_lines
from verification.zookeeper import java
from verification.zookeeper.handover import ALL
from verification.zookeeper.kafka import Cluster
from verification.zookeeper.proxy import Direction, Proxy
from verification.zookeeper.servers import ServerHandle, ServerOptions, running

SESSION_S: Final = 6.0
#: Names of faults.
FROZEN: Final = "frozen (SIGSTOP), beyond the session"
CUT_OFF_WITH_READERS: Final = "cut off from ZooKeeper and from clients that write"
_INSTANCES: Final = (1000, 1001)
_WRITERS, _READERS = 4, 4
_TOPICS: Final = 3
_TOPIC_S: Final = 8.0
#: Time without a fault before and after each.
_FAULT_INTERVAL_S: Final = 4.0
#: Changes that have begun are complete after this time, so that the instance waits for no write.
_SETTLED_S: Final = 2.0
#: Brokers do not fail, also on a busy machine: the model has no elections without a request.
_BROKER_SETTINGS: Final = {"zookeeper.session.timeout.ms": "120000", "replica.lag.time.max.ms": "120000"}
_SETTINGS: Final = {"auto.leader.rebalance.enable": "false"}

_TEXT: Final = """\
# Linearizability of a live controller

Clients sent admin requests to two instances of `kframe controller run` with three Kafka 3.9.1 brokers and ZooKeeper
3.8.4, while faults happened to the active instance. [Porcupine](https://github.com/anishathalye/porcupine) 1.3.1, the
checker of etcd's robustness tests, searched for an order of all requests that explains all responses.

- Four clients send random requests, each to the instance that serves it. Four clients only read, two at each instance,
  also when it has lost its role.
- A request without a response within 4 s, with a lost connection, NOT_CONTROLLER, REQUEST_TIMED_OUT or
  UNKNOWN_SERVER_ERROR may take effect at any later time or never.
- Three topics are used at a time, and others after 8 s. Each topic has a history of its own, because a history is
  linearizable if and only if those of all objects are.

## What the model permits

The model is `verification/kafka_wire/campaigns/histories/model.go`. The state of a topic is its id, its
partition count, and replicas, reassignment and leader of partition 0.

- A successful deletion makes the topic invisible at once: Metadata does not have it, and another deletion gets
  UNKNOWN_TOPIC_OR_PARTITION. The deletion completes later. Until then CreateTopics gets TOPIC_ALREADY_EXISTS, and
  CreatePartitions and ElectLeaders get INVALID_TOPIC_EXCEPTION. Deletions at the same time all succeed.
- A reassignment completes at any time after its request. A cancellation before that restores the replicas.
- The leader changes by an election, or by a reassignment that removes it. Brokers do not fail in these histories.
- A change or cancellation of a running reassignment may drop the leader. Then the partition has none until an election,
  as in Kafka. The check has found this in a history, too; `kframe.reassignment.strict` elects one at once.
- Metadata and ListPartitionReassignments of the controller are reads like any other. Metadata of *brokers* is not
  checked: Kafka promises only that it follows."""
_FINDINGS: Final = """\
## Defects that the check has found

1. Stale reads. ZooKeeper did not reach the active instance, and only clients that read did. Its session expired, and
   another instance changed topics. The first one still completed Metadata and ListPartitionReassignments from memory:
   violations in 5 of 27 topics. Refusals such as TOPIC_ALREADY_EXISTS had the same gap. Now `ControllerLoop` completes
   no request from memory while the role is uncertain (`test_uncertain_controller_completes_no_read`).
2. A wrong topic id. The response to CreateTopics described the topic that had the name when the response was sent.
   After a deletion and another creation at the same time, two clients received the same id. Now it describes the topic
   at its creation (`test_response_describes_topic_as_created`)."""


class HistoryCluster:
    """Two instances, and the faults of the active one."""

    def __init__(self, instances: Mapping[int, InstanceProcess], proxies: Mapping[int, Proxy], seed: int) -> None:
        self.instances = instances
        self.seed = seed
        self.faults: Counter[str] = Counter()
        self._history: SharedHistory | None = None
        self._proxies = proxies
        self._random = random.Random(seed)
        self._faults_by_name = {
            "killed (SIGKILL)": self._kill,
            "frozen (SIGSTOP), within the session": lambda number: self._freeze(number, 0.5),
            FROZEN: lambda number: self._freeze(number, 2.0),
            "cut off from ZooKeeper": self._cut_off,
            CUT_OFF_WITH_READERS: self._isolate,
            "connection to ZooKeeper reset": lambda number: self._proxies[number].cut(),
            "answers of ZooKeeper lost": self._lose_responses,
        }

    @property
    def fault_names(self) -> list[str]:
        """All faults."""
        return list(self._faults_by_name)

    def record(self, seconds: float, faults: Sequence[str] = ()) -> list[HistoryOperation]:
        """The operations of clients in so much time, or longer: until each of ``faults`` (default: all) has occurred,
        and each kind of operation that a checked history needs has succeeded."""
        self._history = history = SharedHistory(_TOPICS, _TOPIC_S)
        instances = list(self.instances.values())
        clients = [
            HistoryClient(number, instances, history, self.seed, reads=number >= _WRITERS)
            for number in range(_WRITERS + _READERS)
        ]
        start_s, pending = time.monotonic(), list(faults or self.fault_names)
        for client in clients:
            client.thread.start()
        try:
            while time.monotonic() - start_s < seconds or pending:
                pause(_FAULT_INTERVAL_S)
                self._inject(pending.pop(0) if pending else self._random.choice(self.fault_names))
            pause(_FAULT_INTERVAL_S)
            assert until(lambda: not history.missing_kinds()), history.missing_kinds()
        finally:
            history.over.set()
            for client in clients:
                client.thread.join()
        for client in clients:
            if client.failure is not None:
                raise client.failure
        return history.operations

    def await_standby(self) -> int:
        """Return the id of the active instance when the other one stands by."""

        def active() -> list[int]:
            states = {number: is_active(instance) for number, instance in self.instances.items()}
            return [number for number, state in states.items() if state] if None not in states.values() else []

        assert until(lambda: len(active()) == 1), "\n".join(each.log[-3000:] for each in self.instances.values())
        return active()[0]

    def _inject(self, name: str) -> None:
        """Inject a fault into the active instance. Return when one instance is active, and the other stands by."""
        self._faults_by_name[name](self.await_standby())
        self.faults[name] += 1
        self.await_standby()

    def _kill(self, number: int) -> None:
        instance = self.instances[number]
        instance.kill()
        pause(self._random.uniform(0, SESSION_S))
        instance.start()

    def _freeze(self, number: int, sessions: float) -> None:
        self.instances[number].pause()
        pause(sessions * SESSION_S)
        self.instances[number].resume()

    def _cut_off(self, number: int) -> None:
        """The instance keeps its connections to clients and brokers."""
        self._proxies[number].freeze()
        self._proxies[number].refuse()
        pause(2.5 * SESSION_S)
        self._proxies[number].refuse(False)
        self._proxies[number].cut()
        self._proxies[number].thaw()

    def _isolate(self, number: int) -> None:
        """Only clients that read and brokers reach the instance. Others change topics at its successor."""
        assert self._history is not None
        self._history.blocked = self.instances[number]
        try:
            pause(_SETTLED_S)
            self._cut_off(number)
        finally:
            self._history.blocked = None

    def _lose_responses(self, number: int) -> None:
        """Writes are executed, and the instance does not know."""
        self._proxies[number].drop(Direction.TO_CLIENT)
        pause(1.0)
        self._proxies[number].cut()
        self._proxies[number].drop()


@contextmanager
def history_cluster(folder: Path, seed: int) -> Iterator[HistoryCluster]:
    """A server, two instances and three brokers, which end with the block."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(running(ServerHandle(folder / "zookeeper", ServerOptions())))
        proxies, instances = {}, {}
        for number in _INSTANCES:
            proxy = proxies[number] = stack.enter_context(Proxy(zookeeper.address))
            instance = instances[number] = InstanceProcess(
                f"{proxy.address}/kafka",
                folder / str(number),
                number,
                "--create-chroot",
                settings=_SETTINGS,
                session_ms=int(1000 * SESSION_S),
            )
            stack.callback(instance.kill)
            instance.await_ready(active=number == _INSTANCES[0])
        cluster = Cluster(folder / "kafka", f"{zookeeper.address}/kafka", ALL, _BROKER_SETTINGS)
        stack.callback(cluster.kill)
        cluster.start()
        yield HistoryCluster(instances, proxies, seed)


def mutated(operations: Sequence[HistoryOperation]) -> list[HistoryOperation]:
    """A history in which one answer is impossible: a topic has more partitions than any client requested."""
    index = next(i for i, each in enumerate(operations) if each.kind == "describe" and each.code == "NONE")
    changed = replace(operations[index], partitions=operations[index].partitions + 100)
    return [*operations[:index], changed, *operations[index + 1 :]]


def page(record: Mapping[str, Any]) -> str:
    """The page in Markdown."""
    result = record["result"]
    lines = [
        _TEXT,
        "",
        "## Result",
        "",
        f"- Violations: {len(result['violations'])}. Undecided: {len(result['undecided'])}.",
        f"- Operations: {result['operations']:,} on {result['topics']:,} topics, at most {result['longest']:,} on one.",
        f"- Duration: {record['seconds'] / 60:.0f} minutes.",
        f"- Control: after a change of one answer in one history, the checker reports {record['control']} violation.",
        *facts_lines(record),
        "",
        "| fault of the active instance | times |",
        "|---|---|",
        *(f"| {name} | {count} |" for name, count in sorted(record["faults"].items())),
        "",
        "| request | count | answers |",
        "|---|---|---|",
        *_requests(record),
        "",
        _FINDINGS,
    ]
    return "\n".join(lines) + "\n"


def _requests(record: Mapping[str, Any]) -> list[str]:
    responses: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for kind, code, count in record["requests"]:
        responses[kind].append((count, code or "unknown outcome"))
    return [
        f"| {kind} | {sum(count for count, _ in rows):,} |"
        f" {', '.join(f'{code} {count:,}' for count, code in sorted(rows, reverse=True))} |"
        for kind, rows in sorted(responses.items())
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """See ``Campaign``."""
    parser.add_argument("--minutes", type=float, default=10.0, help="duration of the history (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="of requests and faults (default: 0)")
    parser.add_argument("--pages", type=Path, help="a folder for pages that show histories with a violation")


def missing() -> str | None:
    """See ``Campaign``."""
    return java.missing() or history_check.missing()


def run(
    options: argparse.Namespace, folder: Path, facts: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], Sequence[str]]]:
    """See ``Campaign``. A topic whose check takes too long is a violation, too."""
    start_s = time.monotonic()
    with history_cluster(folder, options.seed) as cluster:
        operations = cluster.record(60 * options.minutes)
    seconds = round(time.monotonic() - start_s)
    if options.pages is not None:
        options.pages.mkdir(parents=True, exist_ok=True)
    result = history_check.check(operations, options.pages)
    requests = Counter((operation.kind, operation.code) for operation in operations)
    record = {
        **facts,
        "seconds": seconds,
        "faults": cluster.faults,
        "requests": [(*key, number) for key, number in requests.items()],
        "result": asdict(result),
        "control": len(history_check.check(mutated(operations)).violations),
    }
    print(result)
    yield record, [*result.violations, *(f"{topic}: undecided" for topic in result.undecided)]
