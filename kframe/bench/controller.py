"""A controller of a cluster in memory whose store and transport are timed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from kframe.bench.phases import EncodingTransport, PhaseStopwatch, TimedSelection, TimedStore
from kframe.core.context import Context
from kframe.core.controller import ControllerCore
from kframe.embedded import MemoryEnsemble, VirtualClock
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.events import Event
from kframe.model.ids import ElectionKind
from kframe.model.texts import counted
from kframe.runtime.loop import ControllerLoop
from kframe.wire.encode import Encoder
from kframe.wire.versions import ControlVersions

CONTROLLER_ID: Final = 1_000_000
# Without a handler, partitions without a leader would be logged to standard error.
logging.getLogger("kframe").addHandler(logging.NullHandler())


class TimedController:
    """A controller, its store, and a transport that encodes every request."""

    def __init__(self, cluster: ClusterState, selectors: Mapping[ElectionKind, LeaderSelector] | None = None) -> None:
        """``cluster`` is the stored state and is copied. ``selectors`` replace Kafka's election rule."""
        self.watch = PhaseStopwatch()
        self.ensemble = MemoryEnsemble.from_cluster(cluster)
        config = ControllerConfig({"auto.leader.rebalance.enable": False})
        self.transport = EncodingTransport(Encoder(ControlVersions.of(config.protocol)), self.watch)
        self.selection = TimedSelection(selectors or {}, self.watch)
        store = TimedStore(self.ensemble.connect(), self.watch)
        self._loop = ControllerLoop(
            ControllerCore(CONTROLLER_ID, config, self.selection), store, self.transport, VirtualClock()
        )

    @property
    def context(self) -> Context:
        """The controller's context."""
        return self._loop.controller.context

    @property
    def cluster(self) -> ClusterState:
        """The controller's columns."""
        return self._loop.controller.cluster

    def open(self) -> None:
        """Start the election. ``run_until_idle`` performs the failover."""
        self._loop.open()

    def adopt(self) -> None:
        """Become the active controller without a failover."""
        self._loop.adopt()

    def run_until_idle(self) -> None:
        """Handle every queued event."""
        self._loop.run_until_idle()

    def request(self, event: Callable[[int], Event]) -> Any:
        """Submit a request, run until idle, and return the response."""
        future = self._loop.submit(event)
        self.run_until_idle()
        return future.result(timeout=0)

    def expect(self, holds: object, expectation: str) -> None:
        """Raise AssertionError unless the condition holds: the timed work was not the intended one."""
        if not holds:
            raise AssertionError(f"expected: {expectation}")

    def expect_led(self, partitions: int, preferred: bool = False) -> None:
        """Check that this many partitions have live leaders. With ``preferred``, that these are the first replicas."""
        p, live = self.cluster.partitions, self.cluster.brokers.live
        led = (p.topic >= 0) & (p.leader >= 0) & (np.append(live, 0)[p.leader] != 0)
        if preferred:
            led[led] = p.leader[led] == p.replica[p.slot_start[led]]
        self.expect(
            np.count_nonzero(led) == partitions,
            f"{counted(partitions, 'partition')} with {'preferred' if preferred else 'live'} leaders",
        )
