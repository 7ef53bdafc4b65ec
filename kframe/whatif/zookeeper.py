"""What-if operations on a cluster in ZooKeeper mode.

The controller has an in-memory store, and its ports are observed. Requests are encoded and counted. No broker responds,
and no time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import FaultKind
from kframe.embedded import MemoryEnsemble, VirtualClock
from kframe.errors import BrokenInvariant, ErrorCode
from kframe.lazy import load_at_call
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.events import ControlledShutdownRequested, ElectionRequested, ElectionType, Event, TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind
from kframe.model.ports import Clock
from kframe.runtime.loop import ControllerLoop
from kframe.whatif.changes import PartitionChanges, changes_between
from kframe.whatif.health import ClusterHealth, health_of
from kframe.whatif.modes import ModeOperations
from kframe.whatif.observe import (
    BatchWatch,
    ElectionWatch,
    ForwardingTransport,
    MeasuringTransport,
    Observations,
    Traffic,
    WatchedSelection,
    election_held,
    encoder_for,
    watched,
)
from kframe.whatif.outcome import ZOOKEEPER_RULES, ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.partition_timeline import PartitionTimeline
from kframe.whatif.refusals import election_reasons
from kframe.whatif.saved_rows import SavedRows
from kframe.whatif.settings import assumptions_of, config_of, controller_epoch_of, controller_id_of
from kframe.whatif.timeline import MergedTimeline, RequestsSent, TimelineEvent
from kframe.whatif.whatif import Step, WhatIf, step_name

#: Timeout of requests that cannot complete at once, by the virtual clock.
REQUEST_TIMEOUT_MS = 1_000


class ZookeeperWhatIf(WhatIf):
    """A cluster in ZooKeeper mode; see ``WhatIf``."""

    _operations = ModeOperations(
        load_at_call("kframe.whatif.create", "play_creation"),
        load_at_call("kframe.whatif.create", "play_expansion"),
        load_at_call("kframe.whatif.delete", "play_deletion"),
        load_at_call("kframe.whatif.reassign", "play_reassignment"),
        load_at_call("kframe.whatif.explain", "explain_elections"),
    )

    def _start_controller(
        self, config: Mapping[str, object] | None, clock: Clock | None, batches: BatchWatch | None
    ) -> None:
        snapshot = self.snapshot
        self.config = config_of(snapshot, config)
        self.assumptions = assumptions_of(snapshot, config)
        self.election_watch: ElectionWatch | None = None
        """Called at every election, before its results are stored."""
        cluster, controller_epoch = snapshot.to_cluster(), controller_epoch_of(snapshot)
        self.snapshot = snapshot = snapshot.without_partitions()
        self._registrations = {
            facts.broker_id: Registration(facts.broker_id, NO_BROKER_EPOCH, facts.endpoints or (), facts.rack)
            for facts in snapshot.brokers
        }
        self._record = Observations(len(cluster.brokers))
        self._encoded_before = 0.0
        self._partition_timelines: list[PartitionTimeline] = []
        self._transport = (
            MeasuringTransport(encoder_for(self.config), clock or VirtualClock(), self._note_requests)
            if batches is None
            else ForwardingTransport(batches)
        )
        self._ensemble = MemoryEnsemble.from_cluster(cluster, controller_epoch - 1, copy=False)
        self._selection = WatchedSelection(self._selectors, self._note_election)
        store = watched(self._ensemble.connect(), self._note_written, self._save_rows, self._save_topics)
        controller = ControllerCore(controller_id_of(snapshot), self.config, self._selection)
        self._clock = VirtualClock()
        self._loop = ControllerLoop(controller, store, self._transport, self._clock)
        self._loop.adopt()
        self._saved_rows = SavedRows(self.cluster.partitions)

    @property
    def cluster(self) -> ClusterState:
        """The cluster in its present state; read-only."""
        return self._loop.controller.cluster

    @property
    def rules(self) -> str:
        """See ``WhatIf``."""
        return ZOOKEEPER_RULES

    @property
    def registered(self) -> tuple[int, ...]:
        """Ids of the brokers that are registered now, ascending."""
        return tuple(self.cluster.brokers.registered_ids())

    @property
    def controller_epoch(self) -> int:
        """The epoch of the controller."""
        return self._loop.controller.controller_epoch

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """See ``WhatIf``."""
        return self._selection.faults

    def _health(self) -> ClusterHealth:
        return health_of(self.cluster, self.config, self._knows_min_insync)

    def health_of(self, cluster: ClusterState) -> ClusterHealth:
        """The health of ``cluster`` under this controller's settings."""
        return self._observers.exclude(health_of(cluster, self.config, self._knows_min_insync), cluster)

    def follow(self, topic: str, partition: int) -> PartitionTimeline:
        """Record the stored state of this partition from now on. Raises InputError for an unknown partition."""
        self._check_partition(topic, partition)
        stored = self._ensemble.states.cluster
        timeline = PartitionTimeline(lambda: None if stored.row(topic, partition) is None else stored[topic, partition])
        self._partition_timelines.append(timeline)
        return timeline

    # -- steps

    def _stop(self, ids: tuple[int, ...]) -> Callable[[], None]:
        return lambda: self._ensemble.unregister_brokers(ids)

    def _restart(self, ids: tuple[int, ...], clean: bool | None, repair_directories: bool) -> Step:
        """Failed brokers register again; those that are up bounce."""
        if repair_directories:
            raise self._only_kraft()
        up = set(self.registered)
        bounced = tuple(broker_id for broker_id in ids if broker_id in up)
        started = tuple(broker_id for broker_id in ids if broker_id not in up)
        parts = [step_name(bounced, "bounces", "bounce"), step_name(started, "starts", "start")]
        name = ", ".join(part for part, group in zip(parts, (bounced, started), strict=True) if group)

        def act() -> None:
            self._ensemble.bounce_brokers(bounced)
            self._ensemble.register_brokers(self._registrations[broker_id] for broker_id in started)

        return name, act

    def _request_shutdown(self, broker_id: int) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            brokers = self.cluster.brokers
            index = brokers.find(broker_id)
            broker_epoch = NO_BROKER_EPOCH if index is None else int(brokers.broker_epoch[index])
            response = self.call(lambda token: ControlledShutdownRequested(broker_id, broker_epoch, token))
            return ControllerResponse(response.error, response.remaining)

        return act

    def _request_election(
        self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None
    ) -> Callable[[], ControllerResponse]:
        def act() -> ControllerResponse:
            response = self.call(lambda token: ElectionRequested(election, partitions, token))
            named = election_reasons(self.cluster, response.rows, response.codes)
            return ControllerResponse(ErrorCode(response.error), response.rows, response.codes, named)

        return act

    def call(
        self, event: Callable[[int], Event], timelines: tuple[MergedTimeline, MergedTimeline] | None = None
    ) -> Any:
        """Send the controller a request, and return its response.

        With ``timelines``, this is one of several calls of a merged step. The first timeline receives the events up to
        the response, the second those after it.
        """
        record = self._record
        if timelines is not None:
            record.merged, record.merged_after_response = timelines
            for timeline in timelines:
                timeline.begin_call()

        def read(response: Any) -> Any:
            record.on_response()
            return response

        future = self._loop.submit(event, read)
        self._settle()
        if not future.done():
            self._clock.advance(REQUEST_TIMEOUT_MS / 1000, self._settle)
        record.merged = record.merged_after_response = None
        return future.result(timeout=0)

    def notify(self, event: Event, timeline: MergedTimeline) -> None:
        """Let the controller handle an event without a response, as one of several calls of a merged step."""
        timeline.begin_call()
        self._record.merged = timeline
        self._loop.notify(event)
        self._settle()
        self._record.merged = None

    def _settle(self) -> None:
        self._loop.run_until_idle()
        if not self._loop.controller.active:
            raise BrokenInvariant("the controller resigned; its log has the reason")

    # -- playing and noting

    def _begin(self) -> None:
        self._record = Observations(len(self.cluster.brokers))
        self._saved_rows = SavedRows(self.cluster.partitions)
        self._transport.begin()
        self._encoded_before = self._transport.encode_ms

    def _with_messages(self, outcome: Outcome) -> Outcome:
        return replace(
            outcome,
            traffic=self._record.traffic,
            bytes_unknown=self._transport.bytes_unknown,
            encode_ms=self._transport.encode_ms - self._encoded_before,
        )

    def _take_events(self) -> tuple[TimelineEvent, ...]:
        return self._record.take()

    def _changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        return changes_between(self._saved_rows, self.cluster, health, self._record.unclean, self._known_epochs)

    def _save_rows(self, rows: Int32) -> None:
        """Save rows whose states are about to be written."""
        self._saved_rows.save(rows)

    def _save_topics(self, names: tuple[str, ...]) -> None:
        """Save the rows of topics whose records are about to be written."""
        topics = self.cluster.topics
        indexes = [index for name in names if (index := topics.find(name)) is not None]
        self._saved_rows.save(topics.rows_of_all(np.array(indexes, np.int32)))

    def _note_election(
        self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8, leader: Int32
    ) -> None:
        election, unclean = election_held(kind, rows, unclean_allowed, leader)
        self._record.note(election)
        if len(unclean):
            self._record.unclean.append(unclean)
        if self.election_watch is not None:
            self.election_watch(cluster, kind, rows, unclean_allowed, leader)

    def _note_written(self, written: TimelineEvent) -> None:
        self._record.note(written)
        for timeline in self._partition_timelines:
            timeline.note()

    def _note_requests(self, sent: RequestsSent, traffic: Traffic) -> None:
        self._record.note(sent, traffic.requests > 0)
        self._record.traffic[sent.api].add(traffic)

    def _notes(self, operation: Operation) -> Iterator[str]:
        """What a real cluster would do in addition."""
        controller_id = self.snapshot.controller_id
        if operation.verb is not Verb.ELECT and controller_id in operation.brokers:
            yield f"broker {controller_id} is the controller: a failover to another controller is not simulated"
        if operation.verb is Verb.RESTART:
            yield "replicas rejoin the ISR when they have caught up, which is not simulated"
