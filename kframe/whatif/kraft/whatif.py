"""What-if operations on a KRaft cluster, without brokers and in no time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np

from kframe.core.kraft.brokers import broker_events, log_directories
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest, register_broker
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.controller_result import ControllerResult, PartitionResult, RequestRefused
from kframe.core.kraft.features.feature_updates import UpgradeType, update_features
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication import elections
from kframe.core.kraft.replication.selectors import SelectorSelection
from kframe.core.selectors.leader_selection import FaultKind
from kframe.errors import ErrorCode, InputError
from kframe.lazy import load_at_call
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.ids import KraftElection, MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.ports import Clock
from kframe.snapshot.content import brokers_text
from kframe.whatif.changes import PartitionChanges
from kframe.whatif.health import ClusterHealth
from kframe.whatif.kraft.changes import kraft_changes
from kframe.whatif.kraft.commit import Committer
from kframe.whatif.kraft.failed_directories import directory_assumptions, failed_directories
from kframe.whatif.kraft.health import kraft_health
from kframe.whatif.kraft.settings import (
    kraft_config,
    kraft_settings,
    level_assumptions,
    release_of,
    snapshot_with_features,
    stated_release,
)
from kframe.whatif.modes import ModeOperations
from kframe.whatif.observe import BatchWatch
from kframe.whatif.outcome import ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.timeline import TimelineEvent
from kframe.whatif.whatif import Step, WhatIf, groups, step_name

#: Nothing expires: no time passes.
_SESSION_NS: Final = 1
#: ``previousBrokerEpoch`` of a broker after an unclean shutdown (Kafka ``BrokerRegistrationRequest``).
_NO_PREVIOUS_EPOCH: Final = -1
_KINDS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class KraftWhatIf(WhatIf):
    """A KRaft cluster; see ``WhatIf``. The brokers that it calls registered are those that are not fenced."""

    _operations = ModeOperations(
        load_at_call("kframe.whatif.kraft.topics", "play_creation"),
        load_at_call("kframe.whatif.kraft.topics", "play_expansion"),
        load_at_call("kframe.whatif.kraft.topics", "play_deletion"),
        load_at_call("kframe.whatif.kraft.reassign", "play_reassignment"),
        load_at_call("kframe.whatif.kraft.explain", "explain_elections"),
    )

    def _start_controller(
        self, config: Mapping[str, object] | None, clock: Clock | None, batches: BatchWatch | None
    ) -> None:
        """See ``WhatIf``; the clock and the batches have no use."""
        stated = stated_release(config)
        snapshot, config = snapshot_with_features(self.snapshot, config)
        self.config, self.assumptions = kraft_config(snapshot, config)
        metadata = snapshot.to_metadata()
        self.snapshot = snapshot = snapshot.without_partitions()
        release, assumed = release_of(metadata, snapshot.controller_id, stated)
        self.assumptions = (*self.assumptions, *assumed, *level_assumptions(metadata))
        self.assumes_release = bool(assumed)
        """Whether the release of the controllers is neither stated nor known."""
        settings = kraft_settings(snapshot, metadata, self.config, config, release)
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
        self._failed_directories: dict[int, frozenset[UUID]] = {}
        """The log directories that brokers reported as failed in this what-if."""

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
        release = f"{self.context.settings.release}{' assumed' if self.assumes_release else ''}"
        return f"KRaft (Kafka {release}, metadata.version {level}, ELR {elr})"

    @property
    def registered(self) -> tuple[int, ...]:
        """See ``WhatIf``."""
        registrations = self.context.metadata.brokers.registrations
        return tuple(sorted(broker_id for broker_id, stored in registrations.items() if not stored.fenced))

    @property
    def knows_partition_epochs(self) -> bool:
        """Whether the snapshot has the partition epochs. They are taken as 0 otherwise."""
        return self._known_epochs[1]

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """See ``WhatIf``."""
        return self._selection.faults

    def _health(self) -> ClusterHealth:
        return kraft_health(self.context, self._knows_min_insync)

    # -- operations

    def fence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """See ``WhatIf``."""
        ids = self._select_brokers(brokers, racks, registered=True)
        steps: list[Step] = [
            (step_name(group, "is fenced", "are fenced"), partial(self._fence, group))
            for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.FENCE, ids, together), steps)

    def unfence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """See ``WhatIf``."""
        ids = self._select_brokers(brokers, racks, registered=False)
        for broker_id in ids:
            self._registration(broker_id)
        steps: list[Step] = [
            (step_name(group, "is unfenced", "are unfenced"), partial(self._unfence, group))
            for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.UNFENCE, ids, together), steps)

    def restart(
        self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True,
        clean: bool | None = None, repair_directories: bool = False,
    ) -> Outcome:  # fmt: skip
        """See ``WhatIf``."""
        outcome = super().restart(brokers, racks, together=together, clean=clean, repair_directories=repair_directories)
        restarted = outcome.operation.brokers
        assumed = directory_assumptions(self.context.metadata, restarted, self._failed_directories)
        return replace(outcome, assumptions=(*outcome.assumptions, *assumed))

    def fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> Outcome:
        """See ``WhatIf``."""
        (broker_id,) = self._select_brokers([broker_id], [], registered=True)
        listed = self.context.metadata.brokers.registrations[broker_id].directories
        if self.context.level < MetadataLevel.DIRECTORIES:
            expected = f"{level_name(MetadataLevel.DIRECTORIES)} or later"
            raise InputError("metadata.version", level_name(self.context.level), expected)
        unlisted = [uuid_text(directory) for directory in failed if directory not in listed]
        if unlisted or not failed:
            expected = f"a log directory of broker {broker_id}: {', '.join(map(uuid_text, listed)) or 'it lists none'}"
            raise InputError("directories", unlisted[0] if unlisted else "none", expected)
        operation = Operation(Verb.DIRECTORY, (broker_id,), directories=tuple(map(uuid_text, failed)))
        steps: list[Step] = [
            (f"log directories of broker {broker_id} fail", partial(self._fail_directories, broker_id, failed))
        ]
        reported = self._failed_directories.get(broker_id, frozenset())
        self._failed_directories[broker_id] = reported | set(failed)
        if not set(listed) - set(failed):
            steps = [(f"broker {broker_id} stops without a log directory", self._stop((broker_id,)))]
        return self.play(operation, steps)

    def update_features(self, levels: Mapping[str, int], *, unsafe: bool = False) -> Outcome:
        """See ``WhatIf``."""
        if not levels:
            raise InputError("features", "no feature", "at least one")
        operation = Operation(Verb.FEATURE, features=dict(levels))
        return self.play(operation, [("feature levels change", partial(self._update_features, dict(levels), unsafe))])

    # -- actions of a step

    def commit(self, decided: ControllerResult[object], *, in_sync: bool = False) -> None:
        """Apply a decision; see ``Committer.commit``."""
        self._committer.commit(decided, in_sync=in_sync)

    def decide(self, request: Callable[[], ControllerResult[Any]], *, in_sync: bool = False) -> ControllerResult[Any]:
        """The decision on a request, committed. Raises RequestRefused."""
        result = request()
        self.commit(result, in_sync=in_sync)
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

    def _fence(self, ids: tuple[int, ...]) -> None:
        """The controller fences brokers; their processes keep running."""
        for broker_id in ids:
            self.commit(broker_events.fence_broker(self.context, self._registration(broker_id)))

    def _unfence(self, ids: tuple[int, ...]) -> None:
        """The controller unfences those of the brokers that are fenced."""
        for broker_id in ids:
            registration = self._registration(broker_id)
            if registration.fenced:
                self.commit(broker_events.unfence_broker(self.context, registration))

    def _registration(self, broker_id: int) -> BrokerRegistration:
        registration = self.context.metadata.brokers.registrations.get(broker_id)
        if registration is None:
            raise InputError("brokers", f"broker {broker_id}", "a broker with a registration")
        return registration

    def _restart(self, ids: tuple[int, ...], clean: bool | None, repair_directories: bool) -> Step:
        """New processes of brokers register, and are unfenced. After an unclean stop a broker leaves the ELRs.

        A broker does not start without a log directory.
        """

        def act() -> ControllerResponse:
            for broker_id in ids:
                was_clean = broker_id not in self._failed if clean is None else clean
                directories = self._directories_after_restart(broker_id, repair_directories)
                if directories is None:
                    continue
                request = self._registration_request(broker_id, was_clean, directories)
                try:
                    self.decide(lambda request=request: register_broker(self.context, request, self._committer.offset))  # type: ignore[misc]
                except RequestRefused as refusal:
                    return self.refused(refusal)
                self._failed.discard(broker_id)
                self._clean_shutdown_epochs.pop(broker_id, None)
                self._unfence((broker_id,))
            return _response()

        return step_name(ids, "restarts", "restart"), act

    def _directories_after_restart(self, broker_id: int, repair: bool) -> tuple[UUID, ...] | None:
        """The log directories that a new process of a broker registers. None if all of them have failed."""
        listed = self._registration(broker_id).directories
        reported = frozenset() if repair else self._failed_directories.get(broker_id, frozenset())
        online = tuple(directory for directory in listed if directory not in reported)
        if repair:
            failed = failed_directories(
                self.context.metadata, broker_id, self._failed_directories.pop(broker_id, frozenset())
            )
            online += tuple(directory for directory in failed if directory not in online)
        return None if listed and not online else online

    def _registration_request(
        self, broker_id: int, clean: bool, directories: tuple[UUID, ...]
    ) -> BrokerRegistrationRequest:
        """The registration of a new process of a broker.

        The session of the former process has expired.
        """
        registration = self._registration(broker_id)
        self.context.heartbeats.contact_ns.pop((broker_id, registration.broker_epoch), None)
        process = f"{self.snapshot.source.name}/{broker_id}/{self._committer.offset}"
        return BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self.context.settings.cluster_id,
            incarnation_id=uuid5(NAMESPACE_OID, process),
            end_points=registration.end_points,
            features=registration.features,
            rack=registration.rack,
            directories=directories,
            previous_broker_epoch=registration.broker_epoch if clean else _NO_PREVIOUS_EPOCH,
        )

    def _request_shutdown(self, broker_id: int) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            context, offset = self.context, self._committer.offset
            registration = context.metadata.brokers.registrations[broker_id]
            for other in context.heartbeats.brokers.values():
                other.metadata_offset = max(other.metadata_offset, offset)  # every broker has applied the log
            heartbeat = broker_events.BrokerHeartbeat(broker_id, registration.broker_epoch, offset, want_shut_down=True)
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
            return partition_response(self.context.metadata, map(self._with_reason, result.response))

        return act

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

    def _fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> None:
        """A broker reports log directories as failed."""
        registration = self._registration(broker_id)
        self.commit(log_directories.handle_directories_offline(self.context, registration, failed))

    def _update_features(self, levels: Mapping[str, int], unsafe: bool) -> ControllerResponse:
        """An administrator updates feature levels; ``unsafe`` permits downgrades that lose metadata."""
        downgrade = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
        current = self.context.metadata.features
        updates = {
            name: (level, UpgradeType.UPGRADE if level >= current.get(name, 0) else downgrade)
            for name, level in levels.items()
        }
        try:
            self.decide(lambda: update_features(self.context, updates))
        except RequestRefused as refusal:
            return self.refused(refusal)
        return _response()

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
            yield "replicas rejoin the ISR when they have caught up, which is not simulated"


def _response() -> ControllerResponse:
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), np.empty(0, np.int16))


def partition_response(metadata: ClusterMetadata, results: Iterable[PartitionResult]) -> ControllerResponse:
    """The response to a request for partitions, some of which may not exist."""
    results = list(results)
    codes = np.array([result.error for result in results], np.int16)
    wrong = tuple(_named(result) for result in results if result.error is not ErrorCode.NONE)
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong)


def _named(result: PartitionResult) -> str:
    """The partition, with the controller's message if it has one."""
    name = f"{result.topic}-{result.partition}"
    return name if result.message is None else f"{name} ({result.message})"
