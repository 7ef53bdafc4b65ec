"""Time an event by phase: deciding, storing, and encoding the requests."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from kframe.bench.digests import new_digest
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded.describe import deletion_responses
from kframe.model.arrays import Int32, UInt8
from kframe.model.cluster import ClusterState
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.requests import ControlRequests
from kframe.ports.store import MayAct, Notify, Store
from kframe.ports.store_requests import Reply, StoreRequest
from kframe.ports.transport import BrokerQueue
from kframe.wire.encode import Encoder
from kframe.wire.request import EncodedRequest


@dataclass(slots=True)
class Phases:
    """Seconds spent in each phase of one event, and how much was sent."""

    decide_seconds: float = 0.0
    """The core. It has the state machines, elections and batching, and applies stored states."""
    choose_seconds: float = 0.0
    """Of these, the leader selectors, including the built-in one."""
    store_seconds: float = 0.0
    """The in-memory store. Figures of other controllers leave their in-memory store out, too."""
    encode_seconds: float = 0.0
    """Encoding requests into buffers ready for sockets. Shared sections are encoded once and not copied."""
    requests: int = 0
    sent_bytes: int = 0
    """Bytes for the sockets. Shared sections count once for each broker."""
    made_bytes: int = 0
    """Encoded bytes; shared sections count once."""
    batch_bytes: int = 0
    """Encoded bytes of the largest batch."""
    counting_seconds: float = 0.0
    """The bench's own work, outside every phase: counting and releasing requests, and answering for brokers."""

    @property
    def ready_seconds(self) -> float:
        """Decided, applied and encoded."""
        return self.decide_seconds + self.encode_seconds


class PhaseStopwatch:
    """Splits the time of an event between phases: the time of the ports is not the core's."""

    def __init__(self) -> None:
        self.phases = Phases()

    @contextmanager
    def event(self) -> Iterator[Phases]:
        """Time one event. Time outside the ports is the core's."""
        self.phases = phases = Phases()
        start = time.perf_counter()
        yield phases
        total = time.perf_counter() - start
        other_seconds = phases.store_seconds + phases.encode_seconds + phases.counting_seconds
        phases.decide_seconds = total - other_seconds

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Time a call of the store."""
        start = time.perf_counter()
        yield
        self.phases.store_seconds += time.perf_counter() - start


class TimedSelection(Selection):
    """A selection whose choices are timed."""

    def __init__(self, selectors: Mapping[ElectionKind, LeaderSelector], watch: PhaseStopwatch) -> None:
        super().__init__(selectors)
        self._watch = watch

    def choose(self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        """See Selection."""
        start = time.perf_counter()
        leader = super().choose(cluster, kind, rows, unclean_allowed)
        self._watch.phases.choose_seconds += time.perf_counter() - start
        return leader


class TimedStore:
    """Implements ``ports.Store``: times the requests to another store."""

    def __init__(self, store: Store, watch: PhaseStopwatch) -> None:
        self._store = store
        self._watch = watch

        self.open, self.close = store.open, store.close
        self.connected, self.may_act, self.quarantined = store.connected, store.may_act, store.quarantined

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        """Time a request."""
        with self._watch.storing():
            return self._store.perform(request)


class EncodingTransport:
    """Implements ``ports.Transport``: encodes every request. Retains those of the last batch.

    Requests are not answered, except StopReplica with deletions where ``responds_to_deletions`` is set.
    """

    def __init__(self, encoder: Encoder, watch: PhaseStopwatch) -> None:
        self._encoder = encoder
        self._watch = watch
        self._notify: Notify | None = None
        self._last: list[EncodedRequest] = []
        self.responds_to_deletions = False
        self.reset_digests(with_answer=False)

    def reset_digests(self, with_answer: bool) -> None:
        """Restart the digests. ``with_answer`` includes the one of all bytes."""
        self._with_answer = with_answer
        self.digest = new_digest()
        """Of api, broker and size of each request: identifies the timed work."""
        self.bytes_digest = new_digest()
        """Of all encoded bytes, and the requests that they belong to."""

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Remember ``notify`` for answers to deletions."""
        self._notify = notify

    def close(self) -> None:
        """Drop the last batch."""
        self._last = []

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Nothing to do."""

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Nothing to do."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Encode a batch."""
        phases = self._watch.phases
        begin = time.perf_counter()
        self._last = []  # A real transport has sent it by now; freeing it is not part of this batch.
        start = time.perf_counter()
        self._last = encoded = list(self._encoder.encode(cluster, requests))
        ready = time.perf_counter()
        phases.encode_seconds += ready - start
        self._count(phases, encoded)
        if self.responds_to_deletions and self._notify is not None:
            for answer in deletion_responses(cluster, requests):
                self._notify(answer)
        phases.counting_seconds += start - begin + time.perf_counter() - ready

    def _count(self, phases: Phases, encoded: list[EncodedRequest]) -> None:
        indexes: dict[int, int] = {}
        before = phases.made_bytes
        for request in encoded:
            phases.requests += 1
            phases.sent_bytes += request.nbytes
            self.digest.update(np.array([request.api_key, request.broker, request.nbytes], np.int64).tobytes())
            for chunk in request.chunks:
                is_new = id(chunk) not in indexes
                index = indexes.setdefault(id(chunk), len(indexes))
                phases.made_bytes += len(chunk) if is_new else 0
                if self._with_answer:
                    self.bytes_digest.update(index.to_bytes(8, "little"))
                    self.bytes_digest.update(chunk if is_new else b"")
        phases.batch_bytes = max(phases.batch_bytes, phases.made_bytes - before)

    def queues(self) -> Mapping[int, BrokerQueue]:
        """Requests are never queued."""
        return {}
