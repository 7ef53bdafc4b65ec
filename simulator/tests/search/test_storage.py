"""Storage of the search compared with the embedded store."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from kframe.embedded import MemoryEnsemble
from kframe.embedded.store import MemoryStore
from kframe.errors import ControllerFenced
from kframe.model.changes import StateChange
from kframe.model.columns import Ragged
from kframe.ports.store_requests import (
    Claim,
    OwnsRole,
    Prepare,
    ReadBrokers,
    ReadController,
    ReadStates,
    ReleaseRole,
    WriteStates,
)
from kframe_simulator.search import storage
from kframe_simulator.search.subject import OK, cluster_of
from kframe_simulator.search.values import ARMED, BROKERS, FOLLOWS, ControllerSession, Stored

CALLS = 60


class StoragePair:
    """Both storages."""

    def __init__(self) -> None:
        self.stored = Stored((1, 1, 1), 0, 0, 1, 0, BROKERS, 0, 0, 0)
        self.processes = {controller: ControllerSession(0, ARMED, 0, 0) for controller in (1, 2)}
        self.cluster = cluster_of(self.stored)
        self.ensemble = MemoryEnsemble.from_cluster(self.cluster)
        self.stores = {controller: self.ensemble.connect() for controller in (1, 2)}
        for store in self.stores.values():
            store.open(lambda _: None)

    def take(self, controller: int, ask: tuple[Any, ...]) -> tuple[Any, Any]:
        """The results of both for a call."""
        store, process = self.stores[controller], self.processes[controller]
        if ask == ("release",):
            self.stored, _ = storage.release(controller, self.stored, process)
            self.processes[controller] = process._replace(claim=0, flags=process.flags & ~FOLLOWS)
            store.perform(ReleaseRole())
            return None, None
        called = storage.call(controller, self.stored, process, ask)
        self.stored, self.processes[controller] = called.stored, called.process
        try:
            return called.result, self._store_call(controller, store, ask)
        except ControllerFenced:
            return called.result, ("failed", "fenced")

    def _store_call(self, controller: int, store: MemoryStore, ask: tuple[Any, ...]) -> tuple[Any, ...]:
        done = ("done", ask[0])
        match ask[0]:
            case "claim":
                return *done, store.perform(Claim(storage.IDS[controller]))
            case "ReadController":
                return *done, store.perform(ReadController()).controller_id, store.perform(OwnsRole())
            case "ReadBrokers":
                return *done, tuple(min(broker.broker_epoch, 1) for broker in store.perform(ReadBrokers()))
            case "Prepare":
                store.perform(Prepare())
                return done
            case "ReadStates":
                return *done, self._state(store)
        result = store.perform(WriteStates(self.cluster, _change(*ask[1:])))
        return *done, int(result.codes[0]), int(result.partition_epoch[0])

    def _state(self, store: MemoryStore) -> Stored:
        read = store.perform(ReadStates(self.cluster, np.zeros(1, np.int32)))
        leader, *isr = self.cluster.brokers.ids_of([*read.leader, *read.isr.values])
        return self.stored._replace(
            leader=leader, leader_epoch=int(read.leader_epoch[0]), isr=tuple(isr), recovery=int(read.recovery[0]),
            version=int(read.partition_epoch[0]), state_epoch=max(int(read.controller_epoch[0]), 0),
        )  # fmt: skip


def _change(
    leader: int, leader_epoch: int, isr: tuple[int, ...], recovery: int, expected: int, controller_epoch: int
) -> StateChange:
    return StateChange(
        np.zeros(1, np.int32), np.array([max(leader - 1, -1)], np.int32), np.array([leader_epoch], np.int32),
        np.array([recovery], np.uint8), Ragged.of([[member - 1 for member in isr]]), np.array([expected], np.int32),
        controller_epoch,
    )  # fmt: skip


def _random_call(chance: Random, version: int, claim: int) -> tuple[Any, ...]:
    write = (
        "write", chance.choice((-1, 1, 2, 3)), chance.randrange(9),
        tuple(chance.sample(BROKERS, chance.randrange(1, 4))), chance.randrange(2),
        version + chance.choice((0, 0, 1)), claim,
    )  # fmt: skip
    return chance.choice((
        ("claim", False), ("ReadController",), ("ReadBrokers",), ("Prepare",), ("ReadStates",), ("release",), write,
        write, write, write,
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_search_storage_equals_embedded_store(seed: int) -> None:
    chance, both, written = Random(seed), StoragePair(), 0
    for _ in range(CALLS):
        controller = chance.choice((1, 2))
        model_result, result = both.take(
            controller, _random_call(chance, both.stored.version, both.processes[controller].claim)
        )
        assert model_result == result
        written += model_result is not None and model_result[1:3] == ("write", OK)
    assert written
