"""One controller's life on a cluster in memory, its ports timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from kframe.bench.phases import EncodingTransport, Stopwatch, TimedSelection, TimedStore
from kframe.core.context import Context
from kframe.core.controller import Controller
from kframe.embedded import MemoryEnsemble, VirtualClock
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.events import Event
from kframe.model.ids import ElectionKind
from kframe.runtime.loop import ControllerLoop
from kframe.wire.encode import Encoder
from kframe.wire.versions import ControlVersions

CONTROLLER_ID: Final = 1_000_000
#: Partitions that find no leader are no news here, and nobody reads a line about them.
logging.getLogger("kframe").addHandler(logging.NullHandler())


class Life:
    """A controller, its store and the transport that encodes all that it sends."""

    def __init__(self, cluster: ClusterState, selectors: Mapping[ElectionKind, LeaderSelector] | None = None) -> None:
        """``cluster`` is what storage holds; it is copied. ``selectors`` choose leaders in place of Kafka's rule."""
        self.watch = Stopwatch()
        self.ensemble = MemoryEnsemble.from_cluster(cluster)
        config = ControllerConfig({"auto.leader.rebalance.enable": False})
        self.transport = EncodingTransport(Encoder(ControlVersions.of(config.protocol)), self.watch)
        self.selection = TimedSelection(selectors or {}, self.watch)
        store = TimedStore(self.ensemble.connect(), self.watch)
        self._loop = ControllerLoop(
            Controller(CONTROLLER_ID, config, self.selection), store, self.transport, VirtualClock()
        )

    @property
    def context(self) -> Context:
        """All that the controller holds."""
        return self._loop.controller.context

    @property
    def cluster(self) -> ClusterState:
        """The cluster as the controller knows it."""
        return self._loop.controller.cluster

    def stand(self) -> None:
        """Stand for election; the failover is the first thing to ``rest`` from."""
        self._loop.open()

    def adopt(self) -> None:
        """Be the controller that has run this cluster all along."""
        self._loop.adopt()

    def rest(self) -> None:
        """Handle all that waits."""
        self._loop.run_until_idle()

    def ask(self, event: Callable[[int], Event]) -> Any:
        """Ask the controller, let it finish, and return its answer."""
        future = self._loop.submit(event)
        self.rest()
        return future.result(timeout=0)

    def expect(self, holds: object, expectation: str) -> None:
        """Raises AssertionError unless it holds: then something other than the work was timed."""
        if not holds:
            raise AssertionError(f"expected: {expectation}")

    def expect_led(self, partitions: int, preferred: bool = False) -> None:
        """Check that so many partitions have live leaders; with ``preferred``, their first replicas."""
        p, live = self.cluster.partitions, self.cluster.brokers.live
        led = (p.topic >= 0) & (p.leader >= 0) & (np.append(live, 0)[p.leader] != 0)
        if preferred:
            led[led] = p.leader[led] == p.replica[p.slot_start[led]]
        self.expect(np.count_nonzero(led) == partitions, f"{partitions} partitions with {_whose(preferred)} leaders")


def _whose(preferred: bool) -> str:
    return "preferred" if preferred else "live"
