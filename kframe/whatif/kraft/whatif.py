"""What-if operations on a KRaft cluster. No broker answers, and no time passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

import numpy as np

from kframe.core.kraft import broker_events, directories, elections, features
from kframe.core.kraft.broker_events import BrokerHeartbeat
from kframe.core.kraft.context import KraftContext
from kframe.core.kraft.decision import ControllerResult, Decided, PartitionResult, RequestRefused
from kframe.core.kraft.features import UpgradeType
from kframe.core.kraft.heartbeats import Heartbeats
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.registration import register_broker
from kframe.core.kraft.selectors import SelectorSelection
from kframe.errors import ErrorCode, InputError
from kframe.model.columns import Bool
from kframe.model.elections import LeaderSelector
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.ids import ElectionKind
from kframe.model.kraft.ids import KraftElection, MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.ports import Clock
from kframe.snapshot import Snapshot
from kframe.whatif.health import ClusterHealth, either, newly
from kframe.whatif.kraft.changes import kraft_changes
from kframe.whatif.kraft.commit import Committer, KraftObservations
from kframe.whatif.kraft.health import kraft_health
from kframe.whatif.kraft.settings import kraft_config, kraft_settings, snapshot_with_features
from kframe.whatif.kraft.stops import registration_request
from kframe.whatif.observe import BatchWatch
from kframe.whatif.outcome import ControllerResponse, FailOn, Operation, Outcome, StepOutcome, StepReport, Verb
from kframe.whatif.whatif import Step, WhatIf, groups, happens

if TYPE_CHECKING:
    from kframe.whatif.explain import Explanation
    from kframe.whatif.plan import Plan

#: Nothing expires: no time passes.
_SESSION_NS: Final = 1
_KINDS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class KraftWhatIf(WhatIf):
    """A KRaft cluster; see ``WhatIf``. The brokers that it calls registered are those that are not fenced."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: Mapping[str, object] | None = None,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        clock: Clock | None = None,
        batches: BatchWatch | None = None,
    ) -> None:
        """See ``WhatIf``.

        ``config`` may also name levels of features, such as ``metadata.version``, where the snapshot does not say
        them. A KRaft controller sends no requests to brokers, so there are none to hand to ``batches``.
        """
        snapshot, config = snapshot_with_features(snapshot, config)
        super().__init__(snapshot, config, selectors, clock, batches)
        self.config, self.assumptions = kraft_config(snapshot, config)
        metadata = snapshot.to_metadata()
        settings = kraft_settings(snapshot, metadata, self.config, config)
        heartbeats = Heartbeats.activated(_SESSION_NS, metadata.brokers.registrations, 0)
        self._selection = SelectorSelection(self._selectors)
        self.context = KraftContext(metadata, heartbeats, settings, JavaRandom(0), selection=self._selection)
        """The state of the active controller; read-only."""
        offsets = [registration.offset for registration in metadata.brokers.registrations.values()]
        known = None if snapshot.kraft is None else snapshot.kraft.offset
        self._committer = Committer(self.context, max([known or 0, *offsets]) + 1)
        self._stopped_epochs: dict[int, int] = {}
        """Epochs of brokers that stopped in order: they show them when they register again."""
        self._failed: set[int] = set()

    @property
    def cluster(self) -> ClusterMetadata:
        """The metadata in their present state; read-only."""
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

    def health(self) -> ClusterHealth:
        """See ``WhatIf``."""
        return kraft_health(self.context, self._knows_min_insync)

    # -- operations

    def restart(
        self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True,
        clean: bool | None = None,
    ) -> Outcome:  # fmt: skip
        """See ``WhatIf``. A new process registers and is unfenced. After an unclean stop a broker leaves the ELRs."""
        ids = self._chosen(brokers, racks, registered=False)
        steps = [
            (happens(group, "restarts", "restart"), self._restart(group, clean)) for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.RESTART, ids, together), [(name, action) for name, action in steps])

    def fence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """See ``WhatIf``."""
        ids = self._chosen(brokers, racks, registered=True)
        steps: list[Step] = [
            (happens(group, "is fenced", "are fenced"), self._fence(group)) for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.FENCE, ids, together), steps)

    def unfence(self, brokers: Iterable[int] = (), racks: Iterable[str] = (), *, together: bool = True) -> Outcome:
        """See ``WhatIf``."""
        ids = self._chosen(brokers, racks, registered=False)
        for broker_id in ids:
            if broker_id not in self.context.metadata.brokers.registrations:
                raise InputError("brokers", f"broker {broker_id}", "a broker with a registration")
        steps: list[Step] = [
            (happens(group, "is unfenced", "are unfenced"), self._unfence(group)) for group in groups(ids, together)
        ]
        return self.play(Operation(Verb.UNFENCE, ids, together), steps)

    def fail_directories(self, broker_id: int, failed: Sequence[UUID]) -> Outcome:
        """See ``WhatIf``."""
        (broker_id,) = self._chosen([broker_id], [], registered=True)
        listed = self.context.metadata.brokers.registrations[broker_id].directories
        if self.context.level < MetadataLevel.DIRECTORIES:
            expected = f"{level_name(MetadataLevel.DIRECTORIES)} or later"
            raise InputError("metadata.version", level_name(self.context.level), expected)
        unlisted = [str(directory) for directory in failed if directory not in listed]
        if unlisted or not failed:
            expected = f"a log directory of broker {broker_id}: {', '.join(map(str, listed)) or 'it lists none'}"
            raise InputError("directories", unlisted[0] if unlisted else "none", expected)
        operation = Operation(Verb.DIRECTORY, (broker_id,), directories=tuple(map(str, failed)))
        steps: list[Step] = [(f"log directories of broker {broker_id} fail", self._lose(broker_id, failed))]
        if not set(listed) - set(failed):
            steps = [(f"broker {broker_id} stops without a log directory", self._stop((broker_id,)))]
        return self.play(operation, steps)

    def update_features(self, levels: Mapping[str, int], *, unsafe: bool = False) -> Outcome:
        """See ``WhatIf``."""
        if not levels:
            raise InputError("features", "no feature", "at least one")
        operation = Operation(Verb.FEATURE, features=dict(levels))
        return self.play(operation, [("feature levels change", self._set_levels(dict(levels), unsafe))])

    def create(
        self, name: str, partitions: int = -1, replication_factor: int = -1, *,
        assignments: Sequence[Sequence[int]] | None = None, seed: int = 0,
    ) -> Outcome:  # fmt: skip
        """See ``WhatIf``."""
        from kframe.whatif.kraft.topics import play_creation

        return play_creation(self, name, partitions, replication_factor, assignments, seed)

    def delete(self, names: Iterable[str]) -> Outcome:
        """See ``WhatIf``. The controller removes the metadata at once; brokers delete the logs later."""
        from kframe.whatif.kraft.topics import play_deletion

        return play_deletion(self, names)

    def reassign(self, plan: Plan) -> Outcome:
        """See ``WhatIf``."""
        from kframe.whatif.kraft.reassign import play_reassignment

        return play_reassignment(self, plan)

    def explain(self, topic: str, partition: int, fail: Iterable[int] = ()) -> Explanation:
        """See ``WhatIf``."""
        from kframe.whatif.kraft.explain import explain_elections

        return explain_elections(self, topic, partition, fail)

    # -- actions of a step

    def commit(self, decided: Sequence[Decided], *, in_sync: bool = False) -> None:
        """Apply a decision; see ``Committer.commit``."""
        self._committer.commit(decided, in_sync=in_sync)

    def decide(self, request: Callable[[], ControllerResult], *, in_sync: bool = False) -> ControllerResult:
        """The decision on a request, committed. Raises RequestRefused."""
        result = request()
        self.commit(result.decided, in_sync=in_sync)
        return result

    def _stop(self, ids: tuple[int, ...]) -> Callable[[], None]:
        """The sessions of brokers expire one after another, in the order in which they are named."""

        def act() -> None:
            registrations = self.context.metadata.brokers.registrations
            for broker_id in ids:
                if broker_id not in self._stopped_epochs:
                    self._failed.add(broker_id)
                if not registrations[broker_id].fenced:
                    self.commit(broker_events.fence_broker(self.context, registrations[broker_id]))
                    self.context.heartbeats.fence(broker_id)

        return act

    def _fence(self, ids: tuple[int, ...]) -> Callable[[], None]:
        def act() -> None:
            for broker_id in ids:
                registration = self.context.metadata.brokers.registrations[broker_id]
                self.commit(broker_events.fence_broker(self.context, registration))

        return act

    def _unfence(self, ids: tuple[int, ...]) -> Callable[[], None]:
        def act() -> None:
            for broker_id in ids:
                registration = self.context.metadata.brokers.registrations[broker_id]
                if registration.fenced:
                    self.commit(broker_events.unfence_broker(self.context, registration))

        return act

    def _restart(self, ids: tuple[int, ...], clean: bool | None) -> Callable[[], ControllerResponse]:
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
                self._stopped_epochs.pop(broker_id, None)
                self._unfence((broker_id,))()
            return _answer()

        return act

    def _ask_to_shut_down(self, broker_id: int) -> Callable[[], ControllerResponse]:
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
                self._stopped_epochs[broker_id] = registration.broker_epoch
            return ControllerResponse(ErrorCode.NONE, remaining)

        return act

    def _ask_for_election(
        self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None
    ) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            try:
                result = self.decide(lambda: elections.elect_leaders(self.context, _KINDS[election], partitions))
            except RequestRefused as refusal:
                return self.refused(refusal)
            return partition_answer(self.context.metadata, result.response)

        return act

    def _lose(self, broker_id: int, failed: Sequence[UUID]) -> Callable[[], None]:
        def act() -> None:
            registration = self.context.metadata.brokers.registrations[broker_id]
            self.commit(directories.lose_directories(self.context, registration, failed))

        return act

    def _set_levels(self, levels: Mapping[str, int], unsafe: bool) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            downgrade = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
            present = self.context.metadata.features
            updates = {
                name: (level, UpgradeType.UPGRADE if level >= present.get(name, 0) else downgrade)
                for name, level in levels.items()
            }
            try:
                self.decide(lambda: features.update_features(self.context, updates))
            except RequestRefused as refusal:
                return self.refused(refusal)
            return _answer()

        return act

    def _faults(self) -> Iterator[str]:
        for (name, fault), count in self._selection.faults.items():
            yield f"leader selector {name!r} {fault} for {count:,} partitions: the built-in rule decided"

    @staticmethod
    def refused(refusal: RequestRefused) -> ControllerResponse:
        """The answer to a request that the controller refuses as a whole."""
        return ControllerResponse(refusal.error, np.empty(0, np.int32), np.empty(0, np.int16), (refusal.message,))

    # -- playing and noting

    def play(self, operation: Operation, steps: Sequence[Step]) -> Outcome:
        """See ``WhatIf``."""
        metadata, rules = self.context.metadata, self.rules
        before = after = self.health()
        columns = metadata.partitions.copy()
        self._committer.observations = observations = KraftObservations()
        findings: dict[FailOn, Bool | None] = {
            FailOn.OFFLINE: newly(before.offline, before.offline),
            FailOn.UNDER_MIN_ISR: newly(before.under_min_isr, before.under_min_isr),
        }
        outcomes = []
        for done, (name, action) in enumerate(steps, 1):
            report = action()
            report = report if isinstance(report, StepReport) else StepReport(report)
            after = self.health()
            for what, was, now in (
                (FailOn.OFFLINE, before.offline, after.offline),
                (FailOn.UNDER_MIN_ISR, before.under_min_isr, after.under_min_isr),
            ):
                findings[what] = either(findings[what], newly(was, now))
            outcomes.append(StepOutcome(name, observations.take(), after.counts(), report.answer))
            self.step_over(done)
            self.step_progress(done, len(steps))
        known = self.snapshot.partitions
        changes = kraft_changes(
            columns, metadata, (before, after), observations.unclean,
            (known.leader_epoch is not None, known.zk_version is not None),
        )  # fmt: skip
        findings[FailOn.LOSS] = lost = np.zeros(len(metadata.partitions), np.bool_)
        lost[changes.rows] = changes.unclean
        return Outcome(
            operation=operation,
            broker_ids=metadata.brokers.ids.copy(),
            racks=tuple(self._racks.get(broker_id) for broker_id in metadata.brokers.ids.tolist()),
            before=before,
            after=after,
            steps=tuple(outcomes),
            changes=changes,
            traffic={},
            findings=findings,
            bytes_unknown=None,
            assumptions=self.assumptions,
            notes=(*_notes(operation), *self._faults()),
            encode_ms=0.0,
            rules=rules,
            records=observations.record_counts(),
        )


def _answer(error: ErrorCode = ErrorCode.NONE) -> ControllerResponse:
    return ControllerResponse(error, np.empty(0, np.int32), np.empty(0, np.int16))


def partition_answer(metadata: ClusterMetadata, results: Sequence[PartitionResult]) -> ControllerResponse:
    """The answer to a request for partitions, some of which may not exist."""
    codes = np.array([result.error for result in results], np.int16)
    wrong = tuple(f"{result.topic}-{result.partition}" for result in results if result.error is not ErrorCode.NONE)
    return ControllerResponse(ErrorCode.NONE, np.empty(0, np.int32), codes, wrong)


def _notes(operation: Operation) -> list[str]:
    """What a real cluster would do in addition."""
    if operation.verb in (Verb.RESTART, Verb.UNFENCE):
        return ["replicas rejoin the ISR when they have caught up; that is left out"]
    return []
