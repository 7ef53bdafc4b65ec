"""Change a real cluster at random for an hour, and see whether the controller's process stays of the same size.

Three brokers and a ZooKeeper server run under one ``kframe controller run``.
"""

from __future__ import annotations

import argparse
import os
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from kframe.testing.waiting import until
from verification.kafka_wire.campaigns.churn import AdminChurn, BrokerChurn, pause
from verification.kafka_wire.campaigns.runbook import RUNBOOK, Runbook, Warnings, unexplained
from verification.kafka_wire.campaigns.soak_page import draw, page, violations
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.load import ProducerLoad
from verification.kafka_wire.replication import REPLICAS
from verification.zookeeper.handover import ALL, ClusterFixture
from verification.zookeeper.java import missing
from verification.zookeeper.kafka import Cluster, KafkaClients
from verification.zookeeper.servers import ServerHandle, ServerOptions, running
from verification.zookeeper.sessions import session

__all__ = ["add_options", "missing", "page", "run", "running_soak"]

TOPIC: Final = "records"
_CONTROLLER_ID: Final = 1000
RECORDS_PER_SECOND: Final = 200
_RECORDS: Final = 1_000
BROKER_SESSION_S: Final = 8.0
LAG_S: Final = 5.0
#: Of the observing client, long enough for a busy machine.
_OBSERVER_SESSION_S: Final = 60.0
#: Pause between two samples, two admin requests, and by default between two faults of brokers.
SAMPLE_S: Final = 5.0
_REQUEST_S: Final = 0.25
_FAULT_S: Final = 10.0
_SETTINGS: Final = {
    "min.insync.replicas": "2",
    "zookeeper.session.timeout.ms": str(int(1000 * BROKER_SESSION_S)),
    "replica.lag.time.max.ms": str(int(1000 * LAG_S)),
    "log.segment.delete.delay.ms": "1000",
}


class ProcessSizes(NamedTuple):
    """A sample of a process."""

    seconds: float
    """Since the start of the samples."""
    memory_kib: int
    """Resident memory."""
    threads: int
    descriptors: int


