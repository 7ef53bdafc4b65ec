"""The controller of a cluster in ZooKeeper mode.

The controller has an in-memory store, and its ports are observed: requests are encoded and counted. No broker responds,
and no time passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import FaultKind
from kframe.embedded import MemoryEnsemble, VirtualClock
from kframe.errors import BrokenInvariant, ErrorCode, ParameterError
from kframe.model.arrays import Int32, UInt8
from kframe.model.brokers import Registration
from kframe.model.cluster import ClusterState
from kframe.model.elections import LeaderSelector
from kframe.model.events import (
    ControlledShutdownRequested,
    ElectionRequested,
    ElectionType,
    Event,
    TopicPartition,
)
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind
from kframe.model.texts import counted
from kframe.ports.clock import Clock
from kframe.runtime.loop import ControllerLoop
from kframe.snapshot.content import Mode
from kframe.whatif.engines.known_facts import known_row
from kframe.whatif.engines.settings import controller_id_of
from kframe.whatif.engines.zookeeper.health import effective_min_isr, health_of
from kframe.whatif.engines.zookeeper.observe import (
    ElectionWatch,
    MeasuringTransport,
    Observations,
    WatchedSelection,
    WatchedStore,
    election_held,
    encoder_for,
)
from kframe.whatif.engines.zookeeper.partition_timeline import PartitionTimeline
from kframe.whatif.engines.zookeeper.refusals import election_reasons
from kframe.whatif.engines.zookeeper.start import ZookeeperStart
from kframe.whatif.results.changes import PartitionChanges, changes_between
from kframe.whatif.results.health import ClusterHealth
from kframe.whatif.results.outcome import KRAFT_VERBS, ControllerResponse, Operation, Outcome, Verb
from kframe.whatif.results.release import ZOOKEEPER_RULES
from kframe.whatif.results.saved_rows import SavedRows
from kframe.whatif.results.timeline import MergedTimeline, RequestsSent, TimelineEvent
from kframe.whatif.results.traffic import SentBatch, Traffic

#: Timeout of requests that cannot complete at once, by the virtual clock.
REQUEST_TIMEOUT_MS: Final = 1_000


class ZookeeperController:
    """The controller of a cluster in ZooKeeper mode, whose ports are observed."""

    mode: ClassVar[Mode] = "zookeeper"
    verbs: ClassVar[frozenset[Verb]] = frozenset(Verb) - KRAFT_VERBS
    rules: ClassVar[str] = ZOOKEEPER_RULES

    def __init__(
        self,
        start: ZookeeperStart,
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Take over the cluster of ``start``, whose columns are the controller's from now on; see ``engine_of``."""
        self._known = start.known
        self.config = start.config
        self.assumptions = start.assumptions
        self.selectors = dict(selectors or {})
        self.election_watch: ElectionWatch | None = None
        """Called at every election, before its results are stored."""
        cluster = start.cluster
        self.snapshot = snapshot = start.snapshot
        self.registrations = {
            facts.broker_id: Registration(facts.broker_id, NO_BROKER_EPOCH, facts.endpoints or (), facts.rack)
            for facts in snapshot.brokers
        }
        self._record = Observations(len(cluster.brokers))
        self._partition_timelines: list[PartitionTimeline] = []
        self._transport = MeasuringTransport(encoder_for(self.config), clock or VirtualClock(), self._note_requests)
        self.ensemble = MemoryEnsemble.from_cluster(cluster, start.controller_epoch - 1, copy=False)
        """The storage; its watches tell the controller which brokers are registered."""
        self._selection = WatchedSelection(self.selectors, self._note_election)
        store = WatchedStore(self.ensemble.connect(), self._note_written, self._save_rows, self._save_topics)
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
    def registered(self) -> tuple[int, ...]:
        """Ids of the brokers that are registered now, ascending."""
        return tuple(self.cluster.brokers.registered_ids())

    @property
    def controller_epoch(self) -> int:
        """The epoch of the controller."""
        return self._loop.controller.controller_epoch

    def quorum(self, voters: Collection[int]) -> tuple[int, ...]:
        """See ``Engine``: none in ZooKeeper mode."""
        if voters:
            raise ParameterError("voters", f"{counted(len(voters), 'node')} in ZooKeeper mode", "a KRaft cluster")
        return ()

    @property
    def release(self) -> None:
        """No release decides in ZooKeeper mode: the rules are those of Kafka 3.9."""

    def min_isr(self) -> Int32:
        """(n,) the effective ``min.insync.replicas`` of each partition."""
        return effective_min_isr(self.cluster, self.config)

    def health(self) -> ClusterHealth:
        """The health of the cluster now. Observers do not count as under-replicated."""
        return self.health_of(self.cluster)

    def health_of(self, cluster: ClusterState) -> ClusterHealth:
        """The health of ``cluster`` under this controller's settings."""
        return self._known.without_observers(health_of(cluster, self.config, self._known.min_insync), cluster)

    def follow(self, topic: str, partition: int) -> PartitionTimeline:
        """Record the stored state of this partition from now on. Raises InputError for an unknown partition."""
        known_row(self.cluster, topic, partition)
        stored = self.ensemble.states.cluster
        timeline = PartitionTimeline(lambda: None if stored.row(topic, partition) is None else stored[topic, partition])
        self._partition_timelines.append(timeline)
        return timeline

    @property
    def selector_faults(self) -> Mapping[tuple[str, FaultKind], int]:
        """How many partitions leader selectors did wrong, by their names and what was wrong."""
        return self._selection.faults

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
        self.settle()
        if not future.done():
            self._clock.advance(REQUEST_TIMEOUT_MS / 1000, self.settle)
        record.merged = record.merged_after_response = None
        return future.result(timeout=0)

    def notify(self, event: Event, timeline: MergedTimeline) -> None:
        """Let the controller handle an event without a response, as one of several calls of a merged step."""
        timeline.begin_call()
        self._record.merged = timeline
        self._loop.notify(event)
        self.settle()
        self._record.merged = None

    def settle(self) -> None:
        """Let the controller finish what a step began."""
        self._loop.run_until_idle()
        if not self._loop.controller.active:
            raise BrokenInvariant("the controller resigned; its log has the reason")

    # -- steps

    def stop(self, ids: tuple[int, ...]) -> None:
        """Brokers stop, and the controller notices."""
        self.ensemble.unregister_brokers(ids)

    def shut_down(self, broker_id: int) -> ControllerResponse:
        """A broker requests a controlled shutdown."""
        brokers = self.cluster.brokers
        index = brokers.find(broker_id)
        broker_epoch = NO_BROKER_EPOCH if index is None else int(brokers.broker_epoch[index])
        response = self.call(lambda token: ControlledShutdownRequested(broker_id, broker_epoch, token))
        return ControllerResponse(response.error, response.remaining)

    def elect(self, election: ElectionType, partitions: tuple[TopicPartition, ...] | None) -> ControllerResponse:
        """An administrator requests elections, of all partitions for None."""
        response = self.call(lambda token: ElectionRequested(election, partitions, token))
        named = election_reasons(self.cluster, response.rows, response.codes)
        return ControllerResponse(ErrorCode(response.error), response.rows, response.codes, named)

    def notes(self, operation: Operation) -> Iterator[str]:
        """What a real cluster of this mode would do in addition."""
        controller_id = self.snapshot.controller_id
        if operation.verb is not Verb.ELECT and controller_id in operation.brokers:
            yield f"broker {controller_id} is the controller: a failover to another controller is not simulated"

    # -- observing an operation

    def begin(self) -> None:
        """Observe what an operation does from now on."""
        self._record = Observations(len(self.cluster.brokers))
        self._saved_rows = SavedRows(self.cluster.partitions)
        self._transport.begin()

    def with_messages(self, outcome: Outcome) -> Outcome:
        """The outcome with the requests that were sent, or the records that were written."""
        return replace(
            outcome,
            traffic=self._record.traffic,
            bytes_unknown=self._transport.bytes_unknown,
            encode_ms=self._transport.encode_ms,
        )

    def take_events(self) -> tuple[TimelineEvent, ...]:
        """The events observed since this was last called."""
        return self._record.take()

    def record_batches(self, *, bodies: bool = False) -> None:
        """Record each batch of requests to brokers from now on; with ``bodies`` the encoded requests too. A KRaft
        controller sends none."""
        self._transport.record_batches(bodies=bodies)

    def take_batches(self) -> tuple[SentBatch, ...]:
        """The batches recorded since this was last called."""
        return self._transport.take_batches()

    def changes(self, health: tuple[ClusterHealth, ClusterHealth]) -> PartitionChanges:
        """The rows that differ since ``begin``; ``health`` is that before and after the operation."""
        return changes_between(self._saved_rows, self.cluster, health, self._record.unclean, self._known.epochs)

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
