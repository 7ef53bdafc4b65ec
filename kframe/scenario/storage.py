"""The storage interface for scenarios, independent of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.external_changes import ExternalChanges


class ScenarioStorage(ExternalChanges, Protocol):
    """Storage whose content can be inspected, such as ``kframe.embedded.MemoryEnsemble``."""

    def stored(self) -> ClusterState:
        """The stored topics, assignments and states. Read-only, and valid until the next change."""

    def registrations(self) -> tuple[Registration, ...]:
        """All registered brokers, by id."""


#: Makes storage that holds a cluster.
StorageFactory: TypeAlias = Callable[[ClusterState], ScenarioStorage]
