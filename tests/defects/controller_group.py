"""Several controllers over one in-memory store, each with its own transport and clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import MemoryEnsemble, RecordingTransport, Request, VirtualClock
from kframe.model.cluster import PartitionView
from kframe.model.config import ControllerConfig
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import PartitionSpec, cluster_of, rows_of


class ControllerGroup:
    """Controllers 1000, 1001, ...: the first is elected, the others are standbys. A controller acts only in ``run``."""

    def __init__(
        self,
        topics: Mapping[str, Sequence[PartitionSpec]],
        live: Iterable[int] = (1, 2, 3),
        controllers: int = 1,
        **config: object,
    ) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of(topics, live))
        self.clocks = [VirtualClock() for _ in range(controllers)]
        self.wires = [RecordingTransport() for _ in range(controllers)]
        self.stores = [self.ensemble.connect() for _ in range(controllers)]
        self.loops = [
            ControllerLoop(ControllerCore(1000 + i, ControllerConfig(settings), Selection({})), store, wire, clock)
            for i, (store, wire, clock) in enumerate(zip(self.stores, self.wires, self.clocks, strict=True))
        ]
        for loop in self.loops:
            loop.open()
            loop.run_until_idle()

    def run(self, *indexes: int) -> None:
        """Run these controllers, or all, until none has an event left."""
        loops = [self.loops[i] for i in indexes] or self.loops
        while sum(loop.run_until_idle() for loop in loops):
            pass

    def depose(self, controller: int, by: int) -> None:
        """Elect another controller while ``controller`` is paused."""
        self.ensemble.drop_controller()
        self.run(by)
        assert self.loops[by].controller.active
        assert self.loops[controller].controller.active, "it does not know of its election"

    def stored(self, name: str) -> PartitionView:
        """Return a partition as stored."""
        cluster = self.ensemble.stored()
        return cluster.view(int(rows_of(cluster, [name])[0]))

    @property
    def zxid(self) -> int:
        """Return the number of store transactions: on records, and of state writes."""
        states = self.ensemble.stored().partitions
        return self.ensemble.records.zxid + int(states.partition_epoch.sum())


def entries(requests: Iterable[Request], api: str, name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return (broker, entry) of each request that contains a partition, in order."""
    return [
        (request["broker"], request["partitions"][name])
        for request in requests
        if request["api"] == api and name in request.get("partitions", {})
    ]
