"""The source of ``--demo``: a thread performs the requested operations, and reads the cluster after each step."""

from __future__ import annotations

import logging
import math
import queue
import time
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final

from kframe.plugin import KframeError, ParameterError
from kframe.plugin.cluster import ElectionType
from kframe.plugin.settings import short_repr
from kframe.plugin.snapshot import Snapshot
from kframe_console.sources.controllers import ControllerReading, embedded_reading
from kframe_console.sources.demo.cluster import DIRECTORIES, PARTITIONS_WITH_DIRECTORIES_MAX, DemoCluster
from kframe_console.sources.demo.operations import BROKER_BUTTONS, DemoOperation, operations_of
from kframe_console.sources.live import LiveSource
from kframe_console.sources.reading import ClusterChanges, ClusterSource, Reading

_LOG: Final = logging.getLogger("kframe.console")
#: Operations that may wait.
_WAITING_MAX: Final = 32
#: Most partitions of a topic that the cluster begins with.
_TOPIC_PARTITIONS_MAX: Final = 5_000
_TOPICS_MIN: Final = 10
#: Seconds between readings of a cluster that grows.
_GROWTH_S: Final = 3.0
#: Seconds until followers have caught up, and between the steps of a rolling restart, so that users see them.
_STEP_S: Final = 1.0


class DemoSource(ClusterSource):
    """The newest reading of an embedded cluster, which begins with ``partitions`` partitions."""

    is_live = True
    problem: str | None = None

    def __init__(self, cluster: DemoCluster, partitions: int, step_s: float = _STEP_S) -> None:
        self.cluster: Final = cluster
        self.name = f"demo cluster, {'KRaft' if cluster.mode == 'kraft' else 'ZooKeeper'} mode"
        self.performing: DemoOperation | None = None
        """The operation in progress."""
        self.refusal: str | None = None
        """Why the cluster has refused the last operation; None if it has not."""
        self._partitions = partitions
        self._step_s = step_s
        self._requested: queue.Queue[DemoOperation] = queue.Queue(_WAITING_MAX)
        self._readings: LiveSource | None = None
        self._version = -1
        self._is_readable, self._stopping = Event(), Event()
        self._thread = Thread(target=self._run, name="kframe-demo", daemon=True)

    def start(self) -> None:
        """Start the cluster."""
        self._thread.start()

    def close(self) -> None:
        """Stop the cluster."""
        self._stopping.set()
        self._thread.join()

    def reading(self, position: str) -> Reading:
        """The newest reading, or a retained one by its number. Raises ParameterError, and KframeError at the end."""
        return self._live().reading(position)

    def changes(self, reading: Reading) -> ClusterChanges | None:
        """The changes of the last hour."""
        return self._live().changes(reading)

    def _live(self) -> LiveSource:
        """The readings, once there is one."""
        self._is_readable.wait()
        if self._readings is None:
            raise KframeError(self.problem or "the cluster has stopped")
        return self._readings

    def read_controllers(self) -> list[ControllerReading]:
        """See Controllers."""
        return list(map(embedded_reading, self.cluster.controllers)) if self._readings is not None else []

    @property
    def waiting(self) -> int:
        """Operations that wait."""
        return self._requested.qsize()

    def request(self, operation: DemoOperation) -> bool:
        """Queue an operation. Returns False if too many wait. Raises ParameterError."""
        mode, brokers = self.cluster.mode, self.cluster.broker_ids
        if operation.operation not in operations_of(mode):
            expected = f"one of {', '.join(operations_of(mode))} in {mode} mode"
            raise ParameterError("operation", short_repr(operation.operation), expected)
        if operation.operation in BROKER_BUTTONS and operation.broker not in brokers:
            raise ParameterError("broker", str(operation.broker), f"a broker from {brokers[0]} to {brokers[-1]}")
        try:
            self._requested.put_nowait(operation)
        except queue.Full:
            return False
        return True

    def _run(self) -> None:
        try:
            self.cluster.start()
            self._publish()
            self._create_topics()
            while not self._stopping.is_set():
                self._perform_next()
        except Exception as problem:
            _LOG.exception("the demo has ended")
            self.problem = f"the demo has ended: {problem}"
        finally:
            self._is_readable.set()
            self.cluster.stop()

    def _perform_next(self) -> None:
        """Perform the next operation; if none is requested within a step, let followers catch up."""
        try:
            operation = self._requested.get(timeout=self._step_s)
        except queue.Empty:
            self.cluster.catch_up()
        else:
            self.performing, self.refusal = operation, None
            try:
                self.refusal = self._perform(operation) or None
            except KframeError as problem:
                self.refusal = str(problem)
            self.performing = None
        self._publish()

    def _perform(self, requested: DemoOperation) -> str:
        """Perform an operation. Returns why the cluster has refused it; empty if it has not."""
        cluster = self.cluster
        broker_operations = {
            "kill": cluster.kill_broker,
            "start": cluster.start_broker,
            "shut_down": cluster.shut_down_broker,
            "fence": cluster.fence_broker,
            "fail_directory": cluster.fail_directory,
        }
        match requested.operation:
            case "create_topic":
                return cluster.create_topic(requested.topic, requested.partitions)
            case "elect_preferred":
                cluster.elect_leaders(ElectionType.PREFERRED)
            case "elect_unclean":
                cluster.elect_leaders(ElectionType.UNCLEAN)
            case "resign":
                cluster.resign()
            case "roll":
                self._roll()
            case name:
                assert requested.broker is not None
                broker_operations[name](requested.broker)
        return ""

    def _roll(self) -> None:
        """Restart the brokers in order, each after all replicas have caught up."""
        for broker_id in self.cluster.broker_ids:
            for step in (self.cluster.shut_down_broker, self.cluster.start_broker):
                step(broker_id)
                self._publish()
                if self._stopping.wait(self._step_s):
                    return
            self.cluster.catch_up()
            self._publish()

    def _create_topics(self) -> None:
        """Create the topics that the cluster begins with: at least a few, so that pages have rows."""
        size = min(_TOPIC_PARTITIONS_MAX, max(self._partitions // _TOPICS_MIN, 1))
        published_s = time.monotonic()
        for number, first in enumerate(range(0, self._partitions, size), 1):
            if self._stopping.is_set():
                return
            self.cluster.create_topic(f"topic-{number:04}", min(size, self._partitions - first))
            if time.monotonic() - published_s > _GROWTH_S:
                self._publish()
                published_s = time.monotonic()
        self._publish()

    def _publish(self) -> None:
        """Read the cluster if it has changed."""
        version, self._version = self._version, self.cluster.version
        if self._readings is None:
            self._readings = LiveSource(self.name, _DemoReader(self.cluster), lambda snapshot: snapshot, math.inf)
            self._is_readable.set()
        elif version != self._version:
            self._readings.refresh()


@dataclass(frozen=True, slots=True)
class _DemoReader:
    """Implements ``LiveReader``."""

    cluster: DemoCluster

    def read(self) -> Snapshot:
        """See LiveReader."""
        return self.cluster.snapshot()

    def close(self) -> None:
        """See LiveReader."""


def demo_source(mode: str, partitions: int, brokers: int) -> DemoSource:
    """The source of a new cluster. Its brokers have a single log directory if it has many partitions."""
    from kframe_console.sources.demo.kraft import KraftDemo
    from kframe_console.sources.demo.zookeeper import ZookeeperDemo

    cluster = KraftDemo if mode == KraftDemo.mode else ZookeeperDemo
    return DemoSource(cluster(brokers, DIRECTORIES if partitions <= PARTITIONS_WITH_DIRECTORIES_MAX else 1), partitions)
