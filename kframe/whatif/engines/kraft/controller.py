"""The controller of a KRaft cluster in a what-if, without brokers and in no time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication.selectors import SelectorSelection
from kframe.core.selectors.leader_selection import FaultKind
from kframe.errors import InputError
from kframe.model.arrays import Int32
from kframe.model.elections import LeaderSelector
from kframe.model.events import ElectionType
from kframe.model.ids import ElectionKind
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.snapshot import Snapshot
from kframe.whatif.engines.known_facts import KnownFacts
from kframe.whatif.engines.kraft.broker_processes import BrokerProcesses
from kframe.whatif.engines.kraft.changes import kraft_changes
from kframe.whatif.engines.kraft.commit import Committer
from kframe.whatif.engines.kraft.health import kraft_health
from kframe.whatif.engines.kraft.settings import (
    kraft_config,
    kraft_settings,
    level_assumptions,
    release_of,
    snapshot_with_features,
    stated_release,
)
from kframe.whatif.engines.script import Action
from kframe.whatif.results.changes import PartitionChanges
from kframe.whatif.results.health import ClusterHealth
from kframe.whatif.results.outcome import Outcome
from kframe.whatif.results.timeline import TimelineEvent
from kframe.whatif.results.traffic import SentBatch

#: Nothing expires: no time passes.
_SESSION_NS: Final = 1
_KINDS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class KraftController:
    """The active controller of a KRaft cluster, which commits each decision at once."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: Mapping[str, object] | None = None,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
    ) -> None:
        """See ``engine_of``."""
        self.known = KnownFacts.of(snapshot, config)
        self.selectors = dict(selectors or {})
        stated = stated_release(config)
        snapshot, config = snapshot_with_features(snapshot, config)
        self.config, self.assumptions = kraft_config(snapshot, config)
        metadata = snapshot.to_metadata()
        self.snapshot = snapshot = snapshot.without_partitions()
        release, assumed = release_of(metadata, snapshot.controller_id, stated)
        self.assumptions = (*self.assumptions, *assumed, *level_assumptions(metadata))
        self.assumes_release = bool(assumed)
        """Whether the release of the controllers is neither stated nor known."""
        settings = kraft_settings(snapshot, metadata, self.config, config, release)
        heartbeats = Heartbeats.activated(_SESSION_NS, metadata.brokers.registrations, 0)
        self.selection = SelectorSelection(self.selectors)
        self.context = KraftContext(metadata, heartbeats, settings, JavaRandom(0), selection=self.selection)
        """The state of the active controller; read-only."""
        offsets = [registration.offset for registration in metadata.brokers.registrations.values()]
        known = None if snapshot.kraft is None else snapshot.kraft.offset
        self.committer = Committer(self.context, max([known or 0, *offsets]) + 1)
        self.processes = BrokerProcesses()

    @property
    def cluster(self) -> ClusterMetadata:
        """The current metadata; read-only."""
        return self.context.metadata

    @property
    def knows_partition_epochs(self) -> bool:
        """Whether the snapshot has the partition epochs. They are taken as 0 otherwise."""
        return self.known.epochs[1]

    @property
    def quorum(self) -> tuple[int, ...]:
        """See ``Engine``."""
        return tuple(sorted(self.context.metadata.controllers))

    def min_isr(self) -> Int32:
        """See ``Engine``. 0 for rows that no topic owns."""
        p = self.context.metadata.partitions
        minimum, rows = np.zeros(len(p), np.int32), np.flatnonzero(p.topic >= 0).astype(np.int32)
        minimum[rows] = self.context.min_isr(rows)
        return minimum

    def health(self) -> ClusterHealth:
        """The health of the cluster now."""
        return self.known.observers.exclude(kraft_health(self.context, self.known.min_insync), self.cluster)

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """See ``Engine``."""
        return self.selection.faults

    def registration(self, broker_id: int) -> BrokerRegistration:
        """The registration of a broker. Raises InputError for a broker without one."""
        registration = self.context.metadata.brokers.registrations.get(broker_id)
        if registration is None:
            raise InputError("brokers", f"broker {broker_id}", "a broker with a registration")
        return registration

    def commit(self, decided: ControllerResult[object], *, in_sync: bool = False) -> None:
        """Apply a decision; see ``Committer.commit``."""
        self.committer.commit(decided, in_sync=in_sync)

    def decide(self, request: Callable[[], ControllerResult[Any]], *, in_sync: bool = False) -> ControllerResult[Any]:
        """The decision on a request, committed. Raises RequestRefused."""
        result = request()
        self.commit(result, in_sync=in_sync)
        return result

    def stop(self, ids: tuple[int, ...]) -> Action:
        """See ``Engine``. The sessions of brokers expire one after another, in the order in which they are named."""

        def act() -> None:
            registrations = self.context.metadata.brokers.registrations
            for broker_id in ids:
                if broker_id not in self.processes.clean_shutdown_epochs:
                    self.processes.failed.add(broker_id)
                if not registrations[broker_id].fenced:
                    self.commit(broker_events.fence_broker(self.context, registrations[broker_id]))
                    self.context.heartbeats.fence(broker_id)

        return act

    # -- observing an operation

    def begin(self) -> None:
        """See ``Engine``."""
        self.committer.begin()

    def settle(self) -> None:
        """See ``Engine``. A decision is complete once it is committed."""

    def take_events(self) -> tuple[TimelineEvent, ...]:
        """See ``Engine``."""
        return self.committer.observations.take_events()

    def record_batches(self, *, bodies: bool = False) -> None:
        """See ``Engine``."""

    def take_batches(self) -> tuple[SentBatch, ...]:
        """See ``Engine``."""
        return ()

    def changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        """See ``Engine``."""
        return kraft_changes(
            self.committer.saved_rows,
            self.context.metadata,
            health,
            self.committer.observations.unclean,
            self.known.epochs,
        )

    def with_messages(self, outcome: Outcome) -> Outcome:
        """See ``Engine``."""
        return replace(outcome, records=self.committer.observations.record_counts())
