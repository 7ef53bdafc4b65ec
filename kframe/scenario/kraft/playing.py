"""The state of a running KRaft scenario: quorum, brokers, time and names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kframe.core.kraft.context import SUPPORTED_FEATURES, KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult, RequestRefused
from kframe.core.kraft.replication.leader_selection import LeaderSelection
from kframe.errors import ConfigError, ErrorCode, ScenarioError
from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.kraft.levels import default_levels, parse_level
from kframe.model.kraft.releases import LATEST_RELEASE, stated_release, supported_features
from kframe.model.whole_numbers import parse_whole
from kframe.scenario.format import config_text
from kframe.scenario.kraft.brokers import ScenarioBrokers
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.names import SymbolicNames
from kframe.scenario.kraft.quorum import NODE_ID, SECOND, Quorum, TimerIntervals

CLUSTER_ID: Final = "scenario-kraft"
#: Time between two checks of timers and sessions, and between two rounds of heartbeats.
TICK_NS: Final = 50_000_000
ROUND_NS: Final = 200_000_000
#: A step ends after this time without a commit and two rounds of heartbeats.
IDLE_NS: Final = 450_000_000
IDLE_ROUNDS: Final = 2
#: A step fails if it does not end within this time.
IDLE_TIMEOUT_NS: Final = 60 * SECOND


class KraftRun:
    """The state of one scenario."""

    def __init__(self, scenario: KraftScenario, selection: LeaderSelection) -> None:
        """Format the log. Raises ScenarioError for features or settings that Kafka would refuse."""
        self.scenario = scenario
        levels = {name: _level(scenario, name, level) for name, level in scenario.features.items()}
        settings = _settings(scenario)
        version = levels.pop(METADATA_VERSION, settings.supported_features[METADATA_VERSION][1])
        self.quorum = Quorum(settings, _timers(scenario), default_levels(version, levels), selection)
        self.features = {name: list(bounds) for name, bounds in sorted(SUPPORTED_FEATURES.items())}
        self.names = SymbolicNames(self.features)
        self.brokers = ScenarioBrokers(self.quorum, self.names, CLUSTER_ID)
        self.has_authorizer = "authorizer.class.name" in scenario.config
        self.messages: dict[str, str] = {}
        """The error messages of the current step."""
        self._next_round_ns = 0

    def submit(self, key: str, decide: Callable[[KraftContext], ControllerResult[Any]]) -> tuple[str, Any]:
        """Decide a request that has one error. Returns the name of the error and the response."""
        try:
            return ErrorCode.NONE.name, self.quorum.submit(decide)
        except RequestRefused as refusal:
            return self.outcome(key, refusal.error, refusal.message), None

    def outcome(self, key: str, error: ErrorCode, message: str | None = None) -> str:
        """The name of an error. Its message belongs to the step."""
        if message and error is not ErrorCode.NONE:
            self.messages[key] = self.names.replace_ids(message)
        return error.name

    def pass_time(self, duration_ns: int) -> None:
        """Advance the time, with heartbeats and timers."""
        end = self.quorum.now_ns + duration_ns
        while self.quorum.now_ns < end:
            self.tick(min(TICK_NS, end - self.quorum.now_ns))

    def tick(self, duration_ns: int = TICK_NS) -> None:
        """Advance the time by one tick."""
        self.quorum.now_ns += duration_ns
        if self.quorum.now_ns >= self._next_round_ns:
            self.send_round()
        self.quorum.run_periodic_tasks()

    def send_round(self) -> None:
        """Send the heartbeats of a round now."""
        self._next_round_ns = self.quorum.now_ns + ROUND_NS
        self.brokers.send_round()

    def wait_until_idle(self) -> None:
        """Advance the time until no records are committed and awaited sessions have ended. Raises ScenarioError."""
        start = changed = self.quorum.now_ns
        end_offset, rounds = self.quorum.end_offset, self.brokers.rounds
        while self.quorum.now_ns < start + IDLE_TIMEOUT_NS:
            self.tick()
            if self.quorum.end_offset != end_offset:
                end_offset, changed, rounds = self.quorum.end_offset, self.quorum.now_ns, self.brokers.rounds
            is_idle = self.quorum.now_ns - changed > IDLE_NS and self.brokers.rounds >= rounds + IDLE_ROUNDS
            if is_idle and not self._has_awaited_session():
                return
        raise ScenarioError(self.scenario.source, "a step that does not come to rest", "rest within a minute")

    def _has_awaited_session(self) -> bool:
        """Whether the session of a stopped broker still runs; the controller writes a fencing record when it ends."""
        registrations = self.quorum.metadata.brokers.registrations
        awaited = False
        for broker in self.brokers.by_id.values():
            if broker.stopped_ns is None:
                continue
            registration = registrations.get(broker.broker_id)
            session = broker.broker_id, broker.epoch
            is_current = registration is not None and registration.broker_epoch == broker.epoch
            if not is_current or session not in self.quorum.context.heartbeats.contact_ns:
                broker.stopped_ns = None
            else:
                awaited = True
        return awaited


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
