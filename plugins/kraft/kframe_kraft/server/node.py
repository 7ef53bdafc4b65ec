"""A controller that is the only voter of its quorum: it opens its directory, leads, and serves until it is stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kframe_kafka_wire.protocol.codec import Fields

from kframe.plugin import CommitObserver, ElectionKind, LeaderSelector
from kframe.plugin.kraft import KRAFT_VERSION, ClusterMetadata, ControllerResult, RecordAndVersion, control, records
from kframe.plugin.kraft_controller import (
    Heartbeats,
    KraftContext,
    KraftSettings,
    MetadataLevel,
    SelectorSelection,
    activate,
    elections,
    registration,
)
from kframe.plugin.server import MutationQuotas
from kframe_kraft.controller import DecisionLoop, PeriodicTask
from kframe_kraft.disk import Checkpoint, MetaProperties, read_checkpoint, read_properties, write_quorum_state
from kframe_kraft.disk.names import BOOTSTRAP_ID, BOOTSTRAP_NAME
from kframe_kraft.log import DirectoryLock, LogSettings, RetentionSettings, open_log
from kframe_kraft.quorum import ReplicaKey, SoleVoter, Voters
from kframe_kraft.replay.image import Timeline
from kframe_kraft.server.environment import Environment
from kframe_kraft.server.leading import lead
from kframe_kraft.server.snapshotting import SnapshotSettings, SnapshotThread, SnapshotWriter
from kframe_kraft.server.stale_brokers import StaleBrokerCheck
from kframe_kraft.sources.detection import LOG_DIRECTORY

_SESSION_NS: Final = 9 * 10**9


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """``static_voters`` are those of ``controller.quorum.voters``, for directories without voters in the log.
    ``endpoints`` are this node's, as others are to reach it."""

    endpoints: tuple[control.VoterEndpoint, ...]
    static_voters: Voters = field(default_factory=lambda: Voters(()))
    log: LogSettings = field(default_factory=LogSettings)
    snapshots: SnapshotSettings = field(default_factory=SnapshotSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    session_timeout_ns: int = _SESSION_NS
    no_op_ms: int = 500
    """``metadata.max.idle.interval.ms``; 0: no NoOp records."""
    balance_ms: int = 300_000
    """``leader.imbalance.check.interval.seconds``; 0: ``auto.leader.rebalance.enable`` is off."""
    unclean_ms: int = 300_000
    """``unclean.leader.election.interval.ms``."""
    security_protocol: int = 0
    """Kafka's ``SecurityProtocol`` id of the controller listener."""
    mutation_window_s: int = 11
    """``controller.quota.window.num`` times ``controller.quota.window.size.seconds``."""


class VoterNode:
    """A node with an open directory. ``lead`` makes it the active controller, ``stop`` closes all."""

    def __init__(
        self,
        directory: Path,
        settings: NodeSettings,
        kraft: KraftSettings | None = None,
        environment: Environment | None = None,
    ) -> None:
        """``directory`` is ``metadata.log.dir``, formatted. Raises LogError, and OSError if it cannot be written."""
        self._settings = settings
        self._environment = environment or Environment()
        self.properties: MetaProperties = read_properties(directory)
        self._log_directory = directory / LOG_DIRECTORY
        self._lock = DirectoryLock(directory)
        try:
            self._open(directory, kraft)
        except BaseException:
            self._lock.release()
            raise
        self._incarnation = self._environment.new_id()
        self.loop: DecisionLoop | None = None
        self.selection = SelectorSelection({})
        self.snapshot_writer = SnapshotWriter(
            self.log, self.quorum.voters, settings.snapshots, settings.retention, self._environment, self._unsaved_bytes
        )
        self.snapshots: SnapshotThread | None = None
        self._finalized: tuple[dict[str, int], int] = {}, -1

    def _open(self, directory: Path, kraft: KraftSettings | None) -> None:
        settings = self._settings
        files = self._environment.files(self._log_directory)
        opened = open_log(self._log_directory, settings.log, files)
        self.log = opened.log
        self._unsaved_bytes = sum(header.size for header in opened.history.log.batches.headers())
        timeline = Timeline(opened.history)
        self.metadata: ClusterMetadata = timeline.advance()
        self._in_transaction = timeline.in_transaction
        formatted = _formatted(directory)
        self._bootstrap = [record for checkpoint in formatted for record in checkpoint.records()]
        voters, self._log_has_voters = _voters(timeline, formatted, self.key, settings)
        state = opened.history.quorum_state
        self.quorum = SoleVoter(self.key, voters, state, max(self.log.last_epoch, timeline.epoch))
        self._kraft = replace(
            kraft or KraftSettings(),
            cluster_id=self.properties.cluster_id,
            node_id=self.key.node_id,
            quorum_ids=voters.ids,
            validates_configs=True,
        )

    @property
    def key(self) -> ReplicaKey:
        """The node and its directory."""
        directory_id = self.properties.directory_id
        return ReplicaKey(self.properties.node_id, *(() if directory_id is None else (directory_id,)))

    def features(self) -> Fields:
        """The fields of ApiVersions about features: what the controller supports, and the levels of the cluster.

        Their epoch is the offset of the end at which they were seen first.
        """
        finalized = dict(self.metadata.features)
        if self.quorum.voters.kraft_version:
            finalized[KRAFT_VERSION] = self.quorum.voters.kraft_version
        if finalized != self._finalized[0]:
            self._finalized = finalized, self.log.end
        supported = self._supported_features()
        return {
            "supported_features": [
                {"name": name, "min_version": low, "max_version": high} for name, (low, high) in supported.items()
            ],
            "finalized_features": [
                {"name": name, "min_version_level": level, "max_version_level": level}
                for name, level in finalized.items()
            ],
            "finalized_features_epoch": self._finalized[1],
        }

    def lead(
        self,
        on_progress: Callable[[], None],
        selectors: Mapping[ElectionKind, LeaderSelector] = {},
        tasks: Sequence[PeriodicTask] = (),
        observer: CommitObserver | None = None,
    ) -> DecisionLoop:
        """Become the leader and the active controller, with its threads. Returns before anything is committed.

        ``on_progress`` and ``observer`` as in DecisionLoop. Elections without a selector follow Kafka's rule. ``tasks``
        run beside those of every controller. Raises LogWriteError.
        """
        loop = self.become_leader(on_progress, selectors, observer)
        self.snapshots = SnapshotThread(loop, self.snapshot_writer)
        loop.start([*self.tasks(), *tasks])
        self.snapshots.start()
        return loop

    def become_leader(
        self,
        on_progress: Callable[[], None],
        selectors: Mapping[ElectionKind, LeaderSelector] = {},
        observer: CommitObserver | None = None,
    ) -> DecisionLoop:
        """As ``lead``, without threads: the caller takes the steps of the loop."""
        self.selection = SelectorSelection(selectors)
        write_quorum_state(self._log_directory, self.quorum.stand())
        heartbeats = Heartbeats.activated(
            self._settings.session_timeout_ns, self.metadata.brokers.registrations, self._environment.clock()
        )
        context = KraftContext(
            self.metadata,
            heartbeats,
            self._kraft,
            self._environment.random,
            selection=self.selection,
            mutation_quotas=MutationQuotas(self._settings.mutation_window_s),
        )
        self.loop = lead(
            self.quorum,
            self.log,
            context,
            on_progress,
            self._environment,
            observer,
            log_has_voters=self._log_has_voters,
        )
        bootstrap, in_transaction = self._bootstrap, self._in_transaction
        self.loop.submit(lambda context: activate(context, bootstrap, in_transaction=in_transaction))
        self.loop.submit(self.register_itself)
        return self.loop

    def tasks(self) -> list[PeriodicTask]:
        """The periodic tasks of an active controller (Kafka ``QuorumController``)."""
        settings = self._settings
        stale = StaleBrokerCheck(settings.session_timeout_ns)
        tasks = [
            PeriodicTask("fence brokers without a session", stale.period_ms, stale.check),
            PeriodicTask("elect unclean leaders", settings.unclean_ms, elections.elect_unclean_leaders),
        ]
        if settings.balance_ms:
            tasks.append(PeriodicTask("elect preferred leaders", settings.balance_ms, elections.balance_leaders))
        if settings.no_op_ms:
            tasks.append(PeriodicTask("write a NoOp record", settings.no_op_ms, _no_op))
        return tasks

    def register_itself(self, context: KraftContext) -> ControllerResult[None]:
        """The registration of this controller, once, and where the level has such records. Kafka's sends it over a
        socket."""
        registered = context.metadata.controllers.get(self.key.node_id)
        is_registered = registered is not None and registered.incarnation_id == self._incarnation
        if is_registered or context.level < MetadataLevel.CONTROLLER_REGISTRATION:
            return ControllerResult((), None)
        protocol = self._settings.security_protocol
        record = records.RegisterControllerRecord(
            controller_id=self.key.node_id,
            incarnation_id=self._incarnation,
            zk_migration_ready=False,
            end_points=tuple(
                records.ControllerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=protocol)
                for each in self._settings.endpoints
            ),
            features=tuple(
                records.ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self._supported_features().items()
            ),
        )
        return registration.register_controller(context, record)

    def _supported_features(self) -> dict[str, tuple[int, int]]:
        return {**self._kraft.supported_features, KRAFT_VERSION: (0, 1)}

    def stop(self) -> None:
        """Resign, end the threads, and release the directory. May be called again."""
        self.quorum.resign()
        if self.loop is not None:
            self.loop.stop()
        if self.snapshots is not None:
            self.snapshots.stop()
        self._lock.release()


