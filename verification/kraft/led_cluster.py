"""Unmodified Kafka brokers whose only controller is kframe, in a directory that Kafka's own tool has formatted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from kframe_kraft.server.serving import ServedController, make_controller

from kframe.plugin.kraft import ClusterMetadata
from kframe.plugin.settings import read_properties
from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions
from verification.kraft.kafka_tools import KafkaTools


def keys_of(node: KraftNode) -> dict[str, str]:
    """The keys of a node's server.properties."""
    return {entry.key: entry.value for entry in read_properties(node.config_path)}


class LedCluster:
    """Brokers and their controller. ``controller`` is None while Kafka's leads instead."""

    def __init__(self, folder: Path, options: KraftOptions) -> None:
        """``options`` have one controller, in a process of its own."""
        self.kafka = KraftCluster(folder, options)
        (self.kafkas_controller,) = self.kafka.controllers.values()
        self.controller: ServedController | None = None

    @property
    def brokers(self) -> list[KraftNode]:
        """The brokers, by id."""
        return [*self.kafka.brokers.values()]

    def lead(self) -> ServedController:
        """Start kframe on the controller's directory, by the controller's own server.properties."""
        self.controller = make_controller("kraft:", keys_of(self.kafkas_controller))
        self.controller.start()
        return self.controller

    def resign(self) -> None:
        """Stop kframe. The brokers run on."""
        controller, self.controller = self.controller, None
        if controller is not None:
            controller.stop()

    @property
    def metadata(self) -> ClusterMetadata:
        """The metadata in kframe's memory, which its thread changes."""
        assert self.controller is not None
        assert self.controller.node is not None
        return self.controller.node.metadata

    def assignment(self, topic: str) -> dict[int, list[int]]:
        """Replicas by partition, in kframe's memory. Empty for a missing topic."""
        metadata = self.metadata
        replicas: dict[int, list[int]] = {}
        while (row := metadata.row(topic, len(replicas))) is not None:
            replicas[len(replicas)] = [*metadata.brokers.ids_of(metadata.partitions.list_of("replica", row))]
        return replicas

    def leader(self, topic: str, partition: int) -> int:
        """The leader of a partition, in kframe's memory."""
        row = self.metadata.row(topic, partition)
        assert row is not None
        (leader,) = self.metadata.brokers.ids_of([int(self.metadata.partitions.leader[row])])
        return leader

    def described(self, tools: KafkaTools, topic: str) -> dict[int, tuple[int, set[int]]]:
        """Leader and ISR of each partition of a topic, as ``kafka-topics`` prints them."""
        states = {}
        for line in self.kafka.admin(tools, "kafka-topics", "--describe", "--topic", topic).splitlines():
            fields = dict(part.split(": ", 1) for part in line.strip().split("\t") if ": " in part)
            if "Partition" in fields:
                isr = {int(member) for member in fields["Isr"].split(",") if member}
                leader = int(fields["Leader"]) if fields["Leader"] != "none" else -1
                states[int(fields["Partition"])] = leader, isr
        return states

    def until_all(self, tools: KafkaTools, topic: str, count: int, holds: Callable[[int, set[int]], bool]) -> None:
        """Return when it holds for the leader and the ISR of all ``count`` partitions of a topic."""

        def is_reached() -> bool:
            states = self.described(tools, topic)
            return len(states) == count and all(holds(leader, isr) for leader, isr in states.values())

        wait_until(is_reached, lambda: str(self.described(tools, topic)))

    def until_listed(self, tools: KafkaTools, *topics: str) -> None:
        """Return when the brokers, which follow the log, list these topics in this order."""
        wait_until(lambda: sorted(self.kafka.admin(tools, "kafka-topics", "--list").split()) == [*topics])

    def __enter__(self) -> Self:
        try:
            self.lead()
            for broker in self.brokers:
                broker.start()
            for broker in self.brokers:
                broker.await_started()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.kafka.kill()
        self.resign()
