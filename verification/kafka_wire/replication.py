"""A cluster under load whose brokers and controllers a test stops, kills, freezes and restarts."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from kframe_zookeeper.znodes import paths

from kframe.testing.waiting import PATIENCE_S, until
from verification.kafka_wire.instances import InstanceProcess
from verification.kafka_wire.load import ProducerLoad
from verification.zookeeper.handover import ALL, ClusterFixture
from verification.zookeeper.kafka import KafkaProcess
from verification.zookeeper.machine import LOCAL, Machine

#: The session timeout, for which a dead or frozen kframe keeps the role.
SESSION_MS: Final = 8_000
#: The assignment of a topic in which each broker is the preferred leader of two partitions.
REPLICAS: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
#: Log lines of a broker for each executed control request, and for LeaderAndIsr for each partition: sender and epoch.
EXECUTED: Final = re.compile(
    r"(?:UpdateMetadata request sent by|Completed LeaderAndIsr request correlationId \d+ from) controller (\d+)"
    r" epoch (\d+)"
)
_numbers = itertools.count()


class ReplicationFixture:
    """One topic of a cluster with a steady producer, and the kframe instances of one test."""

    def __init__(
        self,
        fixture: ClusterFixture,
        name: str,
        folder: Path,
        settings: Mapping[str, str] = {},
        machines: Mapping[int, Machine] = {},
        *,
        records_per_second: int,
    ) -> None:
        """Create the topic, and record all partition states and controller epochs from now on.

        ``settings`` are those of the kframe instances, ``machines`` theirs by id. The producer runs where the clients
        do.
        """
        self.fixture = fixture
        self._settings = settings
        self._machines = machines
        self.topic = f"records-{name}"
        self._folder = folder
        self._instances: list[InstanceProcess] = []
        self._observed: dict[str, list[dict[str, int]]] = defaultdict(list)
        fixture.create(self.topic, REPLICAS)
        fixture.client.DataWatch(paths.CONTROLLER_EPOCH, self._epoch)
        for partition in range(len(REPLICAS)):
            path = f"/brokers/topics/{self.topic}/partitions/{partition}/state"
            fixture.client.DataWatch(path, partial(self._state, path))
        self.load = ProducerLoad(
            folder / "load",
            fixture.cluster.address,
            self.topic,
            len(REPLICAS),
            records_per_second,
            fixture.clients.machine,
        )

    def close(self) -> None:
        """Kill the producer and all instances."""
        self.load.close()
        for instance in self._instances:
            instance.kill()

    # -- controllers

    def instance(self, number: int, *arguments: str) -> InstanceProcess:
        """Start another instance of kframe with this id."""
        self._instances.append(
            InstanceProcess(
                self.fixture.cluster.zookeeper,
                self._folder / f"{number}-{next(_numbers)}",
                number,
                *arguments,
                session_ms=SESSION_MS,
                settings=self._settings,
                machine=self._machines.get(number, LOCAL),
            )
        )
        return self._instances[-1]

    def start_pair(self) -> tuple[InstanceProcess, InstanceProcess]:
        """An active kframe and a standby."""
        active = self.instance(1000, "--insist")
        active.await_ready(active=True)
        standby = self.instance(1001, "--insist")
        standby.await_ready(active=False)
        return active, standby

    def controller(self) -> int:
        """The broker id in ``/controller``. -1 for none."""
        return self.fixture.controller()[0]

    # -- brokers

    def leader(self) -> KafkaProcess:
        """The leader of partition 0, after waiting for one."""
        leader_id = -1

        def is_known() -> bool:
            nonlocal leader_id
            leader_id = self.leader_id()
            return leader_id in ALL

        assert until(is_known)
        return self.fixture.cluster.brokers[leader_id]

    def leader_id(self) -> int:
        """The stored leader of partition 0. -1 for none."""
        return int(self.fixture.get(f"/brokers/topics/{self.topic}/partitions/0/state")["leader"])

    def stop_broker(self, broker: KafkaProcess, hard: bool, *, waits: bool = True) -> None:
        """Stop or kill a broker, and return when its registration has ended.

        ``waits``: wait for the session timeout of a killed broker; otherwise the session is ended at once.
        """
        ended = broker.log("server").count("shut down completed")
        if hard and waits:
            broker.kill()
        elif hard:
            self.fixture.cluster.lose(broker.id, self.fixture.client)
        else:
            broker.stop(PATIENCE_S)
            assert broker.log("server").count("shut down completed") == ended + 1
        registered = f"/brokers/ids/{broker.id}"
        client = self.fixture.client
        assert until(lambda: client.retry(client.exists, registered) is None)

    def start_broker(self, broker: KafkaProcess) -> None:
        """Restart a broker."""
        broker.start()
        broker.await_started()

    def await_all_in_sync(self) -> None:
        """Return when all partitions have a leader and all replicas in sync, and clients see it."""

        def incomplete() -> list[tuple[str, int]]:
            return [
                (topic, partition)
                for topic, states in self.fixture.states().items()
                for partition, state in states.items()
                if state["leader"] not in ALL or sorted(state["isr"]) != ALL
            ]

        assert until(lambda: not incomplete()), incomplete()
        self.fixture.await_agreement(self.topic)

    # -- what has happened

    @property
    def was_offline(self) -> bool:
        """Whether a partition of the topic was without a leader at any time."""
        return any(state.get("leader") == -1 for states in self._observed.values() for state in states)

    def decreased_epochs(self) -> list[Any]:
        """Decreased epochs in stored states, and in the requests that brokers have executed."""
        events: list[Any] = [
            (path, before, after)
            for path, states in self._observed.items()
            for before, after in itertools.pairwise(states)
            if any(after[name] < before[name] for name in ("controller_epoch", "leader_epoch"))
        ]
        for broker in self.fixture.cluster.brokers.values():
            epochs = [int(epoch) for _, epoch in EXECUTED.findall(broker.log("state-change"))]
            assert epochs, "the log has no request"
            events += [(broker.id, *pair) for pair in itertools.pairwise(epochs) if pair[1] < pair[0]]
        return events

    def _epoch(self, data: bytes | None, _stat: Any) -> None:
        if data is not None:
            self._observed[paths.CONTROLLER_EPOCH].append({"controller_epoch": int(data), "leader_epoch": 0})

    def _state(self, path: str, data: bytes | None, *_: object) -> None:
        if data is not None:
            self._observed[path].append(json.loads(data))