def _no_op(context: KraftContext) -> ControllerResult[bool]:
    return ControllerResult([RecordAndVersion(records.NoOpRecord(), 0)], False)


def _formatted(directory: Path) -> list[Checkpoint]:
    """The checkpoints that the node was formatted with: voters, and the bootstrap records once."""
    paths = (directory / LOG_DIRECTORY / BOOTSTRAP_ID.file_name, directory / BOOTSTRAP_NAME)
    checkpoints = [read_checkpoint(path) for path in paths if path.exists()]
    with_records = [checkpoint for checkpoint in checkpoints if checkpoint.records()]
    return [checkpoint for checkpoint in checkpoints if checkpoint not in with_records[1:]]


def _voters(
    timeline: Timeline, formatted: Sequence[Checkpoint], key: ReplicaKey, settings: NodeSettings
) -> tuple[Voters, bool]:
    """The voters, with this node's present endpoints, and whether the log has them so."""
    level, record = timeline.kraft_version, timeline.voters_record
    for checkpoint in formatted:
        if level == 0:
            level, record = checkpoint.kraft_version, checkpoint.voters
    if level == 0 or record is None:
        return settings.static_voters, False
    members = tuple(
        control.Voter(
            voter_id=voter.voter_id,
            voter_directory_id=voter.voter_directory_id,
            endpoints=settings.endpoints if voter.voter_id == key.node_id else voter.endpoints,
            k_raft_version_feature=voter.k_raft_version_feature,
        )
        for voter in record.voters
    )
    return Voters(members, level), timeline.voters_record == control.VotersRecord(voters=members)
