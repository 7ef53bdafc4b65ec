"""A KRaft scenario that is played to a running controller, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kframe_kafka_wire.connections.node import NodeConnection

from kframe.core.kraft.brokers.broker_events import BrokerHeartbeat, BrokerHeartbeatReply
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.replay import replay
from kframe.errors import ErrorCode
from kframe.model.kraft.ids import METADATA_VERSION, MetadataLevel
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import BrokerRegistrationChangeRecord, RegisterControllerRecord
from kframe.scenario.kraft.brokers import HeartbeatingBroker, ProcessState
from kframe.scenario.kraft.format import KraftScenario
from kframe.scenario.kraft.playing import TICK_NS, KraftRun, SnapshotRecord
from kframe.scenario.kraft.quorum import SECOND, LogBatch
from verification.kraft.scripted_quorum import connect
from verification.kraft.wire_scenarios.controller import CLUSTER_ID, ScenarioController
from verification.kraft.wire_scenarios.observer import REPLY_BYTES_MAX, CommittedBatches, log_batch
from verification.kraft.wire_scenarios.stalls import MachineStalled

MS: Final = 1_000_000
#: Between two attempts of a process to register at the end of the session of its predecessor.
ATTEMPT_NS: Final = 3 * MS
#: For what the controller does at once, and for a snapshot.
WAIT_NS: Final = 60 * SECOND
SNAPSHOT_WAIT_NS: Final = 15 * SECOND
BROKER_REGISTRATION: Final = 62
BROKER_HEARTBEAT: Final = 63


class WireRun(KraftRun):
    """One scenario and its controller, which ``close`` stops."""

    def __init__(self, scenario: KraftScenario, directory: Path) -> None:
        """Format the directory. Raises ConfigError and ScenarioError for settings that the controller refuses."""
        self.controller = ScenarioController(scenario, directory)
        self.observer = CommittedBatches(self.controller)
        super().__init__(scenario, WireRequests(self), CLUSTER_ID)
        self._client: NodeConnection | None = None
        self._metadata = ClusterMetadata()
        self._log: list[LogBatch] = []
        self._fenced_ns: dict[tuple[int, int], int] = {}
        """When each broker was fenced last, by id and broker epoch."""
        self._registrations = 0
        """Registrations of the controller in the log."""

    @property
    def now_ns(self) -> int:
        """See ``KraftRun``."""
        return time.monotonic_ns()

    @property
    def session_ns(self) -> int:
        """See ``KraftRun``."""
        return self.controller.session_ms * MS

    @property
    def metadata(self) -> ClusterMetadata:
        """See ``KraftRun``. Nothing is committed before the last response that it does not have."""
        return self._metadata

    @property
    def log(self) -> Sequence[LogBatch]:
        """See ``KraftRun``."""
        return self._log

    def ask(self, api_key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request. What was committed before it is in ``log`` and ``metadata``."""
        if self._client is None:
            self._client = connect(self.controller.address, reply_bytes_max=REPLY_BYTES_MAX)
        response = self._client.ask(api_key, fields)
        self._apply(self.observer.catch_up())
        return response

    def start(self) -> None:
        """See ``KraftRun``."""
        registrations = self._registrations
        self.controller.start()
        self.brokers.renew_contacts(self.now_ns)
        self._wait(lambda: METADATA_VERSION in self._metadata.features, "no metadata.version")
        if self._metadata.metadata_version >= MetadataLevel.CONTROLLER_REGISTRATION:
            self._wait(lambda: self._registrations > registrations, "no registration of the controller")

    def stop(self) -> None:
        """See ``KraftRun``."""
        self._apply(self.observer.catch_up())
        self.observer.restart_at(self.observer.end)
        if self._client is not None:
            self._client.close()
            self._client = None
        self.controller.stop()

    def close(self) -> None:
        """Stop the controller, also after an error."""
        self.observer.close()
        if self._client is not None:
            self._client.close()
        self.controller.stop()

    def lose(self, count: int) -> None:
        """See ``KraftRun``."""
        log = self._log[:-count]
        self.controller.cut_log(log[-1].end_offset)
        self.observer.restart_at(log[-1].end_offset)
        self._metadata, self._log, self._registrations = ClusterMetadata(), [], 0
        self._apply(log)

    def snapshot(self) -> tuple[int, list[SnapshotRecord]]:
        """See ``KraftRun``. Raises MachineStalled if the controller writes none."""
        self._wait(self._has_snapshot, "no snapshot of the whole log", SNAPSHOT_WAIT_NS)
        snapshot_id = self.controller.newest_snapshot()
        assert snapshot_id is not None
        records: list[SnapshotRecord] = []
        for batch in map(log_batch, self.controller.snapshot_batches(snapshot_id)):
            records += [*batch.control, *batch.records]
        return snapshot_id.offset, records

    def _has_snapshot(self) -> bool:
        newest = self.controller.newest_snapshot()
        return newest is not None and newest.offset >= self.observer.end

    def tick(self, duration_ns: int = TICK_NS) -> None:
        """See ``KraftRun``. Raises MachineStalled if a broker may have lost its session meanwhile."""
        self._apply(self.observer.poll(max(duration_ns // MS, 1)))
        for broker in self.brokers.by_id.values():
            runs = broker.state is not ProcessState.STOPPED and broker.contact_ns is not None
            if runs and self.now_ns - (broker.contact_ns or 0) > 0.7 * self.session_ns:
                raise MachineStalled(f"broker {broker.broker_id} sent no heartbeat for 70 % of its session")
        self.send_round_if_due()

    def has_session(self, broker: HeartbeatingBroker) -> bool:
        """See ``KraftRun``. A fenced broker is fenced again when its session ends."""
        assert broker.stopped_ns is not None
        end_ns = broker.stopped_ns + self.session_ns * 9 // 10
        return self._fenced_ns.get((broker.broker_id, broker.epoch), 0) <= end_ns

    def register_at_expiry(self, broker: HeartbeatingBroker) -> str:
        """See ``KraftRun``. Raises MachineStalled if the controller fenced the broker first."""
        committed, end_ns = len(self._log), self.now_ns + 2 * self.session_ns + 5 * SECOND
        error = self.brokers.register(broker)
        while error == ErrorCode.DUPLICATE_BROKER_REGISTRATION.name and self.now_ns < end_ns:
            self.tick(ATTEMPT_NS)
            error = self.brokers.register(broker)
        if any(fenced_broker(item.record) is not None for batch in self._log[committed:] for item in batch.records):
            raise MachineStalled(f"broker {broker.broker_id} was fenced before it registered")
        return error

    def _wait(self, holds: Callable[[], bool], problem: str, wait_ns: int = WAIT_NS) -> None:
        """Wait for something in the log. Raises MachineStalled."""
        end_ns = self.now_ns + wait_ns
        while not holds():
            if self.now_ns > end_ns:
                raise MachineStalled(f"{problem} after {wait_ns // SECOND} s; {self.controller.failure()}")
            self.tick()

    def _apply(self, batches: Sequence[LogBatch]) -> None:
        """Apply batches to the metadata. Batches of NoOp records only are left out of the log."""
        for batch in batches:
            for index, item in enumerate(batch.records):
                replay(self._metadata, item.record, batch.offset + index)
                self._registrations += isinstance(item.record, RegisterControllerRecord)
                session = fenced_broker(item.record)
                if session is not None:
                    self._fenced_ns[session] = self.now_ns
        self._log += [batch for batch in batches if not batch.is_idle]


def fenced_broker(record: object) -> tuple[int, int] | None:
    """Id and broker epoch of the broker that a record fences, or None."""
    if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == 1:
        return record.broker_id, record.broker_epoch
    return None


class WireRequests:
    """Implements ``BrokerRequests`` over the wire."""

    def __init__(self, run: WireRun) -> None:
        self._run = run

    @property
    def end_offset(self) -> int:
        """See ``BrokerRequests``."""
        return self._run.observer.end

    def contact_time_ns(self) -> int:
        """See ``BrokerRequests``."""
        return self._run.now_ns

    def register(self, request: BrokerRegistrationRequest) -> int:
        """See ``BrokerRequests``."""
        fields = {
            "broker_id": request.broker_id,
            "cluster_id": request.cluster_id,
            "incarnation_id": request.incarnation_id.bytes,
            "listeners": [
                {"name": each.name, "host": each.host, "port": each.port, "security_protocol": each.security_protocol}
                for each in request.end_points
            ],
            "features": [
                {
                    "name": each.name,
                    "min_supported_version": each.min_supported_version,
                    "max_supported_version": each.max_supported_version,
                }
                for each in request.features
            ],
            "rack": request.rack,
            "log_dirs": [directory.bytes for directory in request.directories],
            "previous_broker_epoch": request.previous_broker_epoch,
        }
        epoch: int = self._accepted(BROKER_REGISTRATION, fields)["broker_epoch"]
        return epoch

    def heartbeat(self, request: BrokerHeartbeat) -> BrokerHeartbeatReply:
        """See ``BrokerRequests``."""
        cordoned = request.cordoned_directories
        fields = {
            "broker_id": request.broker_id,
            "broker_epoch": request.broker_epoch,
            "current_metadata_offset": request.metadata_offset,
            "want_fence": request.want_fence,
            "want_shut_down": request.want_shut_down,
            "offline_log_dirs": [directory.bytes for directory in request.offline_directories],
            "cordoned_log_dirs": None if cordoned is None else [directory.bytes for directory in cordoned],
        }
        reply = self._accepted(BROKER_HEARTBEAT, fields)
        return BrokerHeartbeatReply(
            reply["is_caught_up"],
            reply["is_fenced"],
            in_controlled_shutdown=False,
            should_shut_down=reply["should_shut_down"],
        )

    def _accepted(self, api_key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        response = self._run.ask(api_key, fields)
        if response["error_code"]:
            raise RequestRefused(ErrorCode(response["error_code"]), "")
        return response
