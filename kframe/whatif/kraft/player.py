"""The controller of a KRaft cluster, which plays the steps of what-if operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

import numpy as np

from kframe.core.kraft import broker_events, directories, elections, features
from kframe.core.kraft.broker_events import BrokerHeartbeat
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.decision import ControllerResult, DecisionPart, PartitionResult, RequestRefused
from kframe.core.kraft.features import UpgradeType
from kframe.core.kraft.heartbeats import Heartbeats
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.registration import register_broker
from kframe.core.kraft.selectors import SelectorSelection
from kframe.core.selectors.leader_selection import FaultKind
from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.ports import Clock
from kframe.whatif.changes import PartitionChanges
from kframe.whatif.health import ClusterHealth
from kframe.whatif.kraft.changes import kraft_changes
from kframe.whatif.kraft.commit import Committer
from kframe.whatif.kraft.health import kraft_health
from kframe.whatif.kraft.settings import kraft_config, kraft_settings, snapshot_with_features
from kframe.whatif.kraft.stops import registration_request
from kframe.whatif.observe import BatchWatch
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.timeline import TimelineEvent
from kframe.whatif.whatif import Step, WhatIf, step_name

#: Nothing expires: no time passes.
_SESSION_NS: Final = 1
_KINDS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class KraftPlayer(WhatIf):
    """A KRaft controller that plays steps; see ``WhatIf``."""

    def _start_controller(
        self, config: Mapping[str, object] | None, clock: Clock | None, batches: BatchWatch | None
    ) -> None:
        """See ``WhatIf``; the clock and the batches have no use."""
        snapshot, config = snapshot_with_features(self.snapshot, config)
        self.snapshot = snapshot
        self.config, self.assumptions = kraft_config(snapshot, config)
        metadata = snapshot.to_metadata()
        self.snapshot = snapshot = snapshot.without_partitions()
        settings = kraft_settings(snapshot, metadata, self.config, config)
        heartbeats = Heartbeats.activated(_SESSION_NS, metadata.brokers.registrations, 0)
        self._selection = SelectorSelection(self._selectors)
        self.context = KraftContext(metadata, heartbeats, settings, JavaRandom(0), selection=self._selection)
        """The state of the active controller; read-only."""
        offsets = [registration.offset for registration in metadata.brokers.registrations.values()]
        known = None if snapshot.kraft is None else snapshot.kraft.offset
        self._committer = Committer(self.context, max([known or 0, *offsets]) + 1)
        self._clean_shutdown_epochs: dict[int, int] = {}
        """Broker epochs of brokers after a controlled shutdown, which they send when they register again."""
        self._failed: set[int] = set()

    @property
    def cluster(self) -> ClusterMetadata:
        """The current metadata; read-only."""
        return self.context.metadata

    @property
    def rules(self) -> str:
        """``KRaft rules, metadata.version 4.3-IV0, ELR on``."""
        metadata = self.context.metadata
        elr = "on" if metadata.elr_enabled else "off"
        return f"KRaft rules, metadata.version {level_name(metadata.metadata_version)}, ELR {elr}"

    @property
    def registered(self) -> tuple[int, ...]:
        """See ``WhatIf``."""
        registrations = self.context.metadata.brokers.registrations
        return tuple(sorted(broker_id for broker_id, stored in registrations.items() if not stored.fenced))

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """See ``WhatIf``."""
        return self._selection.faults

    def _health(self) -> ClusterHealth:
        return kraft_health(self.context, self._knows_min_insync)

    # -- actions of a step

    def commit(self, decided: Sequence[DecisionPart], *, in_sync: bool = False) -> None:
        """Apply a decision; see ``Committer.commit``."""
        self._committer.commit(decided, in_sync=in_sync)

    def decide(self, request: Callable[[], ControllerResult], *, in_sync: bool = False) -> ControllerResult:
        """The decision on a request, committed. Raises RequestRefused."""
        result = request()
        self.commit(result.parts, in_sync=in_sync)
        return result

    def _stop(self, ids: tuple[int, ...]) -> Callable[[], None]:
        """The sessions of brokers expire one after another, in the order in which they are named."""

        def act() -> None:
            registrations = self.context.metadata.brokers.registrations
            for broker_id in ids:
                if broker_id not in self._clean_shutdown_epochs:
                    self._failed.add(broker_id)
                if not registrations[broker_id].fenced:
                    self.commit(broker_events.fence_broker(self.context, registrations[broker_id]))
                    self.context.heartbeats.fence(broker_id)

        return act

    def fence_action(self, ids: tuple[int, ...]) -> Callable[[], None]:
        """The controller fences brokers; their processes keep running."""

        def act() -> None:
            for broker_id in ids:
                registration = self.context.metadata.brokers.registrations[broker_id]
                self.commit(broker_events.fence_broker(self.context, registration))

        return act

    def unfence_action(self, ids: tuple[int, ...]) -> Callable[[], None]:
        """The controller unfences those of the brokers that are fenced."""

        def act() -> None:
            for broker_id in ids:
                registration = self.context.metadata.brokers.registrations[broker_id]
                if registration.fenced:
                    self.commit(broker_events.unfence_broker(self.context, registration))

        return act

    def _restart(self, ids: tuple[int, ...], clean: bool | None) -> Step:
        """New processes of brokers register, and are unfenced. After an unclean stop a broker leaves the ELRs."""

        def act() -> ControllerResponse:
            for broker_id in ids:
                was_clean = broker_id not in self._failed if clean is None else clean
                request = registration_request(
                    self.context, self.snapshot, broker_id, was_clean, self._committer.offset
                )
                try:
                    self.decide(lambda request=request: register_broker(self.context, request, self._committer.offset))  # type: ignore[misc]
                except RequestRefused as refusal:
                    return self.refused(refusal)
                self._failed.discard(broker_id)
                self._clean_shutdown_epochs.pop(broker_id, None)
                self.unfence_action((broker_id,))()
            return _response()

        return step_name(ids, "restarts", "restart"), act

    def _request_shutdown(self, broker_id: int) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            context, offset = self.context, self._committer.offset
            registration = context.metadata.brokers.registrations[broker_id]
            for other in context.heartbeats.brokers.values():
                other.metadata_offset = max(other.metadata_offset, offset)  # every broker has applied the log
            heartbeat = BrokerHeartbeat(broker_id, registration.broker_epoch, offset, want_shut_down=True)
            self.decide(lambda: broker_events.handle_heartbeat(context, heartbeat))
            broker = context.metadata.brokers.index_of(broker_id)
            remaining = context.metadata.partitions.rows_led_by(broker)
            if not len(remaining):
                self._clean_shutdown_epochs[broker_id] = registration.broker_epoch
            return ControllerResponse(ErrorCode.NONE, remaining)

        return act

    def _request_election(
        self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None
    ) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            try:
                result = self.decide(lambda: elections.elect_leaders(self.context, _KINDS[election], partitions))
            except RequestRefused as refusal:
                return self.refused(refusal)
            return partition_response(self.context.metadata, result.response)

        return act

    def directory_failure(self, broker_id: int, failed: Sequence[UUID]) -> Callable[[], None]:
        """A broker reports log directories as failed."""

        def act() -> None:
            registration = self.context.metadata.brokers.registrations[broker_id]
            self.commit(directories.handle_directories_offline(self.context, registration, failed))

        return act

    def feature_update(self, levels: Mapping[str, int], unsafe: bool) -> Callable[[], ControllerResponse]:
        """An administrator updates feature levels; ``unsafe`` permits downgrades that lose metadata."""

        def act() -> ControllerResponse:
            downgrade = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
            current = self.context.metadata.features
            updates = {
                name: (level, UpgradeType.UPGRADE if level >= current.get(name, 0) else downgrade)
                for name, level in levels.items()
            }
            try:
                self.decide(lambda: features.update_features(self.context, updates))
            except RequestRefused as refusal:
                return self.refused(refusal)
            return _response()

        return act

    @staticmethod
    def refused(refusal: RequestRefused) -> ControllerResponse:
        """The response to a request that the controller refuses as a whole."""
        return ControllerResponse(refusal.error, np.empty(0, np.int32), np.empty(0, np.int16), (refusal.message,))

    # -- playing and noting

    def _with_messages(self, outcome: Outcome) -> Outcome:
        return replace(outcome, records=self._committer.observations.record_counts())

    def _begin(self) -> None:
        self._committer.begin()

    def _take_events(self) -> tuple[TimelineEvent, ...]:
        return self._committer.observations.take_events()

    def _changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        return kraft_changes(
            self._committer.saved_rows, self.context.metadata, health, self._committer.observations.unclean,
            self._known_epochs,
        )  # fmt: skip

    def _notes(self, operation: Operation) -> Iterator[str]:
        if operation.verb in (Verb.RESTART, Verb.UNFENCE):
            yield "replicas rejoin the ISR when they have caught up; that is left out"


def _response(error: ErrorCode = ErrorCode.NONE) -> ControllerResponse:
    return ControllerResponse(error, np.empty(0, np.int32), np.empty(0, np.int16))


def partition_response(metadata: ClusterMetadata, results: Sequence[PartitionResult]) -> ControllerResponse:
    """The response to a request for partitions, some of which may not exist."""
    codes = np.array([result.error for result in results], np.int16)
    wrong = tuple(f"{result.topic}-{result.partition}" for result in results if result.error is not ErrorCode.NONE)
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong)
