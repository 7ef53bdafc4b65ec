"""The brokers of a KRaft cluster: registrations, and the columns that decisions read."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kframe.errors import InputError
from kframe.model.arrays import Int32, UInt8
from kframe.model.ids import NO_LEADER
from kframe.model.kraft import directory_ids
from kframe.model.kraft.directories import MIGRATING, UNASSIGNED, Directories
from kframe.model.kraft.records import BrokerEndpoint, BrokerFeature, DirectoryIds, RegisterBrokerRecord
from kframe.model.slot_columns import BROKERS_MAX


class BrokerRegistration(Struct, frozen=True, kw_only=True):
    """One registration (Kafka ``BrokerRegistration``). ``directories`` ascend as Kafka compares them.

    ``cordoned`` is None until the broker has named its cordoned directories. ``offset`` is that of the record of the
    registration.
    """

    broker_id: int
    broker_epoch: int
    incarnation_id: UUID
    end_points: tuple[BrokerEndpoint, ...] = ()
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    directories: DirectoryIds = ()
    cordoned: DirectoryIds | None = None
    offset: int = -1

    def record(self) -> RegisterBrokerRecord:
        """The registration as a record of a snapshot."""
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            is_migrating_zk_broker=self.is_migrating_zk_broker,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.broker_epoch,
            end_points=self.end_points,
            features=self.features,
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=self.directories,
            cordoned_log_dirs=self.cordoned,
        )

    @property
    def is_active(self) -> bool:
        """Neither fenced nor in controlled shutdown: it may lead and join ISRs."""
        return not (self.fenced or self.in_controlled_shutdown)

    @property
    def has_uncordoned_directory(self) -> bool:
        """Whether new replicas may be placed on the broker."""
        return not self.directories or not self.cordoned or bool(set(self.directories) - set(self.cordoned))

    def has_online_directory(self, directory: UUID) -> bool:
        """Whether a replica in this directory is online (Kafka ``DirectoryId.isOnline``)."""
        if directory in (directory_ids.UNASSIGNED, directory_ids.MIGRATING):
            return True
        return directory != directory_ids.LOST and (not self.directories or directory in self.directories)


def sorted_directories(directories: Iterable[UUID]) -> DirectoryIds:
    """Directory ids in the order of Java's UUIDs: both halves are signed."""
    return tuple(sorted(directories, key=lambda directory: (_signed(directory.int >> 64), _signed(directory.int))))


def _signed(value: int) -> int:
    low = value & (2**64 - 1)
    return low - 2**64 if low >= 2**63 else low


class KraftBrokers:
    """Brokers by index: every broker id that the cluster has named, registered or not."""

    def __init__(self, directories: Directories) -> None:
        self.ids: Int32 = np.empty(0, np.int32)
        self.active: UInt8 = np.empty(0, np.uint8)
        """1 for brokers that are registered, not fenced and not in controlled shutdown."""
        self.lists_no_directory: UInt8 = np.empty(0, np.uint8)
        """1 for brokers whose registration lists no directory: all their replicas count as online."""
        self.registrations: dict[int, BrokerRegistration] = {}
        """The registered brokers by id."""
        self._directories = directories
        self._index: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def index_of(self, broker_id: int) -> int:
        """Index of a broker id, -1 for -1. A new id gets the next index. Raises InputError beyond BROKERS_MAX."""
        if broker_id == NO_LEADER:
            return NO_LEADER
        index = self._index.get(broker_id)
        if index is None:
            index = len(self)
            if index == BROKERS_MAX:
                raise InputError("broker ids", f"{index + 1:,} different ones", f"at most {BROKERS_MAX:,}")
            self._index[broker_id] = index
            self.ids = np.append(self.ids, np.int32(broker_id))
            self.active = np.append(self.active, np.uint8(0))
            self.lists_no_directory = np.append(self.lists_no_directory, np.uint8(0))
        return index

    def indexes_of(self, broker_ids: Iterable[int]) -> list[int]:
        """Indexes of broker ids."""
        return [self.index_of(broker_id) for broker_id in broker_ids]

    def find(self, broker_id: int) -> int | None:
        """Index of a broker id, or None if it was never named."""
        return self._index.get(broker_id)

    def ids_of(self, indexes: Iterable[int]) -> tuple[int, ...]:
        """Broker ids at ``indexes``; -1 stays."""
        return tuple(int(self.ids[index]) if index >= 0 else NO_LEADER for index in indexes)

    def is_active(self, broker_id: int) -> bool:
        """Whether a broker is registered, not fenced and not in controlled shutdown."""
        registration = self.registrations.get(broker_id)
        return registration is not None and registration.is_active

    def default_directory(self, broker_id: int) -> int:
        """Directory index of a new replica on a broker (Kafka ``ClusterControlManager.defaultDir``)."""
        registration = self.registrations.get(broker_id)
        if registration is None:
            return UNASSIGNED
        if not registration.directories:
            return MIGRATING
        if len(registration.directories) == 1:
            return self._directories.index_of(registration.directories[0])
        return UNASSIGNED

    def register(self, registration: BrokerRegistration) -> None:
        """Store a registration in place of the broker's former one."""
        index = self.index_of(registration.broker_id)
        directories = sorted_directories(registration.directories)
        if directories != registration.directories:
            registration = replace(registration, directories=directories)
        self.registrations[registration.broker_id] = registration
        self.active[index] = registration.is_active
        self.lists_no_directory[index] = not directories
        self._directories.assign(index, directories)

    def unregister(self, broker_id: int) -> None:
        """Remove a registration."""
        del self.registrations[broker_id]
        index = self._index[broker_id]
        self.active[index] = self.lists_no_directory[index] = 0
        self._directories.assign(index, ())

    def copy(self, directories: Directories) -> KraftBrokers:
        """An independent copy that shares ``directories``."""
        clone = KraftBrokers(directories)
        clone.ids, clone.active = self.ids.copy(), self.active.copy()
        clone.lists_no_directory = self.lists_no_directory.copy()
        clone.registrations, clone._index = dict(self.registrations), dict(self._index)
        return clone
