"""Differential tests accept valid stores and transports and name each broken one by seed and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields

from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, MemoryStore, VirtualClock
from kframe.embedded.brokers import Delivery, FifoChannel
from kframe.errors import ControllerFenced, InputError
from kframe.model.cluster import ClusterState
from kframe.model.events import Event, TopicsChanged
from kframe.model.ids import NO_STATE
from kframe.model.requests import ControlRequests
from kframe.model.tables import TopicTable
from kframe.ports.store import Notify
from kframe.ports.store_requests import (
    CreateTopics,
    ReadController,
    ReadStates,
    ReadTopicNames,
    Reply,
    StoreRequest,
    WriteAssignments,
    WriteConfigs,
    WriteStates,
)
from kframe_simulator.differential import EmbeddedSandbox, StorageDifference, play_bare, play_batches, play_history
from tests.examples.loading import load

SEEDS = range(1, 9)


class BlindStates(MemoryStore):
    """Writes states without a check of their version."""

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        if not isinstance(request, WriteStates):
            return super().perform(request)
        stored = super().perform(ReadStates(request.cluster, request.change.rows))
        expected = np.where(stored.exists, stored.partition_epoch, np.int32(NO_STATE))
        blind: StoreRequest[Any] = replace_fields(request, change=replace(request.change, expected=expected))
        reply: Reply = super().perform(blind)
        return reply


class BlindAssignments(MemoryStore):
    """Writes assignments without a check of their version."""

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        if isinstance(request, WriteAssignments):
            self._read_versions.clear()
        return super().perform(request)


class Unfenced(MemoryStore):
    """Writes although another session has claimed the role."""

    def _write_fenced(self, *operations: Any) -> None:
        try:
            super()._write_fenced(*operations)
        except ControllerFenced:
            if self._claimed is None or self._claimed.session != self._session:
                raise
            self._records.multi(self._connected(), list(operations))


class Deaf(MemoryStore):
    """Never notifies of topics."""

    def open(self, notify: Notify) -> None:
        super().open(lambda event: None if isinstance(event, TopicsChanged) else notify(event))


class Stammering(MemoryStore):
    """Notifies of everything twice."""

    def open(self, notify: Notify) -> None:
        def twice(event: Event) -> None:
            notify(event)
            notify(event)

        super().open(twice)


class Sorting(MemoryStore):
    """Loads ISRs in another order."""

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        reply = super().perform(request)
        if isinstance(reply, ClusterState):
            p = reply.partitions
            for row in np.flatnonzero(p.topic >= 0).tolist():
                first = int(p.slot_start[row])
                p.isr[first : first + int(p.isr_count[row])].sort()
        return reply


class Forgetful(MemoryStore):
    """Drops the settings of all brokers."""

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        if isinstance(request, WriteConfigs) and request.topic is None:
            forgetful: StoreRequest[Any] = replace_fields(request, config={})
            reply: Reply = super().perform(forgetful)
            return reply
        return super().perform(request)


class Believing(MemoryStore):
    """Still acts as controller after its role was lost."""

    def may_act(self) -> bool:
        return self._claimed is not None


#: (store, call that reveals it).
BROKEN_STORES = [
    (BlindStates, "write_states"),
    (BlindAssignments, "write_assignments"),
    (Unfenced, "session"),
    (Deaf, "topics"),
    (Stammering, "session"),
    (Sorting, "load"),
    (Forgetful, "read_configs"),
    (Believing, "may_act"),
]


def ensemble_of(kind: Callable[..., MemoryStore]) -> MemoryEnsemble:
    class Ensemble(MemoryEnsemble):
        def connect(self) -> MemoryStore:
            return kind(self.records, self.states, self.topics)

    return Ensemble.from_cluster(ClusterState())


def first_of(played: Iterator[StorageDifference | None]) -> StorageDifference | None:
    return next((entry for entry in played if entry is not None), None)


@pytest.mark.parametrize("seed", SEEDS)
def test_embedded_store_passes(seed: int) -> None:
    assert play_history(seed, ensemble_of(MemoryStore)) is None


def test_sqlite_store_passes(tmp_path: Path) -> None:
    sqlite_store = load("stores/sqlite_store.py")
    assert play_history(1, sqlite_store.SqliteEnsemble(str(tmp_path / "one.db"))) is None


@pytest.mark.parametrize("kind, call", BROKEN_STORES)
def test_broken_store_is_reported_with_seed_and_step(kind: Callable[..., MemoryStore], call: str) -> None:
    result = first_of(play_history(seed, ensemble_of(kind)) for seed in SEEDS)
    assert result is not None
    assert call in result.operation
    assert str(result).startswith(f"seed {result.seed}, step {result.step}: ")
    assert result == play_history(result.seed, ensemble_of(kind)), "the same seed finds the same"


def test_store_without_ensemble_is_checked() -> None:
    ensemble = ensemble_of(MemoryStore)
    assert play_bare(ensemble.connect) is None
    broken = play_bare(ensemble_of(Forgetful).connect)
    assert broken is not None
    assert "read_configs" in broken.operation


def test_stores_without_shared_storage_are_reported() -> None:
    result = play_bare(lambda: ensemble_of(MemoryStore).connect())
    assert result is not None


def test_storage_with_topics_is_refused() -> None:
    ensemble = ensemble_of(MemoryStore)
    ensemble.connect()
    store = ensemble.connect()
    store.open(lambda _event: None)
    store.perform(CreateTopics(TopicTable.of(("mine",), [[(1,)]]), ({},)))
    with pytest.raises(InputError, match="mine"):
        play_bare(ensemble.connect)
    assert store.perform(ReadTopicNames()) == {"mine"}
    assert store.perform(ReadController()).controller_id == -1


class Hasty(EmbeddedBrokers):
    """Sends without waiting for responses."""

    def _deliver(self, channel: FifoChannel) -> None:
        while channel.waiting:
            _, delivery = channel.waiting.popleft()
            self._receive(channel, delivery)


class Disorderly(EmbeddedBrokers):
    """Sends the last request first."""

    def _deliver(self, channel: FifoChannel) -> None:
        channel.waiting.reverse()
        super()._deliver(channel)


class Faithful(EmbeddedBrokers):
    """Keeps requests for a registration that has ended."""

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        ids = cluster.brokers.ids_of(brokers)
        saved = {broker_id: self._saved.get(broker_id) for broker_id in ids}
        super().connect(cluster, brokers)
        for broker_id, waiting in saved.items():
            self._channels[broker_id].waiting.extend(waiting or ())
            self._deliver(self._channels[broker_id])

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        for broker_id in cluster.brokers.ids_of(brokers):
            self._saved[broker_id] = list(self._channels[broker_id].waiting) if broker_id in self._channels else []
        super().disconnect(cluster, brokers)

    @property
    def _saved(self) -> dict[int, Any]:
        saved: dict[int, Any] = self.__dict__.setdefault("kept", {})
        return saved


class Reckless(EmbeddedBrokers):
    """Sends even if its controller may not act."""

    def open(self, notify: Notify, may_act: Callable[[], bool]) -> None:
        super().open(notify, lambda: True)


class Dropping(EmbeddedBrokers):
    """Repeats no request."""

    def _receive(self, channel: FifoChannel, delivery: Delivery) -> None:
        if channel.in_flight is not delivery:
            super()._receive(channel, delivery)


class Late(EmbeddedBrokers):
    """Reads the columns late. It does so at the next batch."""

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        cluster.partitions.leader_epoch += 1
        super().send(cluster, requests)


class Mute(EmbeddedBrokers):
    """Delivers no response events."""

    def open(self, notify: Notify, may_act: Callable[[], bool]) -> None:
        super().open(lambda _event: None, may_act)


BROKEN_TRANSPORTS = [Hasty, Disorderly, Faithful, Reckless, Dropping, Late, Mute]


def sandbox_of(kind: Callable[[VirtualClock], EmbeddedBrokers]) -> EmbeddedSandbox:
    clock = VirtualClock()
    return EmbeddedSandbox(kind(clock), clock)


@pytest.mark.parametrize("seed", SEEDS)
def test_embedded_transport_passes(seed: int) -> None:
    assert play_batches(seed, lambda _cluster: sandbox_of(EmbeddedBrokers)) is None


@pytest.mark.parametrize("kind", BROKEN_TRANSPORTS)
def test_broken_transport_is_reported_with_seed_and_step(kind: Callable[[VirtualClock], EmbeddedBrokers]) -> None:
    result = first_of(play_batches(seed, lambda _cluster: sandbox_of(kind)) for seed in SEEDS)
    assert result is not None
    assert str(result).startswith(f"seed {result.seed}, step {result.step}: ")
