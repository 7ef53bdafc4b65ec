"""What a scenario needs of the storage that it is played in, whichever store that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.surroundings import ClusterContext


class ScenarioStorage(ClusterContext, Protocol):
    """Storage whose content can be inspected. ``kframe.embedded.MemoryEnsemble`` is one."""

    def stored(self) -> ClusterState:
        """Topics, assignments and states as they are stored now; only to be read, and until something changes."""

    def registrations(self) -> tuple[Registration, ...]:
        """All brokers that are registered now, by id."""


#: Makes storage that holds a cluster.
StorageFactory: TypeAlias = Callable[[ClusterState], ScenarioStorage]
