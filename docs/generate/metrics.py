"""Reference of the metrics: the families that a controller exports, with type, labels and meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kframe_kafka_wire.server.drops import DroppedConnections

import kframe
from docs.generate.markdown import code, table
from kframe.plugin.memory import MemoryEnsemble
from kframe.ports.transport import BrokerQueue
from kframe.runtime.metrics import TIMERS, Timers, measure
from kframe.runtime.samples import Samples
from verification.kraft.served_controller import FakeBroker, connected, formatted, served

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_STATS: Final = "kafka_controller_controllerstats_"
_EVENTS: Final = "kafka_controller_controllereventmanager_"
_CHANNELS: Final = "kafka_controller_controllerchannelmanager_"
_RAFT: Final = "kafka_server_raft_metrics_"
_SNAPSHOTS: Final = "kafka_server_snapshotemitter_latestsnapshotgenerated"

#: Meaning of each family. The page cannot be built if a family lacks one, or if one has no family.
MEANINGS: Final[Mapping[str, str]] = {
    f"{_CONTROLLER}activebrokercount": "Registered brokers that are not fenced.",
    f"{_CONTROLLER}activecontrollercount": "1 on the active controller, 0 on any other instance.",
    f"{_CONTROLLER}brokerregistrationstate": "10: fenced, 20: in controlled shutdown, 30: active.",
    f"{_CONTROLLER}controlledshutdownbrokercount": "Brokers in controlled shutdown.",
    f"{_CONTROLLER}controllerstate": "Code of the event that is handled, 0 while idle.",
    f"{_CONTROLLER}eventqueueoperationsstartedcount": "Events that have been handled.",
    f"{_CONTROLLER}fencedbrokercount": "Fenced brokers; always 0 in ZooKeeper mode.",
    f"{_CONTROLLER}globalpartitioncount": "Partitions of all topics.",
    f"{_CONTROLLER}globaltopiccount": "Topics.",
    f"{_CONTROLLER}lastappliedrecordoffset": "Offset of the last record that the controller has written and applied.",
    f"{_CONTROLLER}lastcommittedrecordoffset": "Offset of the last committed record.",
    f"{_CONTROLLER}offlinepartitionscount": "Partitions without a live leader.",
    f"{_CONTROLLER}preferredreplicaimbalancecount": "Partitions whose leader is not the preferred replica.",
    f"{_CONTROLLER}replicasineligibletodeletecount": "Replicas of deleted topics whose deletion cannot proceed now.",
    f"{_CONTROLLER}replicastodeletecount": "Replicas of topics that are being deleted.",
    f"{_CONTROLLER}topicsineligibletodeletecount": "Topics whose deletion cannot proceed now.",
    f"{_CONTROLLER}topicstodeletecount": "Topics that are being deleted.",
    f"{_CONTROLLER}zkmigrationstate": "4: the state of the cluster is in ZooKeeper.",
    f"{_STATS}electionfromeligibleleaderreplicas_total": "Elections of an eligible leader replica outside the ISR.",
    f"{_STATS}uncleanleaderelections_total": "Unclean leader elections.",
    f"{_STATS}uncleanleaderelectionspersec_total": "The same under Kafka's older name.",
    f"{_EVENTS}eventqueuesize": "Events that wait.",
    f"{_EVENTS}eventqueuetimems": "Milliseconds that events have waited.",
    f"{_EVENTS}eventqueueprocessingtimems": "Milliseconds that events have taken.",
    f"{_RAFT}current_epoch": "Leader epoch.",
    f"{_RAFT}current_leader": "Id of the leader, -1 for none.",
    f"{_RAFT}current_vote": "Id of the voter that this node votes for in the epoch.",
    f"{_RAFT}high_watermark": "End of the committed records, -1 before it is known.",
    f"{_RAFT}log_end_epoch": "Epoch of the last record.",
    f"{_RAFT}log_end_offset": "End of the log.",
    f"{_RAFT}number_of_observers": "Brokers and others that have fetched in the last five minutes.",
    f"{_RAFT}number_of_voters": "Voters.",
    f"{_SNAPSHOTS}agems": "Milliseconds since the newest snapshot was written.",
    f"{_SNAPSHOTS}bytes": "Size of the newest snapshot.",
    f"{_CHANNELS}totalqueuesize": "Requests that wait for all brokers.",
    f"{_CHANNELS}queuesize": "Requests that wait for a broker.",
    f"{_CHANNELS}requestrateandqueuetimems": "Milliseconds that requests to a broker have waited.",
    "kframe_connections_dropped_total": "Connections that the Kafka server closed or lost.",
    "kframe_frames_refused_total": "Malformed, oversized or unsupported frames.",
    "kframe_observer_failures_total": "Exceptions of an observer.",
    "kframe_selector_faults_total": "Partitions that the built-in selector decided because a selector failed.",
    "kframe_store_quarantined": "Records in storage that cannot be decoded.",
}


def metrics() -> str:
    """Return a table of all families of controllers. Raises ValueError if a family lacks a meaning."""
    modes = {"ZooKeeper": _families(zookeeper_metrics()), "KRaft": _families(kraft_metrics())}
    kinds = {family: kind for families in modes.values() for family, (kind, _) in families.items()}
    meanings = {**MEANINGS}
    for state, name in TIMERS.items():
        meanings[f"{_STATS}{name.lower()}"] = f"Milliseconds that an event takes in state {code(int(state))}."
    unknown = meanings.keys() ^ kinds.keys()
    if unknown:
        raise ValueError(f"found {sorted(unknown)}, expected a meaning for each metric and no other")
    rows = []
    for family in sorted(kinds):
        labels = {label for families in modes.values() for label in families.get(family, ("", ()))[1]}
        mode = ", ".join(name for name, families in modes.items() if family in families)
        rows.append([code(family), kinds[family], ", ".join(map(code, sorted(labels))), mode, meanings[family]])
    return table(["metric", "type", "labels", "mode", "meaning"], rows)


def zookeeper_metrics() -> dict[str, float]:
    """Return the metrics of a controller with one broker, a selector and an observer."""
    ensemble = MemoryEnsemble.from_cluster(kframe.ClusterState())
    controller = kframe.ControllerBuilder(1, store=ensemble.connect(), transport="embedded:").build()
    controller.open()
    status = replace(controller.status(), selector_faults={"NAME": 0}, observer_failures={"NAME": 0})
    controller.stop()
    channels = {1: BrokerQueue(0, Samples())}
    return {**measure(status, Timers(), Samples(), channels, 0), **DroppedConnections().metrics()}


def kraft_metrics() -> dict[str, float]:
    """Return the metrics of a controller with one broker and a snapshot."""
    with TemporaryDirectory() as name, served(formatted(Path(name))) as controller:
        broker = FakeBroker(connected(controller), 0)
        with closing(broker.client):
            broker.register()
        node = controller.node
        assert node is not None
        assert node.snapshots is not None
        node.snapshots.write()
        return dict(controller.metrics())


def _families(exported: Mapping[str, float]) -> dict[str, tuple[str, set[str]]]:
    """Return type and labels of each family."""
    text = kframe.exposition(exported)
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    labels: dict[str, set[str]] = {family: set() for family in kinds}
    for name, names in re.findall(r"^(\w+)\{(.*)\} ", text, re.MULTILINE):
        labels[_family(name, kinds)] |= set(re.findall(r'(\w+)="', names))
    return {family: (kind, labels[family]) for family, kind in kinds.items()}


def _family(name: str, families: Iterable[str]) -> str:
    return name if name in families else name.removesuffix("_count")
