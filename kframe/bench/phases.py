"""Where the time goes: deciding, storing, and having every request's bytes ready to send."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from kframe.bench.answers import new_digest
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded.describe import deletion_answers
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32, UInt8
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.model.ports import BrokerQueue, MayAct, Notify, Store
from kframe.model.requests import ControlRequests
from kframe.wire.encode import Encoder
from kframe.wire.request import EncodedRequest


@dataclass(slots=True)
class Phases:
    """Seconds spent in each phase of one event, and what came out of it."""

    decide_seconds: float = 0.0
    """The core: state machines, elections, batching, and taking accepted states over."""
    choose_seconds: float = 0.0
    """Of these, asking the leader selectors, the built-in one too."""
    store_seconds: float = 0.0
    """The stand-in for storage; a peer's stand-in is left out of its figures, too."""
    encode_seconds: float = 0.0
    """Requests as bytes, ready for the sockets: shared sections once, gathered, not copied."""
    requests: int = 0
    sent_bytes: int = 0
    """Bytes that go to the sockets, shared sections counted for each broker."""
    made_bytes: int = 0
    """Bytes that were made, shared sections counted once."""
    batch_bytes: int = 0
    """Bytes that were made for one batch, the largest."""
    counting_seconds: float = 0.0
    """The bench's own work, which belongs to no phase: counting requests, letting go of those it has counted, and
    answering for brokers."""

    @property
    def ready_seconds(self) -> float:
        """Decided, applied, and every byte ready."""
        return self.decide_seconds + self.encode_seconds


class Stopwatch:
    """Splits the time of an event between the phases: the ports stop the core's clock while they work."""

    def __init__(self) -> None:
        self.phases = Phases()

    @contextmanager
    def event(self) -> Iterator[Phases]:
        """Time one event; what its ports did not use is the core's."""
        self.phases = phases = Phases()
        start = time.perf_counter()
        yield phases
        total = time.perf_counter() - start
        others = phases.store_seconds + phases.encode_seconds + phases.counting_seconds
        phases.decide_seconds = total - others

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Time a call of the store."""
        start = time.perf_counter()
        yield
        self.phases.store_seconds += time.perf_counter() - start


class TimedSelection(Selection):
    """A selection whose choices are timed."""

    def __init__(self, selectors: Mapping[ElectionKind, LeaderSelector], watch: Stopwatch) -> None:
        super().__init__(selectors)
        self._watch = watch

    def choose(self, cluster: ClusterState, kind: ElectionKind, rows: Int32, unclean_allowed: UInt8) -> Int32:
        """See Selection."""
        start = time.perf_counter()
        leader = super().choose(cluster, kind, rows, unclean_allowed)
        self._watch.phases.choose_seconds += time.perf_counter() - start
        return leader


class TimedStore:
    """Implements ``ports.Store``: another store, its calls timed as storing."""

    def __init__(self, store: Store, watch: Stopwatch) -> None:
        self._store = store
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            with self._watch.storing():
                return call(*arguments, **named)

        return timed


class EncodingTransport:
    """Implements ``ports.Transport``: makes every request's bytes, and keeps those of the last batch.

    Nobody answers, but with ``answers_deletions`` for brokers that have deleted what they were told to delete.
    """

    def __init__(self, encoder: Encoder, watch: Stopwatch) -> None:
        self._encoder = encoder
        self._watch = watch
        self._notify: Notify | None = None
        self._last: list[EncodedRequest] = []
        self.answers_deletions = False
        self.count_anew(whole=False)

    def count_anew(self, whole: bool) -> None:
        """Begin the digests; with ``whole`` that of the bytes, too."""
        self._whole = whole
        self.digest = new_digest()
        """Over api, broker and size of all requests: pins the work that was timed."""
        self.bytes_digest = new_digest()
        """Over all bytes that were made, and which request they belong to."""

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Get ready; ``notify`` hears of deletions, if anything is to be answered."""
        self._notify = notify

    def close(self) -> None:
        """Drop the last batch."""
        self._last = []

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """There is no connection to make."""

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """There is no connection to drop."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Encode a batch."""
        phases = self._watch.phases
        begun = time.perf_counter()
        self._last = []  # sent long since, in a life where somebody sends: to free it is no work of this batch
        start = time.perf_counter()
        self._last = encoded = list(self._encoder.encode(cluster, requests))
        ready = time.perf_counter()
        phases.encode_seconds += ready - start
        self._count(phases, encoded)
        if self.answers_deletions and self._notify is not None:
            for answer in deletion_answers(cluster, requests):
                self._notify(answer)
        phases.counting_seconds += start - begun + time.perf_counter() - ready

    def _count(self, phases: Phases, encoded: list[EncodedRequest]) -> None:
        made: dict[int, int] = {}
        before = phases.made_bytes
        for request in encoded:
            phases.requests += 1
            phases.sent_bytes += request.nbytes
            self.digest.update(np.array([request.api_key, request.broker, request.nbytes], np.int64).tobytes())
            for chunk in request.chunks:
                fresh = id(chunk) not in made
                place = made.setdefault(id(chunk), len(made))
                phases.made_bytes += len(chunk) if fresh else 0
                if self._whole:
                    self.bytes_digest.update(place.to_bytes(8, "little"))
                    self.bytes_digest.update(chunk if fresh else b"")
        phases.batch_bytes = max(phases.batch_bytes, phases.made_bytes - before)

    def queues(self) -> Mapping[int, BrokerQueue]:
        """Nothing waits here."""
        return {}
