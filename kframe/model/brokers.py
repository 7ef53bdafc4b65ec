"""The broker columns: every broker id that the cluster has ever named, registered or not, with a dense index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import InputError
from kframe.model.arrays import Bool, Int32, Int64, UInt8
from kframe.model.ids import NO_BROKER_EPOCH
from kframe.model.slot_columns import BROKERS_MAX

#: Security protocols of listeners, with their ids in requests and records (Kafka ``SecurityProtocol``).
SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener of a broker. ``security_protocol`` is one of ``SECURITY_PROTOCOLS``."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class Registration:
    """One registration of a broker, as stored in ``/brokers/ids``; ``broker_epoch`` is its czxid."""

    broker_id: int
    broker_epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None


class Brokers:
    """Brokers by index. Arrays have one entry per broker and are replaced when a broker id is first named."""

    def __init__(self) -> None:
        self.ids: Int32 = np.empty(0, np.int32)
        self.registered: UInt8 = np.empty(0, np.uint8)
        """1 while the broker is registered ("live or shutting down")."""
        self.shutting_down: UInt8 = np.empty(0, np.uint8)
        """1 after the broker has requested controlled shutdown, until it unregisters or the controller fails over."""
        self.broker_epoch: Int64 = np.empty(0, np.int64)
        self.registrations: list[Registration | None] = []
        """The last registration of each broker. It remains after the broker unregisters, because its epoch is still
        needed."""
        self._index: dict[int, int] = {}
        self._racks: tuple[list[Registration | None], tuple[str, ...], Int32] = [], (), np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, broker_id: object) -> bool:
        return broker_id in self._index

    @property
    def live(self) -> UInt8:
        """1 where the broker is registered and not shutting down. Only such brokers may lead or join an ISR."""
        return self.registered & (self.shutting_down ^ np.uint8(1))

    def racks(self) -> tuple[tuple[str, ...], Int32]:
        """The names of all racks, ascending, and (b,) the number of each broker's rack among them; -1 for none.

        Every election calls this, so the result is cached until a registration changes. Callers must not modify the
        array.
        """
        registrations, names, numbers = self._racks
        if registrations != self.registrations:  # usually the same objects, so this compares pointers
            named = [None if registration is None else registration.rack for registration in self.registrations]
            names = tuple(sorted({rack for rack in named if rack is not None}))
            number = {rack: position for position, rack in enumerate(names)}
            numbers = np.array([-1 if rack is None else number[rack] for rack in named], np.int32)
            self._racks = list(self.registrations), names, numbers
        return names, numbers

    def index_of(self, broker_ids: Iterable[int]) -> Int32:
        """Indexes of broker ids; a new id gets the next index, unregistered.

        Raises InputError, and adds none of them, if the cluster would have more than BROKERS_MAX brokers.
        """
        ids = broker_ids if isinstance(broker_ids, np.ndarray) else np.array(list(broker_ids), np.int64)
        known = self.look_up(ids)
        if int(known.min(initial=0)) >= 0:
            return known
        distinct, inverse = np.unique(ids, return_inverse=True)
        new_ids = [int(broker_id) for broker_id in distinct if int(broker_id) not in self._index]
        if new_ids:
            self._extend(new_ids)
        table = np.array([self._index[int(broker_id)] for broker_id in distinct], np.int32)
        return table[inverse]

    def find(self, broker_id: int) -> int | None:
        """Index of a broker id, or None if it has never been named."""
        return self._index.get(broker_id)

    def look_up(self, broker_ids: NDArray[Any]) -> Int32:
        """Indexes of broker ids; -1 for ids that were never named. Adds no index."""
        if self._in_range(broker_ids):
            return np.asarray(broker_ids - self.ids[0], np.int32)
        if self.ids.min(initial=0) >= 0 and (max_id := int(self.ids.max(initial=0))) < len(broker_ids):
            # For many ids, a table of all ids costs less than one search per id.
            table = np.full(max_id + 2, -1, np.int32)
            table[self.ids] = np.arange(len(self))
            if broker_ids.min() < 0 or broker_ids.max() > max_id:
                broker_ids = np.where((broker_ids < 0) | (broker_ids > max_id), max_id + 1, broker_ids)
            indexes: Int32 = table[broker_ids]
            return indexes
        order = np.argsort(self.ids, kind="stable")
        positions = np.searchsorted(self.ids, broker_ids, sorter=order)
        result = np.append(order, -1)[positions].astype(np.int32)
        result[np.append(self.ids, -1)[result] != broker_ids] = -1
        return result

    def _in_range(self, broker_ids: NDArray[Any]) -> bool:
        """Whether these are many ids, all of them known, and known ids follow each other in the order of indexes."""
        if not 0 < len(self) < len(broker_ids) or not bool((np.diff(self.ids) == 1).all()):
            return False
        return bool(self.ids[0] <= broker_ids.min() and broker_ids.max() <= self.ids[-1])

    def ids_of(self, indexes: Iterable[int] | Int32 | Int64 | Bool) -> list[int]:
        """Broker ids at ``indexes``. Negative indexes (no leader) remain unchanged."""
        return [int(self.ids[index]) if index >= 0 else int(index) for index in indexes]

    def registered_ids(self) -> list[int]:
        """Ids of the brokers that are live or shutting down, ascending."""
        return sorted(int(broker_id) for broker_id in self.ids[self.registered != 0])

    def register(self, registrations: Sequence[Registration]) -> Int32:
        """Mark these brokers as registered and not shutting down. Return their indexes."""
        indexes = self.index_of([registration.broker_id for registration in registrations])
        for index, registration in zip(indexes, registrations, strict=True):
            self.registrations[index] = registration
            self.broker_epoch[index] = registration.broker_epoch
        self.registered[indexes] = 1
        self.shutting_down[indexes] = 0
        self.racks()  # Compute them here, so that an election does not wait for them.
        return indexes

    def unregister(self, indexes: Int32) -> None:
        """Mark these brokers as unregistered."""
        self.registered[indexes] = 0
        self.shutting_down[indexes] = 0

    def copy(self) -> Brokers:
        """An independent copy."""
        copied = Brokers()
        copied.ids, copied.registered, copied.shutting_down = (
            self.ids.copy(),
            self.registered.copy(),
            self.shutting_down.copy(),
        )
        copied.broker_epoch, copied.registrations = self.broker_epoch.copy(), list(self.registrations)
        copied._index = dict(self._index)
        return copied

    def _extend(self, new_ids: list[int]) -> None:
        if len(self) + len(new_ids) > BROKERS_MAX:
            raise InputError("broker ids", f"{len(self) + len(new_ids):,} different ones", f"at most {BROKERS_MAX:,}")
        for broker_id in new_ids:
            self._index[broker_id] = len(self._index)
        count = len(new_ids)
        self.ids = np.concatenate([self.ids, np.array(new_ids, np.int32)])
        self.registered = np.concatenate([self.registered, np.zeros(count, np.uint8)])
        self.shutting_down = np.concatenate([self.shutting_down, np.zeros(count, np.uint8)])
        self.broker_epoch = np.concatenate([self.broker_epoch, np.full(count, NO_BROKER_EPOCH, np.int64)])
        self.registrations += [None] * count
