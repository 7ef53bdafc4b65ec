"""Watching a controller at its ports. The wrappers forward and record every call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kframe.core.selectors.leader_selection import Selection
from kframe.errors import ConfigError
from kframe.model.arrays import Bool, Int32, UInt8
from kframe.model.changes import StateChange, WriteCode, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.ids import NO_LEADER, NO_STATE, Api, ElectionKind, ReplicaFlag
from kframe.model.lists import distinct_rows
from kframe.model.requests import BrokerRows, ControlRequests
from kframe.ports.clock import Clock
from kframe.ports.store import MayAct, Notify, Store
from kframe.ports.store_requests import (
    CreateTopics,
    DeleteTopics,
    QueueDeletions,
    Reply,
    StoreRequest,
    WriteAssignments,
    WriteStates,
)
from kframe.ports.transport import BrokerQueue
from kframe.whatif.results.timeline import (
    ElectionHeld,
    MergedTimeline,
    RequestsSent,
    StatesWritten,
    TimelineEvent,
    TopicAction,
    TopicsWritten,
)
from kframe.whatif.results.traffic import SentBatch, Traffic
from kframe.wire import ControlVersions, EncodedRequest, Encoder, header_version, request_header

#: Called at every election, before its results are stored: (cluster, kind, rows, unclean_allowed, leader).
ElectionWatch = Callable[[ClusterState, ElectionKind, Int32, UInt8, Int32], None]

#: Kafka's numbers of the three requests.
APIS = {4: Api.LEADER_AND_ISR, 5: Api.STOP_REPLICA, 6: Api.UPDATE_METADATA}
_SIZE_BYTES = 4


@dataclass(slots=True, eq=False)
class Observations:
    """What was observed since an operation began."""

    brokers: int
    events: list[TimelineEvent] = field(default_factory=list)
    traffic: dict[Api, Traffic] = field(init=False)
    unclean: list[Int32] = field(default_factory=list)
    """Rows for which a leader outside the ISR was elected."""
    merged: MergedTimeline | None = None
    """Receives the events instead, during the calls of a merged step."""
    merged_after_response: MergedTimeline | None = None
    """Receives the events once the controller has responded to the request of this call."""

    def __post_init__(self) -> None:
        self.traffic = {api: Traffic.none(self.brokers) for api in Api}

    def note(self, timeline_event: TimelineEvent, receivers: Bool | None = None) -> None:
        """Record an event. ``receivers`` masks the brokers that received its requests."""
        if isinstance(timeline_event, ElectionHeld):
            # An election follows a proposed ISR before the response is sent.
            self.on_response()
        if self.merged is None:
            self.events.append(timeline_event)
        else:
            self.merged.add(timeline_event, receivers)

    def on_response(self) -> None:
        """The controller has responded, and may continue."""
        if self.merged_after_response is not None:
            self.merged, self.merged_after_response = self.merged_after_response, None

    def take(self) -> tuple[TimelineEvent, ...]:
        """The events since the last call, without those of merged steps."""
        events = tuple(self.events)
        self.events.clear()
        return events


class WatchedSelection(Selection):
    """A Selection that reports its results."""

    def __init__(self, selectors: Mapping[ElectionKind, LeaderSelector], watch: ElectionWatch) -> None:
        super().__init__(selectors)
        self._watch = watch

    def choose(self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        """See Selection."""
        leader = super().choose(cluster, kind, rows, unclean_allowed)
        if len(rows):
            self._watch(cluster, kind, rows, unclean_allowed, leader)
        return leader


def election_held(kind: ElectionKind, rows: Int32, unclean_allowed: UInt8, leader: Int32) -> tuple[ElectionHeld, Int32]:
    """The result of an election. Also the rows whose leader was not in the ISR.

    An unclean leader is allowed only where no ISR member is online, so every leader found there is unclean.
    """
    elected = leader != NO_LEADER
    unclean = rows[elected & (unclean_allowed != 0)]
    return ElectionHeld(kind, len(rows), int(np.count_nonzero(elected)), len(unclean)), unclean


def partition_states_written(cluster: ClusterState, change: StateChange, result: WriteResult) -> StatesWritten:
    """What a write did to the states that ``cluster``, which has not taken it over yet, still knows."""
    p, accepted = cluster.partitions, result.accepted
    old_leader, created = p.leader[change.rows], change.expected == NO_STATE
    growth = change.isr.counts - p.isr_count[change.rows]
    return StatesWritten(
        partitions=int(np.count_nonzero(accepted)),
        created=int(np.count_nonzero(accepted & created)),
        elected=int(np.count_nonzero(accepted & ~created & (change.leader >= 0) & (change.leader != old_leader))),
        shrunk=int(np.count_nonzero(accepted & ~created & (growth < 0))),
        leaderless=int(np.count_nonzero(accepted & (change.leader < 0) & (old_leader >= 0))),
        refused=int(np.count_nonzero(~accepted)),
        grown=int(np.count_nonzero(accepted & ~created & (growth > 0))),
    )


class WatchedStore:
    """Implements ``ports.Store``: passes each request to another store, and reports writes of states and topics.

    ``before_states`` is called with the rows of states, and ``before_topics`` with the names of existing topics, before
    they are written.
    """

    def __init__(
        self,
        store: Store,
        watch: Callable[[TimelineEvent], None],
        before_states: Callable[[Int32], None],
        before_topics: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._store = store
        self._watch = watch
        self._before_states = before_states
        self._before_topics = before_topics
        self.open, self.close = store.open, store.close
        self.connected, self.may_act, self.quarantined = store.connected, store.may_act, store.quarantined

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """Save what is replaced, write, then report."""
        match request:
            case WriteStates():
                self._before_states(request.change.rows)
            case WriteAssignments():
                self._before_topics(request.table.names)
            case DeleteTopics():
                self._before_topics(request.names)
        reply = self._store.perform(request)
        event = _written(request, reply)
        if event is not None:
            self._watch(event)
        return reply


def _written(request: StoreRequest[Any], reply: Any) -> TimelineEvent | None:
    """What a write of states or topics did. None for other requests."""
    match request:
        case WriteStates():
            return partition_states_written(request.cluster, request.change, reply)
        case CreateTopics():
            return TopicsWritten(TopicAction.CREATED, reply.count(WriteCode.OK))
        case WriteAssignments(table=table):
            adding, removing = (
                int(np.count_nonzero(table.flags & np.uint8(flag)))
                for flag in (ReplicaFlag.ADDING, ReplicaFlag.REMOVING)
            )
            return TopicsWritten(TopicAction.ASSIGNED, reply.count(WriteCode.OK), adding, removing)
        case QueueDeletions(names=names):
            return TopicsWritten(TopicAction.MARKED, len(names))
        case DeleteTopics(names=names):
            return TopicsWritten(TopicAction.DELETED, len(names))
        case _:
            return None


class MeasuringTransport:
    """Implements ``ports.Transport``: encodes the requests of each broker and counts their bytes. No broker responds.

    Where the snapshot lacks a value that a batch must contain, the bytes of that batch are unknown, and
    ``bytes_unknown`` is the reason for the first such batch.
    """

    def __init__(self, encoder: Encoder, clock: Clock, watch: Callable[[RequestsSent, Traffic], None]) -> None:
        self._encoder = encoder
        self._clock = clock
        self._notify = watch
        self._batches: list[SentBatch] | None = None
        self._keep_bodies = False
        self.bytes_unknown: str | None = None
        """Why bytes are not counted, if they are not."""
        self.encode_ms = 0.0

    def begin(self) -> None:
        """Reset the counts at the start of an operation. Bytes are known until a batch says otherwise."""
        self.bytes_unknown, self.encode_ms = None, 0.0

    def record_batches(self, *, bodies: bool) -> None:
        """See ``Engine``."""
        self._batches, self._keep_bodies = [], bodies

    def take_batches(self) -> tuple[SentBatch, ...]:
        """See ``Engine``."""
        batches = tuple(self._batches or ())
        if self._batches is not None:
            self._batches.clear()
        return batches

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Never notifies."""

    def close(self) -> None:
        """No resources to release."""

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Batches go to registered brokers only, so there is nothing to remember."""

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Batches go to registered brokers only, so there is nothing to forget."""

    def queues(self) -> Mapping[int, BrokerQueue]:
        """Nothing waits here."""
        return {}

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Encode a batch, and report what each broker is sent."""
        batch = self._measure(cluster, requests)
        self.bytes_unknown = self.bytes_unknown or batch.bytes_unknown
        if self._batches is not None:
            self._batches.append(batch)
        leading, stopping = requests.leader_and_isr, requests.stop_replica
        rows = {
            Api.LEADER_AND_ISR: leading.rows,
            Api.UPDATE_METADATA: requests.metadata_rows,
            Api.STOP_REPLICA: stopping.rows,
        }
        for api, sent in batch.traffic.items():
            if sent.requests.any():
                self._notify(self._summary(api, sent, len(distinct_rows(rows[api], len(cluster)))), sent)

    def _measure(self, cluster: ClusterState, requests: ControlRequests) -> SentBatch:
        """A batch in the order of its arrival. A broker receives requests in this order."""
        traffic = {
            Api.LEADER_AND_ISR: _traffic_of(requests.leader_and_isr, len(cluster.brokers)),
            Api.UPDATE_METADATA: Traffic.none(len(cluster.brokers)),
            Api.STOP_REPLICA: _traffic_of(requests.stop_replica, len(cluster.brokers)),
        }
        metadata = traffic[Api.UPDATE_METADATA]
        metadata.requests[requests.metadata_brokers] = 1
        metadata.entries[requests.metadata_brokers] = len(requests.metadata_rows)
        begun = self._clock.now_ms()
        try:
            encoded = encode_known(self._encoder, cluster, requests)
        except ConfigError as problem:
            for sent in traffic.values():
                sent.unsized[:] = sent.requests > 0
            return SentBatch(traffic, str(problem), {})
        bodies = self._count(encoded, traffic, requests.controller_id)
        self.encode_ms += self._clock.now_ms() - begun
        return SentBatch(traffic, None, bodies)

    def _count(
        self, encoded: list[EncodedRequest], traffic: Mapping[Api, Traffic], controller_id: int
    ) -> dict[tuple[Api, int], list[bytes]]:
        """Count encoded requests in ``traffic``. Return their bodies, if they are to be kept."""
        bodies: dict[tuple[Api, int], list[bytes]] = {}
        for sent in traffic.values():
            sent.requests[:] = 0
        for request in encoded:
            api = APIS[request.api_key]
            traffic[api].requests[request.broker] += 1
            traffic[api].nbytes[request.broker] += framed_bytes(request, controller_id)
            if self._keep_bodies:
                bodies.setdefault((api, int(request.broker)), []).append(b"".join(request.chunks))
        return bodies

    def _summary(self, api: Api, sent: Traffic, partitions: int) -> RequestsSent:
        return RequestsSent(
            api=api,
            brokers=int(np.count_nonzero(sent.requests)),
            requests=int(sent.requests.sum()),
            partitions=partitions,
            entries=int(sent.entries.sum()),
            nbytes=None if sent.unsized.any() else int(sent.nbytes.sum()),
        )


def encoder_for(config: ControllerConfig) -> Encoder:
    """Encodes as a controller of these settings does."""
    return Encoder(ControlVersions.of(config.protocol), config["inter.broker.listener.name"])


def encode_known(encoder: Encoder, cluster: ClusterState, requests: ControlRequests) -> list[EncodedRequest]:
    """Encode a batch whose endpoints are known.

    Raises ConfigError for an unknown endpoint of a broker in a request. LeaderAndIsr has the listeners of live leaders,
    UpdateMetadata those of all live brokers.
    """
    if len(requests.metadata_brokers):
        for index in np.flatnonzero(cluster.brokers.registered).tolist():
            registration = cluster.brokers.registrations[index]
            if registration is not None and not registration.endpoints:
                raise ConfigError(f"endpoints of broker {registration.broker_id}", "none", "one at least")
    return list(encoder.encode(cluster, requests))


def framed_bytes(request: EncodedRequest, controller_id: int) -> int:
    """Bytes of a request on the wire: its size, its header, whose client id is the controller's id, and its body."""
    key, version = request.api_key, request.api_version
    header = request_header(header_version(key, version), key, version, 0, str(controller_id))
    return _SIZE_BYTES + len(header) + request.nbytes


def _traffic_of(batch: BrokerRows, brokers: int) -> Traffic:
    traffic = Traffic.none(brokers)
    traffic.requests[batch.brokers] = 1
    traffic.entries[batch.brokers] = np.diff(batch.offsets)
    return traffic