def sizes_of(pid: int, start_s: float) -> ProcessSizes:
    """A sample of a process, from Linux's ``/proc``. Raises OSError if the process has ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    (memory_kib,), (threads,) = (
        re.findall(rf"^{name}:\s+(\d+)", status, re.MULTILINE) for name in ("VmRSS", "Threads")
    )
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    return ProcessSizes(round(time.monotonic() - start_s, 1), int(memory_kib), int(threads), descriptors)


@dataclass(frozen=True, slots=True)
class SoakReport:
    """What was seen in a run."""

    seconds: float
    operations: list[tuple[str, str, int]]
    """Admin operation, outcome, and count."""
    faults: dict[str, int]
    """Faults of brokers."""
    topics: int
    """Topics that were created and deleted."""
    elections: int
    """Increase of the controller epoch after the first election."""
    acknowledged: int
    log_lines: int
    warnings: list[Warnings]
    samples: list[ProcessSizes]
    violations: list[str]


class Soak:
    """A running cluster, its producer, and the clients that change it."""

    def __init__(self, folder: Path, fixture: ClusterFixture, instance: InstanceProcess, seed: int) -> None:
        self.samples: list[ProcessSizes] = []
        self._fixture = fixture
        self._instance = instance
        self._over = threading.Event()
        self._failures: list[str] = []
        address = f"kafka://{instance.address},{fixture.cluster.address}"
        self.admin = AdminChurn(address, seed)
        self.brokers = BrokerChurn(fixture.cluster, fixture.client, BROKER_SESSION_S, seed)
        fixture.create(TOPIC, REPLICAS)
        self._load = ProducerLoad(folder / "load", fixture.cluster.address, TOPIC, len(REPLICAS), RECORDS_PER_SECOND)
        self._epoch = fixture.controller()[1]

    def close(self) -> None:
        """End the clients."""
        self._over.set()
        self.admin.close()
        self._load.close()

    def run(self, seconds: float, fault_pause_s: float = _FAULT_S) -> SoakReport:
        """Change the cluster for so long, and let it recover. Each operation and fault occurs at least once.

        ``fault_pause_s`` is the time between two faults of brokers.
        """
        start_s = time.monotonic()
        threads = [
            threading.Thread(target=self._repeat, args=(lambda: self._sample(start_s), SAMPLE_S)),
            threading.Thread(target=self._change),
        ]
        for thread in threads:
            thread.start()
        try:
            self._load.await_more(_RECORDS)
            waiting = self.brokers.names
            while time.monotonic() - start_s < seconds or waiting:
                self._attempt(lambda: self.brokers.inject(waiting.pop(0)) if waiting else self.brokers.step())
                self._attempt(self._await_in_sync)
                pause(fault_pause_s)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
        return self._report(time.monotonic() - start_s)

    def _report(self, seconds: float) -> SoakReport:
        self._attempt(self.admin.delete_all)
        if not until(lambda: self._fixture.client.get_children("/brokers/topics") == [TOPIC]):
            self._failures.append(f"topics remain: {self._fixture.client.get_children('/brokers/topics')}")
        self._attempt(lambda: self._fixture.await_agreement(TOPIC))
        self._load.await_more(_RECORDS)
        self._failures += self._load.violations()
        lines = f"{self._instance.log}{self._instance.changes}".splitlines()
        warnings = Runbook(RUNBOOK.read_text()).explained(lines)
        self._failures += [f"not in the runbook: {row.example}" for row in unexplained(warnings)]
        return SoakReport(
            round(seconds, 1),
            [(*key, number) for key, number in sorted(self.admin.counts.items())],
            dict(self.brokers.counts),
            self.admin.counts["create topic", "NONE"],
            self._fixture.controller()[1] - self._epoch,
            self._load.count().acknowledged,
            len(lines),
            warnings,
            self.samples,
            self._failures,
        )

    def _sample(self, start_s: float) -> None:
        """Take a sample, and read the metrics as a monitoring system does."""
        pid = self._instance.pid
        if pid is None:
            raise RuntimeError("the instance has ended")
        self.samples.append(sizes_of(pid, start_s))
        self._instance.page("/metrics")

    def _change(self) -> None:
        for name in self.admin.names:
            self.admin.execute(name)
        self._repeat(self.admin.step, _REQUEST_S)

    def _repeat(self, step: Callable[[], object], pause_s: float) -> None:
        while not self._over.wait(pause_s):
            self._attempt(step)

    def _attempt(self, step: Callable[[], object]) -> None:
        """Take a step. An exception is a violation, and does not end the run."""
        try:
            step()
        except Exception as error:
            self._failures.append(repr(error))
            traceback.print_exc()

    def _await_in_sync(self) -> None:

        def lacking() -> list[int]:
            states = self._fixture.states_of(TOPIC)
            return [number for number, state in states.items() if sorted(state["isr"]) != ALL]

        assert until(lambda: not lacking()), lacking()


@contextmanager
def running_soak(folder: Path, seed: int) -> Iterator[Soak]:
    """A server, an instance and three brokers, which end with the block."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(running(ServerHandle(folder / "zookeeper", ServerOptions())))
        chroot = f"{zookeeper.address}/kafka"
        instance = InstanceProcess(chroot, folder / "kframe", _CONTROLLER_ID, "--create-chroot")
        stack.callback(instance.kill)
        instance.await_ready(active=True)
        cluster = Cluster(folder / "kafka", chroot, ALL, _SETTINGS)
        stack.callback(cluster.kill)
        cluster.start()
        client = stack.enter_context(session(chroot, timeout=_OBSERVER_SESSION_S))
        clients = stack.enter_context(closing(KafkaClients(folder / "clients", cluster.address)))
        yield stack.enter_context(
            closing(Soak(folder, ClusterFixture(cluster, clients, client, folder), instance, seed))
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """See ``Campaign``."""
    parser.add_argument("--minutes", type=float, default=60.0, help="duration of the changes (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="of the changes (default: 0)")
    parser.add_argument("--folder", type=Path, help="a folder that keeps all logs (default: a temporary one)")


def run(
    options: argparse.Namespace, folder: Path, facts: Mapping[str, Any]
) -> Iterator[tuple[Mapping[str, Any], Sequence[str]]]:
    """See ``Campaign``. The plot of the sizes is written into ``docs/plots``. Requires matplotlib."""
    with running_soak(options.folder or folder, options.seed) as soak:
        report = soak.run(60 * options.minutes)
    record = {**facts, **asdict(report)}
    draw(record, options.record.parents[1] / "plots" / f"{options.record.stem}.svg")
    yield record, violations(record)
