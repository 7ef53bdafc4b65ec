"""All processes of a simulated cluster, its network and its clock."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final
from uuid import UUID

from kframe_simulator.broker.messages import ProduceResponse
from kframe_simulator.simulation.network import Network
from kframe_simulator.simulation.scheduler import Scheduler
from verification.kraft.simulation.broker import BrokerMachine, BrokerProcess
from verification.kraft.simulation.clients import Administrator, Producer
from verification.kraft.simulation.controllers import Controllers
from verification.kraft.simulation.options import Options
from verification.kraft.simulation.processes import Requests
from verification.kraft.simulation.rules import LogRules

_PRODUCERS: Final = 2
#: Memory, where there is a file system in it: syncs then cost nothing.
_MEMORY: Final = Path("/dev/shm")


class Cluster:
    """Brokers, a controller, clients. Use as a context manager, which removes the directory of the controller."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.scheduler = Scheduler()
        self.random = Random(options.seed + (1 << 32))
        self.network = Network(self.scheduler, self.random, options.delay_ms)
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        self._requests = Requests(self.scheduler, self.network)
        self._folder = Path(tempfile.mkdtemp(dir=_MEMORY if _MEMORY.is_dir() else None))
        self.controllers = Controllers(self._folder, options, self.scheduler, self._requests, self.random, self.report)
        self.machines = {number: BrokerMachine(number, options) for number in range(1, options.brokers + 1)}
        self.brokers: dict[int, BrokerProcess] = {}
        for broker_id in self.machines:
            self.start_broker(broker_id)
        self.admin = Administrator(self._requests, self.scheduler, self.random)
        self.producers = [
            Producer(number, self.admin, self.machines, self._requests, self.random) for number in range(_PRODUCERS)
        ]

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        if self.controllers.process is not None:
            self.controllers.process.release()
        shutil.rmtree(self._folder)

    @property
    def rules(self) -> LogRules:
        """The rules that the log of the controller is checked by."""
        return self.controllers.rules

    def report(self, problem: str) -> None:
        """Note a violation."""
        self.violations.append(f"{problem} at {self.scheduler.now_ms / 1000:.3f} s")

    def random_broker(self) -> int:
        """A broker."""
        return self.random.choice(sorted(self.machines))

    def start_broker(self, broker_id: int) -> None:
        """Start a process of a broker, unless one runs."""
        running = self.brokers.get(broker_id)
        if running is not None and running.is_running:
            return
        self.brokers[broker_id] = BrokerProcess(
            self.machines[broker_id],
            UUID(int=self.random.getrandbits(128)),
            self._requests,
            self.options,
            self.report,
            self._produced,
            self.scheduler,
        )

    def start_later(self, broker_id: int, delay_ms: float) -> None:
        """Start a process of a broker after a delay."""
        self.scheduler.after(delay_ms, lambda: self.start_broker(broker_id))

    def stop_broker(self, broker_id: int, delay_ms: float) -> None:
        """Begin a controlled shutdown, and start a process again ``delay_ms`` after its end."""
        process = self.brokers[broker_id]
        if process.is_running and not process.is_stopping:
            process.run(process.stop)
            self._await_end(process, delay_ms)

    def _await_end(self, process: BrokerProcess, delay_ms: float) -> None:
        if process.is_running:
            self.scheduler.after(500, lambda: self._await_end(process, delay_ms))
        else:
            self.start_later(process.node_id, delay_ms)

    def _produced(self, correlation: int, response: ProduceResponse) -> None:
        """Deliver a late response to its producer."""
        producer = self.producers[correlation % 10]
        self.scheduler.after(1.0, lambda: producer.on_response(correlation, response))

    def heal(self) -> None:
        """End all faults. Directories that have failed stay so."""
        for producer in self.producers:
            producer.is_stopping = True
        self.network.heal()
        self.controllers.heal()
        for broker_id, process in self.brokers.items():
            process.resume()
            if not process.is_running:
                self.start_later(broker_id, 100.0)
