"""The controller of a KRaft cluster, without brokers and in no time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final
from uuid import UUID

import numpy as np

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.brokers.broker_events import BrokerHeartbeat
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, PartitionResult, RequestRefused
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication import elections
from kframe.core.kraft.replication.selectors import SelectorSelection
from kframe.core.selectors.leader_selection import FaultKind
from kframe.errors import ErrorCode, InputError, ParameterError
from kframe.model.arrays import Int32
from kframe.model.elections import LeaderSelector
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.ids import ElectionKind
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.releases import stated_release
from kframe.model.texts import ids_text
from kframe.snapshot import Snapshot
from kframe.snapshot.content import Mode, brokers_text
from kframe.whatif.engines.known_facts import KnownFacts
from kframe.whatif.engines.kraft.commit import Committer
from kframe.whatif.engines.kraft.health import kraft_health
from kframe.whatif.engines.kraft.responses import partition_response, refused
from kframe.whatif.engines.kraft.settings import (
    kraft_settings,
    level_assumptions,
    release_assumptions,
    release_of,
    snapshot_with_features,
)
from kframe.whatif.engines.settings import assumptions_of, config_of
from kframe.whatif.results.changes import PartitionChanges, changes_between
from kframe.whatif.results.health import ClusterHealth
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.results.release import ReleaseRecord
from kframe.whatif.results.timeline import TimelineEvent
from kframe.whatif.results.traffic import SentBatch

#: Nothing expires: no time passes.
_SESSION_NS: Final = 1
_KINDS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class WhatIfController:
    """The active controller of a KRaft cluster, which commits each decision at once. Brokers that are up are those that
    are not fenced."""

    mode: ClassVar[Mode] = "kraft"
    verbs: ClassVar[frozenset[Verb]] = frozenset(Verb)

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
        self.config = config_of(snapshot, config)
        assumptions = assumptions_of(snapshot, config)
        metadata = snapshot.to_metadata()
        self.snapshot = snapshot = snapshot.without_partitions()
        self.known_release = release_of(snapshot, metadata, stated)
        assumed = (*release_assumptions(self.known_release), *level_assumptions(metadata))
        self.assumptions = (*assumptions, *assumed)
        settings = kraft_settings(snapshot, metadata, self.config, config, self.known_release)
        heartbeats = Heartbeats.activated(_SESSION_NS, metadata.brokers.registrations, 0)
        self.selection = SelectorSelection(self.selectors)
        self.context = KraftContext(metadata, heartbeats, settings, JavaRandom(0), selection=self.selection)
        """The state of the active controller; read-only."""
        offsets = [registration.offset for registration in metadata.brokers.registrations.values()]
        known = None if snapshot.kraft is None else snapshot.kraft.offset
        self.committer = Committer(self.context, max([known or 0, *offsets]) + 1)
        self.failed: set[int] = set()
        """Brokers whose last stop was not clean."""
        self.clean_shutdown_epochs: dict[int, int] = {}
        """Broker epochs of brokers after a controlled shutdown, which they send when they register again."""
        self.failed_directories: dict[int, frozenset[UUID]] = {}
        """The log directories that brokers reported as failed."""

    @property
    def cluster(self) -> ClusterMetadata:
        """The current metadata; read-only."""
        return self.context.metadata

    @property
    def rules(self) -> str:
        """``KRaft (Kafka 4.3, metadata.version 4.3-IV0, ELR on)``, with ``assumed`` for an unknown release."""
        metadata = self.context.metadata
        elr = "on" if metadata.elr_enabled else "off"
        level = level_name(metadata.metadata_version)
        release = f"{self.context.settings.release}{' assumed' if self.known_release.source == 'assumed' else ''}"
        return f"KRaft (Kafka {release}, metadata.version {level}, ELR {elr})"

    @property
    def release(self) -> ReleaseRecord:
        """See ``Engine``."""
        return self.known_release.record(self.context.consulted)

    @property
    def registered(self) -> tuple[int, ...]:
        """See ``Engine``."""
        registrations = self.context.metadata.brokers.registrations
        return tuple(sorted(broker_id for broker_id, stored in registrations.items() if not stored.fenced))

    def voters(self, stated: Collection[int] = ()) -> tuple[int, ...]:
        """The controllers of the quorum, ascending: those of the snapshot, else as ``stated``. Empty if unknown.

        Raises InputError if the snapshot has others than those stated.
        """
        known = None if self.snapshot.kraft is None else self.snapshot.kraft.voters
        if known is not None and stated and set(stated) != set(known):
            raise ParameterError(
                "voters", ids_text(sorted(stated)), f"those of the snapshot: {ids_text(sorted(known))}"
            )
        return tuple(sorted(known if known is not None else stated))

    def quorum(self, voters: Collection[int]) -> tuple[int, ...]:
        """See ``Engine``."""
        return self.voters(voters) or tuple(sorted(self.context.metadata.controllers))

    def min_isr(self) -> Int32:
        """(n,) the effective ``min.insync.replicas`` of each partition; 0 for rows that no topic owns."""
        p = self.context.metadata.partitions
        minimum, rows = np.zeros(len(p), np.int32), np.flatnonzero(p.topic >= 0).astype(np.int32)
        minimum[rows] = self.context.min_isr(rows)
        return minimum

    def health(self) -> ClusterHealth:
        """The health of the cluster now."""
        return self.known.without_observers(kraft_health(self.context, self.known.min_insync), self.cluster)

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

    def decide(self, request: Callable[[], ControllerResult[Any]]) -> Any:
        """The response to a request whose decision is committed. Raises RequestRefused."""
        result = request()
        self.commit(result)
        return result.response

    # -- steps

    def stop(self, ids: tuple[int, ...]) -> None:
        """See ``Engine``. The sessions of brokers expire in the order in which they are named."""
        registrations = self.context.metadata.brokers.registrations
        for broker_id in ids:
            if broker_id not in self.clean_shutdown_epochs:
                self.failed.add(broker_id)
            if not registrations[broker_id].fenced:
                self.fence((broker_id,))
                self.context.heartbeats.fence(broker_id)

    def shut_down(self, broker_id: int) -> ControllerResponse:
        """See ``Engine``."""
        context, offset = self.context, self.committer.offset
        registration = context.metadata.brokers.registrations[broker_id]
        for other in context.heartbeats.brokers.values():
            other.metadata_offset = max(other.metadata_offset, offset)  # every broker has applied the log
        heartbeat = BrokerHeartbeat(broker_id, registration.broker_epoch, offset, want_shut_down=True)
        self.decide(lambda: broker_events.handle_heartbeat(context, heartbeat))
        broker = context.metadata.brokers.index_of(broker_id)
        remaining = context.metadata.partitions.rows_led_by(broker)
        if not len(remaining):
            self.clean_shutdown_epochs[broker_id] = registration.broker_epoch
        return ControllerResponse(ErrorCode.NONE, remaining)

    def elect(self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None) -> ControllerResponse:
        """See ``Engine``."""
        try:
            response = self.decide(lambda: elections.elect_leaders(self.context, _KINDS[election], partitions))
        except RequestRefused as refusal:
            return refused(refusal)
        return partition_response(map(self._with_reason, response))

    def _with_reason(self, result: PartitionResult) -> PartitionResult:
        """The result of an election, with a reason where no leader was elected."""
        metadata = self.context.metadata
        row = metadata.row(result.topic, result.partition)
        if row is None or result.error not in (
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ):
            return result
        indexes = metadata.partitions.lists("replica", np.array([row], np.int32)).values
        replicas, active = metadata.brokers.ids[indexes].tolist(), metadata.brokers.active[indexes] != 0
        message = f"none of its replicas is active: {brokers_text(replicas)}"
        if active.any():
            message = f"none of its replicas is eligible: {brokers_text(replicas)}"
        if result.error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE:
            state = "not in the ISR" if active[0] else "not active"
            message = f"its preferred replica, broker {replicas[0]}, is {state}"
        return replace(result, message=message)

    def fence(self, ids: tuple[int, ...]) -> None:
        """The controller fences brokers; their processes keep running."""
        for broker_id in ids:
            self.commit(broker_events.fence_broker(self.context, self.registration(broker_id)))

    def unfence(self, ids: tuple[int, ...]) -> None:
        """The controller unfences those of the brokers that are fenced."""
        for broker_id in ids:
            registration = self.registration(broker_id)
            if registration.fenced:
                self.commit(broker_events.unfence_broker(self.context, registration))

    def notes(self, operation: Operation) -> Iterator[str]:
        """See ``Engine``. There are none of this mode."""
        return iter(())

    # -- observing an operation

    def begin(self) -> None:
        """See ``Engine``."""
        self.context.consulted.clear()
        self.committer.begin()

    def settle(self) -> None:
        """See ``Engine``. A decision is complete once it is committed."""

    def take_events(self) -> tuple[TimelineEvent, ...]:
        """See ``Engine``."""
        return self.committer.take_events()

    def record_batches(self, *, bodies: bool = False) -> None:
        """See ``Engine``."""

    def take_batches(self) -> tuple[SentBatch, ...]:
        """See ``Engine``."""
        return ()

    def changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        """See ``Engine``."""
        return changes_between(
            self.committer.saved_rows,
            self.context.metadata,
            health,
            self.committer.unclean,
            self.known.epochs,
        )

    def with_messages(self, outcome: Outcome) -> Outcome:
        """See ``Engine``."""
        return replace(outcome, records=self.committer.record_counts())
