"""The metrics of a KRaft controller by Kafka's names (Kafka 4.4 ``QuorumControllerMetrics``, ``KafkaRaftMetrics``)."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from typing import Final

import numpy as np

from kframe.plugin.kraft import ControllerResult
from kframe.plugin.kraft_controller import KraftContext, SelectorSelection
from kframe.plugin.server import labelled, summary
from kframe_kraft.controller import DecisionLoop, NotController
from kframe_kraft.server.node import VoterNode

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_STATS: Final = "kafka_controller_controllerstats_"
_EVENTS: Final = "kafka_controller_controllereventmanager_"
_RAFT: Final = "kafka_server_raft_metrics_"
_SNAPSHOTS: Final = "kafka_server_snapshotemitter_latestsnapshotgenerated"
#: Seconds until a scrape goes on without the gauges of the cluster: an event takes long.
_GAUGES_S: Final = 2.0
#: Kafka's ``BrokerRegistrationState``.
_FENCED, _CONTROLLED_SHUTDOWN, _ACTIVE = 10, 20, 30


def measure(node: VoterNode) -> dict[str, float]:
    """All metrics by exported name. Thread-safe. A controller that no longer leads has no gauges of the cluster."""
    is_leader = node.quorum.leadership is not None
    return {**_raft_metrics(node), **_snapshot_metrics(node), **loop_metrics(node.loop, node.selection, is_leader)}


def loop_metrics(loop: DecisionLoop | None, selection: SelectorSelection, is_leader: bool) -> dict[str, float]:
    """The metrics of a controller that has started its loop, and of its cluster. Thread-safe."""
    is_active = is_leader and loop is not None and loop.failure is None
    metrics: dict[str, float] = {f"{_CONTROLLER}activecontrollercount": int(is_active)}
    if loop is None:
        return metrics
    metrics |= _event_metrics(loop)
    faults: Counter[str] = Counter()
    for (selector, _), count in tuple(selection.faults.items()):
        faults[selector] += count
    metrics |= {labelled("kframe_selector_faults_total", selector=name): count for name, count in faults.items()}
    with suppress(NotController, LateError):
        # The first event of the queue may read the columns, which other threads must not.
        metrics |= loop.submit(_cluster_metrics).result(_GAUGES_S)
    return metrics


def _event_metrics(loop: DecisionLoop) -> dict[str, float]:
    elections = loop.elections
    return {
        f"{_STATS}uncleanleaderelections_total": elections.unclean,
        f"{_STATS}electionfromeligibleleaderreplicas_total": elections.from_elr,
        f"{_CONTROLLER}eventqueueoperationsstartedcount": loop.times.waiting.count,
        f"{_EVENTS}eventqueuesize": loop.waiting_events,
        **summary(f"{_EVENTS}eventqueuetimems", loop.times.waiting),
        **summary(f"{_EVENTS}eventqueueprocessingtimems", loop.times.deciding),
    }


def _cluster_metrics(context: KraftContext) -> ControllerResult[dict[str, float]]:
    """The gauges of brokers, topics and partitions (Kafka ``ControllerMetadataMetrics``)."""
    metadata = context.metadata
    partitions = metadata.partitions
    rows = np.flatnonzero(partitions.topic >= 0)
    leaders = partitions.leaders_of(rows)
    registrations = metadata.brokers.registrations
    counts = {
        "activebrokercount": sum(not each.fenced for each in registrations.values()),
        "fencedbrokercount": sum(each.fenced for each in registrations.values()),
        "controlledshutdownbrokercount": sum(each.in_controlled_shutdown for each in registrations.values()),
        "globaltopiccount": len(metadata.topics.index_by_name),
        "globalpartitioncount": len(rows),
        "offlinepartitionscount": int((leaders < 0).sum()),
        "preferredreplicaimbalancecount": int((leaders != partitions.preferred_of(rows)).sum()),
    }
    metrics: dict[str, float] = {f"{_CONTROLLER}{name}": count for name, count in counts.items()}
    for broker_id, each in sorted(registrations.items()):
        state = _FENCED if each.fenced else _CONTROLLED_SHUTDOWN if each.in_controlled_shutdown else _ACTIVE
        metrics[labelled(f"{_CONTROLLER}brokerregistrationstate", broker=str(broker_id))] = state
    return ControllerResult((), metrics)


def _raft_metrics(node: VoterNode) -> dict[str, float]:
    """The role of this node, which votes for itself alone, and its log."""
    quorum, leadership = node.quorum, node.quorum.leadership
    observers = 0 if leadership is None else leadership.observer_count(time.monotonic_ns() // 1_000_000)
    high_watermark = None if leadership is None else leadership.high_watermark
    leader = -1 if leadership is None else quorum.node.node_id
    values = {
        "current_leader": leader,
        "current_vote": leader,
        "current_epoch": quorum.epoch,
        "high_watermark": -1 if high_watermark is None else high_watermark,
        "log_end_offset": node.log.end,
        "log_end_epoch": node.log.last_epoch,
        "number_of_voters": len(quorum.voters.members),
        "number_of_observers": observers,
    }
    metrics: dict[str, float] = {f"{_RAFT}{name}": value for name, value in values.items()}
    if high_watermark is not None:
        metrics[f"{_CONTROLLER}lastappliedrecordoffset"] = node.log.end - 1
        metrics[f"{_CONTROLLER}lastcommittedrecordoffset"] = high_watermark - 1
    return metrics


def _snapshot_metrics(node: VoterNode) -> dict[str, float]:
    """Size and age of the newest snapshot (Kafka ``SnapshotEmitterMetrics``)."""
    newest = max(node.log.snapshots, default=None)
    if newest is None:
        return {}
    try:
        status = (node.log.directory / newest.file_name).stat()
    except OSError:  # A newer one has replaced it.
        return {}
    return {f"{_SNAPSHOTS}bytes": status.st_size, f"{_SNAPSHOTS}agems": (time.time() - status.st_mtime) * 1000}
