"""The metrics of a controller under the names of Kafka's dashboards.

The Prometheus JMX exporter makes the same names of Kafka's MBeans.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kframe.model.events import ControllerState
from kframe.ports.transport import BrokerQueue
from kframe.runtime.exposition import labelled, summary
from kframe.runtime.samples import Samples
from kframe.runtime.status import Status

#: ZkMigrationState of a controller that keeps its state in ZooKeeper.
ZK_MIGRATION_STATE: Final = 4

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_STATS: Final = "kafka_controller_controllerstats_"
_EVENTS: Final = "kafka_controller_controllereventmanager_"
_CHANNELS: Final = "kafka_controller_controllerchannelmanager_"

#: States whose timer is not named after them.
_RENAMED: Final = {
    ControllerState.BROKER_CHANGE: "LeaderElection",
    ControllerState.ALTER_PARTITION_REASSIGNMENT: "PartitionReassignment",
}
_UNTIMED: Final = (ControllerState.IDLE, ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED)

#: Kafka's name of each state's timer (3.9 ``ControllerState.rateAndTimeMetricName``); two states have none.
TIMERS: Final[Mapping[ControllerState, str]] = {
    state: _RENAMED.get(state, state.name.title().replace("_", "")) + "RateAndTimeMs"
    for state in ControllerState
    if state not in _UNTIMED
}


class Timers:
    """Durations of events by controller state."""

    def __init__(self) -> None:
        self.samples: Final = {state: Samples() for state in TIMERS}

    def add(self, state: ControllerState, duration_ms: float) -> None:
        """Add the duration of an event of this state."""
        if state in self.samples:
            self.samples[state].add(duration_ms)


def measure(
    status: Status, timers: Timers, queue_times: Samples, channels: Mapping[int, BrokerQueue], quarantined: int
) -> dict[str, float]:
    """All metrics by exported name, with labels in the name as in Prometheus' text format.

    ``channels`` are the transport's queues; ``quarantined`` is the number of unreadable records in storage.
    """
    metrics: dict[str, float] = {f"{_CONTROLLER}{name.lower()}": value for name, value in status.gauges.items()}
    metrics[f"{_CONTROLLER}controllerstate"] = status.state
    metrics[f"{_CONTROLLER}zkmigrationstate"] = ZK_MIGRATION_STATE
    unclean = status.meters.get("UncleanLeaderElectionsPerSec", 0)
    metrics[f"{_STATS}uncleanleaderelections_total"] = unclean
    metrics[f"{_STATS}uncleanleaderelectionspersec_total"] = unclean
    for state, name in TIMERS.items():
        metrics |= summary(f"{_STATS}{name.lower()}", timers.samples[state])
    metrics[f"{_EVENTS}eventqueuesize"] = status.events_waiting
    metrics |= summary(f"{_EVENTS}eventqueuetimems", queue_times)
    metrics |= _channel_metrics(channels)
    metrics["kframe_store_quarantined"] = quarantined
    metrics |= {labelled("kframe_selector_faults_total", selector=k): n for k, n in status.selector_faults.items()}
    metrics |= {labelled("kframe_observer_failures_total", observer=k): n for k, n in status.observer_failures.items()}
    return metrics


def _channel_metrics(channels: Mapping[int, BrokerQueue]) -> dict[str, float]:
    """The metrics of Kafka's ControllerChannelManager; each family lists all brokers, ascending."""
    ordered = sorted(channels.items())
    metrics: dict[str, float] = {f"{_CHANNELS}totalqueuesize": sum(queue.waiting for _, queue in ordered)}
    for broker_id, queue in ordered:
        metrics[labelled(f"{_CHANNELS}queuesize", broker_id=str(broker_id))] = queue.waiting
    for broker_id, queue in ordered:
        metrics |= summary(f"{_CHANNELS}requestrateandqueuetimems", queue.times, broker_id=str(broker_id))
    return metrics
