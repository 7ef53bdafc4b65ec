"""A metadata log with one voter and its active controller, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from kframe.core.kraft.brokers.broker_events import fence_stale_broker
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.replication.elections import balance_leaders, elect_unclean_leaders
from kframe.core.kraft.replication.leader_selection import LeaderSelection
from kframe.model.kraft.control import (
    ControlRecord,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    Voter,
    VotersRecord,
)
from kframe.model.kraft.directory_ids import ZERO_UUID
from kframe.model.kraft.ids import ELR_VERSION, METADATA_VERSION, MetadataLevel, ResourceType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.model.kraft.records import (
    BeginTransactionRecord,
    ConfigRecord,
    ControllerFeature,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RegisterControllerRecord,
)
from kframe.model.kraft.topics import MIN_INSYNC_REPLICAS
from kframe.scenario.kraft.sessions import JavaHeartbeats

NODE_ID: Final = 3000
SECOND: Final = 1_000_000_000
#: The first ``metadata.version`` whose log may have transactions.
TRANSACTIONS: Final = 13

_Response = TypeVar("_Response")


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A committed batch: records with versions, or control records."""

    offset: int
    epoch: int
    records: tuple[RecordAndVersion, ...] = ()
    control: tuple[ControlRecord, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether the batch has NoOp records only."""
        return not self.control and all(isinstance(item.record, NoOpRecord) for item in self.records)

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        return self.offset + len(self.records) + len(self.control)


@dataclass(frozen=True, slots=True)
class TimerIntervals:
    """The session timeout and the intervals of elections in nanoseconds; None is off."""

    session_ns: int
    balance_ns: int | None
    unclean_ns: int


class Quorum:
    """The log, and the active controller after ``start``. Every decision is committed at once."""

    def __init__(
        self, settings: KraftSettings, timers: TimerIntervals, levels: Mapping[str, int], selection: LeaderSelection
    ) -> None:
        self.log: list[LogBatch] = []
        self.epoch = 0
        self.kraft_version = 0
        self.now_ns = 0
        self.timers = timers
        self._settings, self._levels, self._selection = settings, levels, selection
        self._random = JavaRandom(0)
        self._periodic_tasks = dict(_periodic_tasks(timers))
        self._next_run_ns: dict[str, int] = {}
        self._registrations = 0
        self.context = self._new_context(ClusterMetadata(), JavaHeartbeats(timers.session_ns))

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.log[-1].end_offset if self.log else 0

    @property
    def metadata(self) -> ClusterMetadata:
        """The metadata after all records of the log."""
        return self.context.metadata

    def _new_context(self, metadata: ClusterMetadata, heartbeats: Heartbeats) -> KraftContext:
        return KraftContext(metadata, heartbeats, self._settings, self._random, self.now_ns, selection=self._selection)

    def start(self) -> None:
        """Become active in a new epoch; the first time, write the feature levels."""
        self.epoch += 1
        voters = (LeaderChangeVoter(voter_id=NODE_ID),)
        self._append_control(LeaderChangeMessage(leader_id=NODE_ID, voters=voters, granting_voters=voters))
        metadata = self.metadata
        heartbeats = JavaHeartbeats.activated(self.timers.session_ns, metadata.brokers.registrations, self.now_ns)
        self.context = self._new_context(metadata, heartbeats)
        if not metadata.features:
            self._append(self._bootstrap_records())
        self._register_controller()
        self._next_run_ns = {name: self.now_ns + interval_ns for name, (_, interval_ns) in self._periodic_tasks.items()}

    def submit(self, decide: Callable[[KraftContext], ControllerResult[_Response]]) -> _Response:
        """Decide, commit the records and return the response. Raises RequestRefused."""
        level = self.context.level
        self.context.now_ns = self.now_ns
        result = decide(self.context)
        for batch in result.batches():
            self._append(batch)
        if level < MetadataLevel.CONTROLLER_REGISTRATION <= self.context.level:
            self._register_controller()
        return result.response

    def upgrade_kraft_version(self) -> None:
        """Write the voters into the log (``kraft.version`` 1)."""
        self.kraft_version = 1
        voter = Voter(
            voter_id=NODE_ID,
            voter_directory_id=ZERO_UUID,
            k_raft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
        )
        self._append_control(KRaftVersionRecord(k_raft_version=1), VotersRecord(voters=(voter,)))

    def run_periodic_tasks(self) -> None:
        """Fence brokers whose sessions have expired, and elect leaders where a timer is due."""
        for name, next_ns in self._next_run_ns.items():
            if self.now_ns >= next_ns:
                decide, interval_ns = self._periodic_tasks[name]
                while self.submit(decide):
                    pass
                self._next_run_ns[name] = self.now_ns + interval_ns

    def truncate(self, count: int) -> None:
        """Remove the newest ``count`` batches with records from the log."""
        written = [index for index, batch in enumerate(self.log) if not batch.is_idle]
        del self.log[written[-count] :]
        metadata = ClusterMetadata()
        self.context = self._new_context(metadata, JavaHeartbeats(self.timers.session_ns))
        for batch in self.log:
            for index, item in enumerate(batch.records):
                self.context.replay(item.record, batch.offset + index)

    def _append(self, records: Sequence[RecordAndVersion]) -> None:
        if not records:
            return
        batch = LogBatch(self.end_offset, self.epoch, tuple(records))
        self.log.append(batch)
        for index, item in enumerate(records):
            self.context.replay(item.record, batch.offset + index)

    def _append_control(self, *records: ControlRecord) -> None:
        self.log.append(LogBatch(self.end_offset, self.epoch, control=records))

    def _bootstrap_records(self) -> list[RecordAndVersion]:
        levels = [
            RecordAndVersion(FeatureLevelRecord(name=name, feature_level=level), 0)
            for name, level in self._levels.items()
        ]
        if self._levels[METADATA_VERSION] < TRANSACTIONS:
            return levels
        if self._levels.get(ELR_VERSION):
            levels.append(_cluster_min_isr(self._settings.min_insync_replicas))
        begin = RecordAndVersion(BeginTransactionRecord(name="Bootstrap records"), 0)
        return [begin, *levels, RecordAndVersion(EndTransactionRecord(), 0)]

    def _register_controller(self) -> None:
        if self.context.level < MetadataLevel.CONTROLLER_REGISTRATION:
            return
        self._registrations += 1
        features = tuple(
            ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in sorted(self.context.settings.supported_features.items())
        )
        record = RegisterControllerRecord(
            controller_id=NODE_ID,
            incarnation_id=controller_incarnation(self._registrations),
            zk_migration_ready=False,
            end_points=(),
            features=features,
        )
        self._append([RecordAndVersion(record, 0)])


def _periodic_tasks(
    timers: TimerIntervals,
) -> Iterator[tuple[str, tuple[Callable[[KraftContext], ControllerResult[bool]], int]]]:
    """The periodic tasks, each with its interval (Kafka ``QuorumController.registerMaybeFenceStaleBroker`` etc.)."""
    yield "sessions", (fence_stale_broker, timers.session_ns // 8)
    if timers.balance_ns is not None:
        yield "balance", (balance_leaders, timers.balance_ns)
    yield "unclean", (elect_unclean_leaders, timers.unclean_ns)


def _cluster_min_isr(value: int) -> RecordAndVersion:
    """The setting of the whole cluster that a new log with ELR has (Kafka ``ActivationRecordsGenerator``)."""
    kind = int(ResourceType.BROKER)
    record = ConfigRecord(resource_type=kind, resource_name="", name=MIN_INSYNC_REPLICAS, value=str(value))
    return RecordAndVersion(record, 0)


def controller_incarnation(number: int) -> UUID:
    """The incarnation of the controller's process with this number, from 1 on."""
    return UUID(int=(0xC0 << 120) | number)
