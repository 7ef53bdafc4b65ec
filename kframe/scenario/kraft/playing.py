"""The state of a running KRaft scenario: brokers, time and names. Subclasses have the controller."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, TypeAlias

from kframe.core.kraft.context import SUPPORTED_FEATURES
from kframe.errors import ErrorCode, ScenarioError
from kframe.model.kraft.control import ControlRecord
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.scenario.kraft.brokers import BrokerRequests, HeartbeatingBroker, ScenarioBrokers
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.names import SymbolicNames
from kframe.scenario.kraft.quorum import SECOND, LogBatch

#: Time between two checks of timers and sessions, and between two rounds of heartbeats.
TICK_NS: Final = 50_000_000
ROUND_NS: Final = 200_000_000
#: A step ends after this time without a commit and two rounds of heartbeats.
IDLE_NS: Final = 450_000_000
IDLE_ROUNDS: Final = 2
#: A step fails if it does not end within this time.
IDLE_TIMEOUT_NS: Final = 60 * SECOND
SnapshotRecord: TypeAlias = RecordAndVersion | ControlRecord


class KraftRun(ABC):
    """A scenario and the controller that it is played to."""

    def __init__(self, scenario: KraftScenario, requests: BrokerRequests, cluster_id: str) -> None:
        self.scenario = scenario
        self.features = {name: list(bounds) for name, bounds in sorted(SUPPORTED_FEATURES.items())}
        self.names = SymbolicNames(self.features)
        self.brokers = ScenarioBrokers(requests, self.names, cluster_id)
        self.messages: dict[str, str] = {}
        """The error messages of the current step."""
        self._next_round_ns = 0

    @property
    @abstractmethod
    def now_ns(self) -> int:
        """The time."""

    @property
    @abstractmethod
    def session_ns(self) -> int:
        """The session timeout of brokers."""

    @property
    @abstractmethod
    def metadata(self) -> ClusterMetadata:
        """The metadata after all records of the log."""

    @property
    @abstractmethod
    def log(self) -> Sequence[LogBatch]:
        """The committed batches."""

    @abstractmethod
    def start(self) -> None:
        """Start the controller on its log. It is active afterwards."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the controller."""

    @abstractmethod
    def lose(self, count: int) -> None:
        """Remove the newest ``count`` batches from the log of a stopped controller."""

    @abstractmethod
    def snapshot(self) -> tuple[int, list[SnapshotRecord]]:
        """The end offset and the records of a snapshot of the log."""

    @abstractmethod
    def tick(self, duration_ns: int = TICK_NS) -> None:
        """Let a time of up to one tick pass, with heartbeats and timers."""

    @abstractmethod
    def has_session(self, broker: HeartbeatingBroker) -> bool:
        """Whether the controller has not ended the session of a stopped broker."""

    @abstractmethod
    def register_at_expiry(self, broker: HeartbeatingBroker) -> str:
        """Register a new process when the session of the old one has expired, before the controller fences it.
        Returns the name of the error."""

    def outcome(self, key: str, error: ErrorCode, message: str | None = None) -> str:
        """The name of an error. Its message belongs to the step."""
        if message and error is not ErrorCode.NONE:
            self.messages[key] = self.names.replace_ids(message)
        return error.name

    def pass_time(self, duration_ns: int) -> None:
        """Let time pass, with heartbeats and timers."""
        end = self.now_ns + duration_ns
        while self.now_ns < end:
            self.tick(min(TICK_NS, end - self.now_ns))

    def send_round_if_due(self) -> None:
        """Send the heartbeats of a round if it is time."""
        if self.now_ns >= self._next_round_ns:
            self.send_round()

    def send_round(self) -> None:
        """Send the heartbeats of a round now."""
        self._next_round_ns = self.now_ns + ROUND_NS
        self.brokers.send_round()

    def wait_until_idle(self) -> None:
        """Let time pass until no records are committed and awaited sessions have ended. Raises ScenarioError."""
        start = changed = self.now_ns
        batches, rounds = len(self.log), self.brokers.rounds
        while self.now_ns < start + IDLE_TIMEOUT_NS:
            self.tick()
            if len(self.log) != batches:
                batches, changed, rounds = len(self.log), self.now_ns, self.brokers.rounds
            is_idle = self.now_ns - changed > IDLE_NS and self.brokers.rounds >= rounds + IDLE_ROUNDS
            if is_idle and not self._has_awaited_session():
                return
        raise ScenarioError(self.scenario.source, "a step that does not come to rest", "rest within a minute")

    def _has_awaited_session(self) -> bool:
        """Whether the session of a stopped broker still runs; the controller writes a fencing record when it ends."""
        registrations = self.metadata.brokers.registrations
        awaited = False
        for broker in self.brokers.by_id.values():
            if broker.stopped_ns is None:
                continue
            registration = registrations.get(broker.broker_id)
            is_current = registration is not None and registration.broker_epoch == broker.epoch
            if not is_current or not self.has_session(broker):
                broker.stopped_ns = None
            else:
                awaited = True
        return awaited
