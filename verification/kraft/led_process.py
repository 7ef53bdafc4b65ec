"""Unmodified Kafka brokers under load, led by ``kframe controller run`` in a process of its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from kframe.testing.waiting import wait_until
from verification.kafka_wire.broker_metadata import PartitionMetadata, metadata_of
from verification.kafka_wire.load import ProducerLoad
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.zookeeper.commands import RunningCommand

TOPIC: Final = "records"
#: Each broker is the preferred leader of two partitions.
_ASSIGNMENT: Final = "1:2:3,2:3:1,3:1:2,1:3:2,2:1:3,3:2:1"
_PARTITIONS: Final = 6
_SETTINGS: Final = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "min.insync.replicas": "2",
}


class LoadedCluster:
    """Three brokers, the controller, and a producer of one topic. It is a context manager."""

    def __init__(self, folder: Path, records_per_second: int) -> None:
        self.folder = folder
        self.kafka = KraftCluster(
            folder / "nodes", KraftOptions(brokers=3, controllers=1, combined=False, settings=_SETTINGS)
        )
        (self.kafkas_controller,) = self.kafka.controllers.values()
        config = self.kafkas_controller.config_path
        pages = ("--metrics-listen", "127.0.0.1:0")
        self.controller = RunningCommand(folder / "kframe", "controller", "run", "--config", config, *pages)
        self._records_per_second = records_per_second
        self._load: ProducerLoad | None = None

    @property
    def load(self) -> ProducerLoad:
        """The producer."""
        assert self._load is not None
        return self._load

    def __enter__(self) -> LoadedCluster:
        try:
            self.lead()
            for broker in self.kafka.brokers.values():
                broker.start()
            for broker in self.kafka.brokers.values():
                broker.await_started()
            with KafkaTools(self.folder / "tools") as tools:
                topic = ("--create", "--topic", TOPIC, "--replica-assignment", _ASSIGNMENT)
                self.kafka.admin(tools, "kafka-topics", *topic)
            self._load = ProducerLoad(
                self.folder / "load", self.kafka.address, TOPIC, _PARTITIONS, self._records_per_second
            )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            if self._load is not None:
                self._load.close()
        with suppress(Exception):
            self.kafka.kill()
        self.controller.kill()

    def lead(self) -> None:
        """Start kframe on the directory of the controller. Return when it leads."""
        # The pages of the process before had another port.
        (self.controller.folder / "log.txt").unlink(missing_ok=True)
        self.controller.start()
        wait_until(lambda: self.controller.pid is None or self.controller.page("/readyz")[0] == 200)
        assert self.controller.pid is not None, self.controller.log

    def states(self) -> list[PartitionMetadata]:
        """Leader, ISR and replicas of each partition, as a running broker knows them."""
        broker = next(each for each in self.kafka.brokers.values() if each.pid is not None)
        known = metadata_of(broker.address)[2]
        return [state for name, state in known.items() if name.startswith(f"{TOPIC}-")]

    def leader(self) -> KraftNode:
        """The leader of partition 0, which is not down."""
        broker = next(each for each in self.kafka.brokers.values() if each.pid is not None)
        wait_until(lambda: metadata_of(broker.address)[2][f"{TOPIC}-0"][0] in self._running())
        return self.kafka.brokers[metadata_of(broker.address)[2][f"{TOPIC}-0"][0]]

    def _running(self) -> list[int]:
        return [broker_id for broker_id, broker in self.kafka.brokers.items() if broker.pid is not None]

    def stop_broker(self, broker: KraftNode, *, hard: bool) -> None:
        """Stop or kill a broker. Return when others lead all partitions."""
        if hard:
            broker.kill()
        else:
            broker.stop()
        wait_until(lambda: all(leader in self._running() for leader, _, _ in self.states()))

    def start_broker(self, broker: KraftNode) -> None:
        """Start a broker. Return when it serves."""
        broker.start()
        broker.await_started()

    def await_all_in_sync(self) -> None:
        """Return when each ISR has all replicas."""
        wait_until(lambda: all(len(isr) == len(replicas) for _, isr, replicas in self.states()))
