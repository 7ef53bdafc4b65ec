"""A controller on a log in memory, for programs and tests: no directory, no listener, no timer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final, TypeVar

from kframe.plugin import CommitObserver, ElectionKind, LeaderSelector, StoreError
from kframe.plugin.kraft import ClusterMetadata
from kframe.plugin.kraft_controller import (
    PRODUCTION_LEVEL,
    Heartbeats,
    KraftContext,
    SelectorSelection,
    activate,
    default_levels,
)
from kframe.plugin.server import MutationQuotas
from kframe_kraft.controller import DecisionLoop, Event
from kframe_kraft.log import MemoryLog
from kframe_kraft.quorum import ReplicaKey, SoleVoter
from kframe_kraft.server.environment import Environment
from kframe_kraft.server.formatting import bootstrap_records
from kframe_kraft.server.leading import lead, role_details
from kframe_kraft.server.metrics import loop_metrics
from kframe_kraft.server.node_config import NodeConfig, node_config

T = TypeVar("T")
#: The keys of a directory and of listeners, which such a controller does not have.
_UNUSED: Final = {
    "process.roles": "controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://localhost:9093",
    "log.dirs": "memory",
}
_CLUSTER_ID: Final = "kframe-memory"


def make_memory_controller(url: str, config: Mapping[str, str]) -> MemoryController:
    """The controller for ``kraft-memory:``, by Kafka's keys. Raises ConfigError."""
    node_id = config.get("node.id", "")
    return MemoryController(node_config({**config, **_UNUSED, "controller.quorum.voters": f"{node_id}@localhost:9093"}))


class MemoryController:
    """Implements ``kframe.ports.quorum_controller.QuorumController``. The program decides when a session ends."""

    def __init__(self, config: NodeConfig) -> None:
        self._kraft = replace(
            config.kraft, cluster_id=_CLUSTER_ID, quorum_ids=(config.node_id,), validates_configs=True
        )
        self._settings = config.settings
        self._log = MemoryLog()
        self._quorum = SoleVoter(ReplicaKey(config.node_id), config.settings.static_voters, None, 0)
        self._selection = SelectorSelection({})
        self._loop: DecisionLoop | None = None

    @property
    def node_id(self) -> int:
        """See ``QuorumController``."""
        return self._kraft.node_id

    @property
    def addresses(self) -> Mapping[str, str]:
        """No listener."""
        return {}

    @property
    def failure(self) -> str | None:
        """See ``QuorumController``."""
        return None if self._loop is None else self._loop.failure

    @property
    def log_end(self) -> int:
        """See ``QuorumController``."""
        return self._log.end

    def problems(self) -> Sequence[str]:
        """See ``QuorumController``."""
        if self.failure is not None:
            return (self.failure,)
        return () if self._quorum.leadership is not None else ("this node does not lead",)

    def details(self) -> Mapping[str, Any]:
        """See ``QuorumController``."""
        is_active = not self.problems()
        return role_details(self.node_id, self._quorum.epoch, self._loop, self.log_end, is_active=is_active)

    def metrics(self) -> Mapping[str, float]:
        """See ``QuorumController``."""
        return loop_metrics(self._loop, self._selection, self._quorum.leadership is not None)

    def start(
        self, selectors: Mapping[ElectionKind, LeaderSelector] = {}, observer: CommitObserver | None = None
    ) -> None:
        """See ``QuorumController``. The cluster has the newest production levels of all features."""
        self._selection = SelectorSelection(selectors)
        self._quorum.stand()
        environment = Environment()
        context = KraftContext(
            ClusterMetadata(),
            Heartbeats(self._settings.session_timeout_ns),
            self._kraft,
            environment.random,
            selection=self._selection,
            mutation_quotas=MutationQuotas(self._settings.mutation_window_s),
        )
        self._loop = lead(self._quorum, self._log, context, _ignore, environment, observer, log_has_voters=False)
        self._loop.start()
        bootstrap = [*bootstrap_records(default_levels(PRODUCTION_LEVEL))]
        self._loop.submit(lambda context: activate(context, bootstrap, in_transaction=False))

    def stop(self) -> None:
        """See ``QuorumController``."""
        self._quorum.resign()
        if self._loop is not None:
            self._loop.stop()

    def submit(self, event: Event[T]) -> Future[T]:
        """See ``QuorumController``."""
        if self._loop is None:
            raise StoreError(f"node {self.node_id} does not lead")
        return self._loop.submit(event)

    def summary(self) -> str:
        """See ``QuorumController``."""
        return f"node {self.node_id} leads a cluster in memory in epoch {self._quorum.epoch}"


def _ignore() -> None:
    """No observer waits for the log."""
