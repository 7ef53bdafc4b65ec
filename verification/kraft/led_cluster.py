"""Unmodified Kafka brokers whose only controller is kframe, in a directory that Kafka's own tool has formatted."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Self

from kframe_kraft.server.serving import ServedController, make_controller

from kframe.plugin.settings import read_properties
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions


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
