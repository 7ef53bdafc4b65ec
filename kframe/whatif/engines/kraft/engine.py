"""The engine of a KRaft cluster, without brokers and in no time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.brokers.broker_events import BrokerHeartbeat
from kframe.core.kraft.controller_result import PartitionResult, RequestRefused
from kframe.core.kraft.replication import elections
from kframe.errors import ErrorCode
from kframe.model.events import ElectionType, TopicPartition
from kframe.model.kraft.ids import KraftElection
from kframe.model.kraft.levels import level_name
from kframe.snapshot.content import Mode, brokers_text
from kframe.whatif.engines.engine import Explainer
from kframe.whatif.engines.kraft.controller import KraftController
from kframe.whatif.engines.kraft.responses import partition_response, refused
from kframe.whatif.engines.requests import (
    BrokersFencing,
    BrokersRestart,
    BrokersUnfencing,
    DirectoriesFailure,
    FeaturesUpdate,
    PartitionsCreation,
    ReassignmentRequest,
    Request,
    TopicCreation,
    TopicsDeletion,
)
from kframe.whatif.engines.script import Action, Script
from kframe.whatif.results.outcome import ControllerResponse, Operation, Verb

#: Nothing expires: no time passes.
_SESSION_NS: Final = 1
_KINDS: Final = {ElectionType.PREFERRED: KraftElection.PREFERRED, ElectionType.UNCLEAN: KraftElection.UNCLEAN}


class KraftEngine(KraftController):
    """The active controller of a KRaft cluster; see ``Engine``. Brokers that are up are those that are not fenced."""

    mode: ClassVar[Mode] = "kraft"
    verbs: ClassVar[frozenset[Verb]] = frozenset(Verb)

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
        """See ``Engine``."""
        registrations = self.context.metadata.brokers.registrations
        return tuple(sorted(broker_id for broker_id, stored in registrations.items() if not stored.fenced))

    # -- steps

    def request_shutdown(self, broker_id: int) -> Action:
        """See ``Engine``."""

        def act() -> ControllerResponse:
            context, offset = self.context, self.committer.offset
            registration = context.metadata.brokers.registrations[broker_id]
            for other in context.heartbeats.brokers.values():
                other.metadata_offset = max(other.metadata_offset, offset)  # every broker has applied the log
            heartbeat = BrokerHeartbeat(broker_id, registration.broker_epoch, offset, want_shut_down=True)
            self.decide(lambda: broker_events.handle_heartbeat(context, heartbeat))
            broker = context.metadata.brokers.index_of(broker_id)
            remaining = context.metadata.partitions.rows_led_by(broker)
            if not len(remaining):
                self.processes.clean_shutdown_epochs[broker_id] = registration.broker_epoch
            return ControllerResponse(ErrorCode.NONE, remaining)

        return act

    def request_election(self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None) -> Action:
        """See ``Engine``."""

        def act() -> ControllerResponse:
            try:
                result = self.decide(lambda: elections.elect_leaders(self.context, _KINDS[election], partitions))
            except RequestRefused as refusal:
                return refused(refusal)
            return partition_response(map(self._with_reason, result.response))

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

    def script(self, request: Request) -> Script:
        """See ``Engine``. A module is imported when its request is made: one command plays one operation."""
        match request:
            case BrokersRestart():
                from kframe.whatif.engines.kraft.broker_scripts import KraftRestart

                return KraftRestart(self, request)
            case BrokersFencing():
                from kframe.whatif.engines.kraft.broker_scripts import KraftFencing

                return KraftFencing(self, request)
            case BrokersUnfencing():
                from kframe.whatif.engines.kraft.broker_scripts import KraftUnfencing

                return KraftUnfencing(self, request)
            case DirectoriesFailure():
                from kframe.whatif.engines.kraft.directories import KraftDirectoryFailure

                return KraftDirectoryFailure(self, request)
            case TopicCreation():
                from kframe.whatif.engines.kraft.topics import KraftCreation

                return KraftCreation.of_topic(self, request)
            case PartitionsCreation():
                from kframe.whatif.engines.kraft.topics import KraftCreation

                return KraftCreation.of_partitions(self, request)
            case TopicsDeletion():
                from kframe.whatif.engines.kraft.topics import KraftDeletion

                return KraftDeletion(self, request.names)
            case ReassignmentRequest():
                from kframe.whatif.engines.kraft.reassign import KraftReassignment

                return KraftReassignment(self, request.targets)
            case FeaturesUpdate():
                from kframe.whatif.engines.kraft.update_features import KraftFeaturesUpdate

                return KraftFeaturesUpdate(self, request)

    def explainer(self, row: int) -> Explainer:
        """See ``Engine``."""
        from kframe.whatif.engines.kraft.explain import KraftElectionExplainer

        return KraftElectionExplainer(self, row)

    def notes(self, operation: Operation) -> Iterator[str]:
        """See ``Engine``. There are none of this mode."""
        return iter(())
