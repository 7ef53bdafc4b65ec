"""A KRaft scenario that is played in process, to a quorum in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kframe.core.kraft.brokers.broker_events import BrokerHeartbeat, BrokerHeartbeatReply, handle_heartbeat
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest, register_broker
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.replication.leader_selection import LeaderSelection
from kframe.errors import ConfigError, ErrorCode, ScenarioError
from kframe.model.kraft.control import LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord
from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.image_records import image_records
from kframe.model.kraft.levels import default_levels, parse_level
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion, record_version
from kframe.model.kraft.releases import LATEST_RELEASE, stated_release, supported_features
from kframe.model.whole_numbers import parse_whole
from kframe.scenario.format import config_text
from kframe.scenario.kraft.brokers import HeartbeatingBroker
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.playing import TICK_NS, KraftRun, SnapshotRecord
from kframe.scenario.kraft.quorum import NODE_ID, SECOND, LogBatch, Quorum, TimerIntervals

CLUSTER_ID: Final = "scenario-kraft"
#: Duration of a request, so that sessions expire in the order of the last heartbeats.
REQUEST_NS: Final = 1_000


class QuorumRun(KraftRun):
    """The state of one scenario."""

    def __init__(self, scenario: KraftScenario, selection: LeaderSelection) -> None:
        """Format the log. Raises ScenarioError for features or settings that Kafka would refuse."""
        settings = _settings(scenario)
        self.quorum = Quorum(settings, _timers(scenario), feature_levels(scenario), selection)
        super().__init__(scenario, QuorumRequests(self.quorum), CLUSTER_ID)
        self.has_authorizer = "authorizer.class.name" in scenario.config

    @property
    def now_ns(self) -> int:
        """See ``KraftRun``."""
        return self.quorum.now_ns

    @property
    def session_ns(self) -> int:
        """See ``KraftRun``."""
        return self.quorum.timers.session_ns

    @property
    def metadata(self) -> ClusterMetadata:
        """See ``KraftRun``."""
        return self.quorum.metadata

    @property
    def log(self) -> Sequence[LogBatch]:
        """See ``KraftRun``."""
        return self.quorum.log

    def submit(self, key: str, decide: Callable[[KraftContext], ControllerResult[Any]]) -> tuple[str, Any]:
        """Decide a request that has one error. Returns the name of the error and the response."""
        try:
            return ErrorCode.NONE.name, self.quorum.submit(decide)
        except RequestRefused as refusal:
            return self.outcome(key, refusal.error, refusal.message), None

    def start(self) -> None:
        """See ``KraftRun``."""
        self.quorum.start()
        self.brokers.renew_contacts(self.now_ns)

    def stop(self) -> None:
        """See ``KraftRun``. Every decision is committed at once, so nothing is to do."""

    def lose(self, count: int) -> None:
        """See ``KraftRun``."""
        self.quorum.truncate(count)

    def tick(self, duration_ns: int = TICK_NS) -> None:
        """See ``KraftRun``."""
        self.quorum.now_ns += duration_ns
        self.send_round_if_due()
        self.quorum.run_periodic_tasks()

    def has_session(self, broker: HeartbeatingBroker) -> bool:
        """See ``KraftRun``."""
        return (broker.broker_id, broker.epoch) in self.quorum.context.heartbeats.contact_ns

    def register_at_expiry(self, broker: HeartbeatingBroker) -> str:
        """See ``KraftRun``."""
        heartbeats, quorum, session = self.quorum.context.heartbeats, self.quorum, (broker.broker_id, broker.epoch)
        while heartbeats.has_valid_session(*session, quorum.now_ns):
            end = heartbeats.contact_ns[session] + heartbeats.session_timeout_ns
            if end >= quorum.now_ns + TICK_NS:
                self.tick()
            else:
                quorum.now_ns = end + 1
        return self.brokers.register(broker)

    def snapshot(self) -> tuple[int, list[SnapshotRecord]]:
        """See ``KraftRun``."""
        metadata = self.quorum.metadata
        voters = [
            record
            for batch in self.quorum.log
            for record in batch.control
            if not isinstance(record, LeaderChangeMessage)
        ]
        versioned = [
            RecordAndVersion(record, record_version(record, metadata.metadata_version))
            for record in image_records(metadata)
        ]
        header = SnapshotHeaderRecord(last_contained_log_timestamp=0)
        return self.quorum.end_offset, [header, *voters, *versioned, SnapshotFooterRecord()]


class QuorumRequests:
    """Implements ``BrokerRequests``. The quorum decides each request at once."""

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    @property
    def end_offset(self) -> int:
        """See ``BrokerRequests``."""
        return self._quorum.end_offset

    def contact_time_ns(self) -> int:
        """See ``BrokerRequests``."""
        self._quorum.now_ns += REQUEST_NS
        return self._quorum.now_ns

    def register(self, request: BrokerRegistrationRequest) -> int:
        """See ``BrokerRequests``."""
        end_offset, kraft_version = self._quorum.end_offset, self._quorum.kraft_version
        return self._quorum.submit(lambda context: register_broker(context, request, end_offset, kraft_version))

    def heartbeat(self, request: BrokerHeartbeat) -> BrokerHeartbeatReply:
        """See ``BrokerRequests``."""
        reply = self._quorum.submit(lambda context: handle_heartbeat(context, request))
        if reply.in_controlled_shutdown:
            heartbeats = self._quorum.context.heartbeats
            heartbeats.begin_controlled_shutdown(request.broker_id, self._quorum.end_offset - 1)
        return reply


def feature_levels(scenario: KraftScenario) -> Mapping[str, int]:
    """The levels of all features of the formatted log. Raises ScenarioError."""
    levels = {name: _level(scenario, name, level) for name, level in scenario.features.items()}
    version = levels.pop(METADATA_VERSION, _settings(scenario).supported_features[METADATA_VERSION][1])
    return default_levels(version, levels)


def _level(scenario: KraftScenario, name: str, level: int | str) -> int:
    parsed = parse_level(str(level)) if name == METADATA_VERSION else level
    if isinstance(parsed, int) and parsed >= 0:
        return parsed
    raise ScenarioError(f"{scenario.source}: features.{name}", repr(level), "a level")


def _settings(scenario: KraftScenario) -> KraftSettings:
    try:
        release = stated_release(scenario.config) or LATEST_RELEASE
    except ConfigError as problem:
        raise ScenarioError(f"{scenario.source}: {problem.where}", problem.actual, problem.expected) from None
    return KraftSettings(
        cluster_id=CLUSTER_ID,
        node_id=NODE_ID,
        quorum_ids=(NODE_ID,),
        min_insync_replicas=_number(scenario, "min.insync.replicas", 1),
        unclean_leader_election_enable=_flag(scenario, "unclean.leader.election.enable"),
        default_replication_factor=_number(scenario, "default.replication.factor", 1),
        num_partitions=_number(scenario, "num.partitions", 1),
        validates_configs=True,
        release=release,
        supported_features=supported_features(release),
    )


def _timers(scenario: KraftScenario) -> TimerIntervals:
    """The timers. A recorded scenario balances leaders, and elects unclean leaders, only where its settings say so."""
    balances = _flag(scenario, "auto.leader.rebalance.enable")
    seconds = _number(scenario, "leader.imbalance.check.interval.seconds", 300)
    unclean_ms = _number(scenario, "unclean.leader.election.interval.ms", 3_600_000)
    session_ms = _number(scenario, "broker.session.timeout.ms", 3_000)
    return TimerIntervals(
        session_ms * SECOND // 1_000, seconds * SECOND if balances else None, unclean_ms * SECOND // 1_000
    )


def _number(scenario: KraftScenario, key: str, default: int) -> int:
    value = scenario.config.get(key, default)
    number = None if isinstance(value, bool) else parse_whole(str(value))
    if number is None:
        raise ScenarioError(f"{scenario.source}: config.{key}", repr(value), "a whole number from 0 on")
    return number


def _flag(scenario: KraftScenario, key: str) -> bool:
    text = config_text(scenario.config.get(key, False))
    if text not in ("true", "false"):
        raise ScenarioError(f"{scenario.source}: config.{key}", repr(text), "true or false")
    return text == "true"
