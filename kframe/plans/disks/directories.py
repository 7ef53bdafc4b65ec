"""The log directories of each broker as columns: what may move, what they hold, and what they can take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kframe.errors import InputError, ParameterError
from kframe.model.arrays import Bool, Int32, Int64
from kframe.plans.disks.request import DiskRequest
from kframe.plans.generate.log_dirs import BYTES_MAX
from kframe.ports.administration import DirectoryName, LogDirectory
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import BrokerFacts

#: The room of a directory whose disk is of unknown size.
UNLIMITED: Final = BYTES_MAX
#: The longest topic-partition of a log that can move: the name of its future log has 40 characters more, at most 255
#: (Kafka ``UnifiedLog.logFutureDirName``, ``ReplicaManager.alterReplicaLogDirs``).
_NAME_MAX: Final = 255 - len(".") - 32 - len("-future")


@dataclass(frozen=True, slots=True)
class StayingReplicas:
    """How many replicas of a broker do not move, by the reason."""

    moving: int
    """They are being moved to another directory of the broker, where they count."""
    unassigned: int
    """The snapshot assigns their partition to other brokers, or does not have it."""
    reassigning: int
    """Their partition is being reassigned or deleted."""
    unlisted: int
    """The snapshot assigns them to the broker, and no directory lists them."""
    long_names: int
    """Brokers refuse moves of topics with so long names."""


@dataclass(frozen=True, slots=True, eq=False)
class BrokerDisks:
    """The ``d`` log directories of a broker, by path, and its ``n`` replicas that may move.

    ``rows`` (n,) are those of the snapshot, ``size`` (n,) bytes, and ``home`` (n,) the directory of each. ``used`` (d,)
    are bytes once the moves in progress have ended: of the volume where its sizes are known, else of replicas.
    ``room`` (d,) is what a directory can receive while nothing has left it. ``disk`` are the sizes of disks, None if
    unknown. ``refusals`` says why a directory receives nothing, None if it may. ``hidden_cordons`` counts cordoned
    directories of the metadata whose path is unknown.
    """

    broker_id: int
    directories: tuple[LogDirectory, ...]
    rows: Int32
    size: Int64
    home: Int32
    used: Int64
    room: Int64
    disk: tuple[int | None, ...]
    refusals: tuple[str | None, ...]
    staying: StayingReplicas
    hidden_cordons: int

    @property
    def offline(self) -> list[DirectoryName]:
        """The directories that the broker cannot use. It starts no move while there is one
        (Kafka ``LogManager.getOrCreateLog``)."""
        return [self.name(index) for index, directory in enumerate(self.directories) if directory.error is not None]

    def name(self, index: int) -> DirectoryName:
        """A directory with its broker."""
        return DirectoryName(self.broker_id, self.directories[index].path)


def broker_disks(
    snapshot: Snapshot, listed: Mapping[int, Sequence[LogDirectory]], request: DiskRequest
) -> tuple[BrokerDisks, ...]:
    """The directories of the brokers that the request covers, ascending by id.

    Raises InputError for a broker or directory of the request that is not listed, and for too many bytes.
    """
    _check_names(listed, request)
    chosen: Collection[int] = listed if request.brokers is None else set(request.brokers)
    if request.relieve:
        chosen = {directory.broker_id for directory in request.relieve}
    reader = _Reader.of(snapshot, request)
    return tuple(reader.read(broker_id, listed[broker_id]) for broker_id in sorted(chosen))


def _check_names(listed: Mapping[int, Sequence[LogDirectory]], request: DiskRequest) -> None:
    named: list[tuple[str, int, str | None]] = [("brokers", broker_id, None) for broker_id in request.brokers or ()]
    named += [("disk_bytes", *key) for key in request.disk_bytes if key is not None]
    named += [("relieve", *directory) for directory in request.relieve]
    named += [("exclude", *directory) for directory in request.exclude]
    for parameter, broker_id, path in named:
        if broker_id not in listed:
            raise ParameterError(parameter, f"broker {broker_id}", "a broker whose log directories are listed")
        paths = [directory.path for directory in listed[broker_id]]
        if path is not None and path not in paths:
            expected = f"a log directory of broker {broker_id}: {', '.join(paths) or 'it has none'}"
            raise ParameterError(parameter, path, expected)


@dataclass(frozen=True, slots=True, eq=False)
class _Logs:
    """The ``m`` logs of a broker: the row of each in the snapshot (-1: none), its directory, its bytes, whether it is a
    future log, and whether its name is too long to move."""

    rows: Int32
    home: Int32
    size: Int64
    future: Bool
    long: Bool


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """Reads brokers. ``keys`` (n,) ascend: topic and partition of each row. ``settled`` (n,): rows that are neither
    being reassigned nor deleted."""

    snapshot: Snapshot
    request: DiskRequest
    numbers: Mapping[str, int]
    keys: Int64
    settled: Bool
    facts: Mapping[int, BrokerFacts]

    @staticmethod
    def of(snapshot: Snapshot, request: DiskRequest) -> _Reader:
        topics, partitions = snapshot.topics, snapshot.partitions
        topic = topics.topic_of_rows()
        settled = np.ones(len(snapshot), np.bool_)
        for lists in (partitions.adding_replicas, partitions.removing_replicas):
            if lists is not None:
                settled &= lists.counts == 0
        if topics.deleting is not None:
            settled &= (topics.deleting == 0)[topic]
        return _Reader(
            snapshot,
            request,
            {name: index for index, name in enumerate(topics.names)},
            topic.astype(np.int64) << 32 | topics.partition_of_rows(),
            settled,
            {broker.broker_id: broker for broker in snapshot.brokers},
        )

    def read(self, broker_id: int, listed: Sequence[LogDirectory]) -> BrokerDisks:
        """The columns of a broker."""
        directories = tuple(sorted(listed, key=lambda directory: directory.path))
        names = [DirectoryName(broker_id, directory.path) for directory in directories]
        logs = self._logs(directories)
        total = logs.size.sum(dtype=np.float64)
        if total > BYTES_MAX:
            raise InputError(f"broker {broker_id}", f"{total:,.0f} bytes of replicas", f"at most {BYTES_MAX:,}")
        lists = self.snapshot.partitions.replicas
        on_broker = np.zeros(len(self.snapshot) + 1, np.bool_)  # the last is that of row -1
        on_broker[lists.owners[lists.values == broker_id]] = True
        present = on_broker[logs.rows] & ~logs.future
        moving = present & np.isin(logs.rows, logs.rows[logs.future])
        settled = present & ~moving & np.append(self.settled, False)[logs.rows]
        movable = settled & ~logs.long
        used, room, disk = _volumes(directories, logs, [self.request.disk_size(name) for name in names])
        cordoned, hidden_cordons = _cordoned(
            self.snapshot, self.facts.get(broker_id), logs.rows[present], logs.home[present], directories
        )
        staying = StayingReplicas(
            moving=int(moving.sum()),
            unassigned=int((~on_broker[logs.rows] & ~logs.future).sum()),
            reassigning=int((present & ~moving & ~settled).sum()),
            unlisted=int(on_broker.sum()) - int(present.sum()),
            long_names=int((settled & logs.long).sum()),
        )
        refusals = tuple(
            _refusal(directory, index in cordoned, name in self.request.exclude)
            for index, (directory, name) in enumerate(zip(directories, names, strict=True))
        )
        columns = logs.rows[movable], logs.size[movable], logs.home[movable]
        return BrokerDisks(broker_id, directories, *columns, used, room, disk, refusals, staying, hidden_cordons)

    def _logs(self, directories: Sequence[LogDirectory]) -> _Logs:
        logs = [(index, log) for index, directory in enumerate(directories) for log in directory.logs]
        topic = np.array([self.numbers.get(log.topic, -1) for _, log in logs], np.int64)
        keys = topic << 32 | np.array([log.partition for _, log in logs], np.int64)
        position = np.searchsorted(self.keys, keys)
        known = (topic >= 0) & (np.append(self.keys, -1)[position] == keys)
        return _Logs(
            np.where(known, position, -1).astype(np.int32),
            np.array([index for index, _ in logs], np.int32),
            np.array([log.bytes for _, log in logs], np.int64),
            np.array([log.is_future for _, log in logs], np.bool_),
            np.array([len(f"{log.topic}-{log.partition}") > _NAME_MAX for _, log in logs], np.bool_),
        )


def _volumes(
    directories: Sequence[LogDirectory], logs: _Logs, stated: Sequence[int | None]
) -> tuple[Int64, Int64, tuple[int | None, ...]]:
    """(d,) bytes in use and room once the moves in progress have ended, and the size of each disk."""
    used = np.bincount(logs.home, logs.size, len(directories)).astype(np.int64)
    room, disk = np.full(len(directories), UNLIMITED, np.int64), list(stated)
    for index, directory in enumerate(directories):
        if disk[index] is None and directory.total_bytes is not None:
            disk[index] = directory.total_bytes
            if directory.usable_bytes is not None:
                used[index] = max(directory.total_bytes - directory.usable_bytes, 0)
        size = disk[index]
        if size is not None:
            room[index] = size - used[index]
    current = {
        row: position for position, row in enumerate(logs.rows.tolist()) if row >= 0 and not logs.future[position]
    }
    for position in np.flatnonzero(logs.future).tolist():
        source = current.get(int(logs.rows[position]))
        if source is not None:  # The future log grows to the size of the present one, which is then deleted.
            remaining = max(int(logs.size[source] - logs.size[position]), 0)
            used[logs.home[position]] += remaining
            room[logs.home[position]] -= remaining
            used[logs.home[source]] -= logs.size[source]
    return np.maximum(used, 0), np.maximum(room, 0), tuple(disk)


def _refusal(directory: LogDirectory, is_cordoned: bool, is_excluded: bool) -> str | None:
    """Why a directory receives nothing. Brokers refuse moves to offline and cordoned ones
    (Kafka ``ReplicaManager.alterReplicaLogDirs``)."""
    if directory.error is not None:
        return "is offline"
    if is_cordoned or directory.is_cordoned:
        return "is cordoned"
    return "is excluded" if is_excluded else None


def _cordoned(
    snapshot: Snapshot, facts: BrokerFacts | None, rows: Int32, home: Int32, directories: Sequence[LogDirectory]
) -> tuple[set[int], int]:
    """The directories that the metadata of a KRaft cluster has as cordoned, and how many of those have no known path.

    The metadata has ids, the broker has paths: a replica that is in both shows which belong together.
    """
    registration = None if facts is None else facts.registration
    if facts is None or registration is None or not registration.cordoned:
        return set(), 0
    if set(registration.directories) <= set(registration.cordoned):
        return set(range(len(directories))), 0
    ids, lists = snapshot.partitions.directories, snapshot.partitions.replicas
    index_of = {}
    if ids is not None and snapshot.kraft is not None:
        for row, index in zip(rows.tolist(), home.tolist(), strict=True):
            position = lists[row].tolist().index(facts.broker_id)
            directory = snapshot.kraft.directory_ids[ids[row][position]]
            if directory in registration.directories:
                index_of[directory] = index
    known = {index_of[directory] for directory in registration.cordoned if directory in index_of}
    unknown = set(registration.cordoned) - index_of.keys()
    online = {index for index, directory in enumerate(directories) if directory.error is None}
    others = online - set(index_of.values())
    if len(others) == len(unknown) == len(set(registration.directories) - index_of.keys()):
        return known | others, 0
    return known, len(unknown)
