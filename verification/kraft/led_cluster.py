"""Unmodified Kafka brokers whose only controller is kframe, in a directory that Kafka's own tool has formatted."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from kframe_kraft.disk import read_properties
from kframe_kraft.quorum import Voters
from kframe_kraft.server.node import NodeSettings, VoterNode
from kframe_kraft.server.serving import ServedController

from kframe.plugin.cluster import Endpoint
from kframe.plugin.kraft import control
from verification.kraft.kafka_nodes import KraftCluster, KraftNode, KraftOptions
from verification.kraft.served_controller import CONFIG


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
        """Start kframe on the controller's directory."""
        node = self.kafkas_controller
        directory, port = node.log_dirs[0], node.controller_port
        endpoint = control.VoterEndpoint(name="CONTROLLER", host="127.0.0.1", port=port)
        directory_id = read_properties(directory).directory_id
        assert directory_id is not None
        voter = control.Voter(voter_id=node.id, voter_directory_id=directory_id, endpoints=(endpoint,))
        settings = NodeSettings((endpoint,), Voters((voter,)))
        bound = Endpoint("CONTROLLER", "127.0.0.1", port, "PLAINTEXT")
        self.controller = ServedController(partial(VoterNode, directory, settings), CONFIG, [bound])
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
