"""The engine of a KRaft cluster: its controller, and the operations that are played on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kframe.model.tables import Targets
from kframe.whatif.engines.kraft.controller import WhatIfController
from kframe.whatif.engines.script import Assignments, Script

if TYPE_CHECKING:
    from kframe.whatif.engines.kraft.explain import KraftElectionExplainer


class KraftEngine(WhatIfController):
    """Implements ``Engine``, the failure of log directories, and updates of features and registrations."""

    def restart(self, ids: tuple[int, ...], together: bool, clean: bool | None, repair_directories: bool) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.restart import KraftRestart

        return KraftRestart(self, ids, together, clean, repair_directories)

    def fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> Script:
        """The failure of log directories of a broker."""
        from kframe.whatif.engines.kraft.directories import directory_failure

        return directory_failure(self, broker_id, failed)

    def change_features(self, levels: Mapping[str, int], unsafe: bool, voters: Collection[int]) -> Script:
        """An update of feature levels."""
        from kframe.whatif.engines.kraft.features import KraftFeatures

        return KraftFeatures(self, levels, unsafe, voters)

    def unregister(self, brokers: tuple[int, ...], controllers: tuple[int, ...]) -> Script:
        """The removal of registrations."""
        from kframe.whatif.engines.kraft.features import unregistration

        return unregistration(self, brokers, controllers)

    def create_topic(
        self, name: str, partitions: int, replication_factor: int, assignments: Assignments, seed: int
    ) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.topics import topic_creation

        return topic_creation(self, name, partitions, replication_factor, assignments, seed)

    def create_partitions(self, name: str, count: int, assignments: Assignments, seed: int) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.topics import partitions_creation

        return partitions_creation(self, name, count, assignments, seed)

    def delete_topics(self, names: tuple[str, ...]) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.topics import KraftDeletion

        return KraftDeletion(self, names)

    def reassign(self, targets: Targets) -> Script:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.reassign import KraftReassignment

        return KraftReassignment(self, targets)

    def explainer(self, row: int) -> KraftElectionExplainer:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.explain import KraftElectionExplainer

        return KraftElectionExplainer(self, row)
