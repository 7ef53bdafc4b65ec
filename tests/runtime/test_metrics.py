"""A controller's metrics have the names in Kafka's dashboards, and correct values."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import EmbeddedBrokers, MemoryEnsemble, MemoryStore, RecordingTransport, VirtualClock
from kframe.embedded.brokers import SILENT
from kframe.errors import ErrorCode
from kframe.model.config import ControllerConfig
from kframe.model.events import (
    ElectionRequested,
    ElectionType,
    ResignRequested,
    UpdateMetadataResponseReceived,
)
from kframe.ports.store_requests import Reply, StoreRequest, WriteStates
from kframe.ports.transport import Transport
from kframe.runtime.exposition import exposition
from kframe.runtime.loop import ControllerLoop
from kframe.runtime.metrics import TIMERS
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy

GAUGES = [
    "activecontrollercount",
    "offlinepartitionscount",
    "preferredreplicaimbalancecount",
    "controllerstate",
    "globaltopiccount",
    "globalpartitioncount",
    "topicstodeletecount",
    "replicastodeletecount",
    "topicsineligibletodeletecount",
    "replicasineligibletodeletecount",
    "activebrokercount",
    "fencedbrokercount",
    "zkmigrationstate",
]
#: Kafka 3.9's timers by state code (``docs/reference/controller/controller.md`` section 16).
TIMER_NAMES = {
    1: "ControllerChangeRateAndTimeMs",
    2: "LeaderElectionRateAndTimeMs",
    3: "TopicChangeRateAndTimeMs",
    4: "TopicDeletionRateAndTimeMs",
    5: "PartitionReassignmentRateAndTimeMs",
    6: "AutoLeaderBalanceRateAndTimeMs",
    7: "ManualLeaderBalanceRateAndTimeMs",
    8: "ControlledShutdownRateAndTimeMs",
    9: "IsrChangeRateAndTimeMs",
    10: "LeaderAndIsrResponseReceivedRateAndTimeMs",
    11: "LogDirChangeRateAndTimeMs",
    12: "ControllerShutdownRateAndTimeMs",
    13: "UncleanLeaderElectionEnableRateAndTimeMs",
    14: "TopicUncleanLeaderElectionEnableRateAndTimeMs",
    15: "ListPartitionReassignmentRateAndTimeMs",
    17: "UpdateFeaturesRateAndTimeMs",
}
STATS = "kafka_controller_controllerstats_"


class SlowStore(MemoryStore):
    """A store whose writes advance the clock."""

    def __init__(self, ensemble: MemoryEnsemble, pass_time: Callable[[], None]) -> None:
        super().__init__(ensemble.records, ensemble.states, ensemble.topics)
        self.pass_time = pass_time

    def perform(self, request: StoreRequest[Reply]) -> Reply:
        if isinstance(request, WriteStates):
            self.pass_time()
        return super().perform(request)


class Harness:
    """A controller of one topic ``t``: t-0 led by its second replica, t-1 with an ISR of its leader."""

    def __init__(self) -> None:
        specs = [PartitionSpec((1, 2), 2, (1, 2)), PartitionSpec((2, 1), 2, (2,))]
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": specs}, (1, 2)))
        self.clock = VirtualClock()
        store = SlowStore(self.ensemble, lambda: self.clock.advance(0.25))
        config = ControllerConfig({"unclean.leader.election.enable": True, "auto.leader.rebalance.enable": False})
        self.loop = ControllerLoop(ControllerCore(1, config, Selection({})), store, self.make_transport(), self.clock)
        self.loop.open()
        self.loop.run_until_idle()

    def make_transport(self) -> Transport:
        return RecordingTransport()


def test_every_gauge_has_its_exported_name() -> None:
    """controller 16: gauges."""
    metrics = Harness().loop.metrics()
    prefix = "kafka_controller_kafkacontroller_"
    assert {name.removeprefix(prefix) for name in metrics if name.startswith(prefix)} == set(GAUGES)
    assert metrics[f"{prefix}zkmigrationstate"] == 4
    assert (metrics[f"{prefix}activecontrollercount"], metrics[f"{prefix}preferredreplicaimbalancecount"]) == (1, 1)


def test_timers_have_kafkas_names() -> None:
    """controller 16: timers."""
    assert {int(state): name for state, name in TIMERS.items()} == TIMER_NAMES
    metrics = Harness().loop.metrics()
    assert {f"{STATS}{name.lower()}_count" for name in TIMER_NAMES.values()} <= set(metrics)
    assert f'{STATS}leaderelectionrateandtimems{{quantile="0.999"}}' in metrics


def test_timer_counts_only_events_of_its_state() -> None:
    """controller 1: rate timer."""
    harness = Harness()
    before = harness.loop.metrics()
    harness.loop.submit(lambda token: ElectionRequested(ElectionType.PREFERRED, (("t", 0),), token))
    harness.loop.run_until_idle()
    after = harness.loop.metrics()
    name = f"{STATS}manualleaderbalancerateandtimems"
    assert after[f"{name}_count"] == 1
    assert after[f'{name}{{quantile="0.50"}}'] == pytest.approx(250.0)
    changed_names = {metric for metric in after if metric.startswith(STATS) and after[metric] != before[metric]}
    assert {metric.partition("{")[0].removesuffix("_count") for metric in changed_names} == {name}


def test_event_without_timer_is_handled() -> None:
    loop = Harness().loop
    before = {name: value for name, value in loop.metrics().items() if name.startswith(STATS)}
    loop.queue.put(UpdateMetadataResponseReceived(1, ErrorCode.NONE))
    loop.run_until_idle()
    assert {name: value for name, value in loop.metrics().items() if name.startswith(STATS)} == before


def test_unclean_elections_are_counted_across_terms() -> None:
    """controller 16: UncleanLeaderElectionsPerSec."""
    harness = Harness()
    names = [f"{STATS}uncleanleaderelections_total", f"{STATS}uncleanleaderelectionspersec_total"]
    assert [harness.loop.metrics()[name] for name in names] == [0, 0]
    harness.ensemble.unregister_brokers([2])
    harness.loop.run_until_idle()
    assert [harness.loop.metrics()[name] for name in names] == [1, 1]
    harness.ensemble.drop_controller()
    harness.loop.run_until_idle()
    assert harness.loop.status().controller_epoch == 2
    assert [harness.loop.metrics()[name] for name in names] == [1, 1]


def test_event_queue() -> None:
    """controller 16: EventQueueSize and EventQueueTimeMs."""
    harness = Harness()
    harness.ensemble.unregister_brokers([2])
    name = "kafka_controller_controllereventmanager_eventqueue"
    assert harness.loop.metrics()[f"{name}size"] == 1
    harness.clock.advance(0.5)
    handled = harness.loop.metrics()[f"{name}timems_count"]
    harness.loop.run_until_idle()
    metrics = harness.loop.metrics()
    assert (metrics[f"{name}size"], metrics[f"{name}timems_count"]) == (0, handled + 1)
    assert metrics[f'{name}timems{{quantile="0.999"}}'] == pytest.approx(500.0)


CHANNELS = "kafka_controller_controllerchannelmanager_"


class SilentHarness(Harness):
    """Brokers 1 and 2 have request queues. Broker 2 does not respond, so that its second request waits."""

    def make_transport(self) -> Transport:
        self.brokers = EmbeddedBrokers(self.clock)
        self.brokers.respond_with(2, SILENT)
        return self.brokers


def test_queues_of_requests() -> None:
    harness = SilentHarness()
    metrics = harness.loop.metrics()
    assert metrics[f"{CHANNELS}totalqueuesize"] == 2
    sizes = {name: value for name, value in metrics.items() if name.startswith(f"{CHANNELS}queuesize")}
    assert sizes == {f'{CHANNELS}queuesize{{broker_id="1"}}': 0, f'{CHANNELS}queuesize{{broker_id="2"}}': 2}
    counts = [metrics[f'{CHANNELS}requestrateandqueuetimems_count{{broker_id="{broker}"}}'] for broker in (1, 2)]
    assert counts == [3, 1]


def test_queue_time_is_measured_per_broker() -> None:
    harness = SilentHarness()
    harness.clock.advance(2.0)
    harness.brokers.respond_with(2, "NONE")
    metrics = harness.loop.metrics()
    assert metrics[f"{CHANNELS}totalqueuesize"] == 0
    quantile = f'{CHANNELS}requestrateandqueuetimems{{broker_id="%d",quantile="0.999"}}'
    assert [metrics[quantile % broker] for broker in (1, 2)] == [0.0, pytest.approx(2_000.0)]


def test_queues_are_dropped_on_unregistration_and_resignation() -> None:
    harness = SilentHarness()
    harness.ensemble.unregister_brokers([2])
    harness.loop.run_until_idle()
    labelled = [name for name in harness.loop.metrics() if "broker_id=" in name]
    assert labelled
    assert not any('"2"' in name for name in labelled)
    harness.loop.process(ResignRequested())
    assert not any("broker_id=" in name for name in harness.loop.metrics())
    assert harness.loop.metrics()[f"{CHANNELS}totalqueuesize"] == 0


def test_gauges_are_zero_after_resignation() -> None:
    """controller 16: all 0 when not active."""
    harness = Harness()
    harness.loop.stop()
    metrics = harness.loop.metrics()
    gauges = {name: metrics[f"kafka_controller_kafkacontroller_{name}"] for name in GAUGES}
    assert {name: value for name, value in gauges.items() if value} == {"zkmigrationstate": 4}


# -- text


LABEL = r'\w+="(\\.|[^"\\\n])*"'
LINE = re.compile(rf"# TYPE \w+ (gauge|counter|summary)|[a-z_]+(\{{{LABEL}(,{LABEL})*\}})? [-+.e0-9]+")


def test_exposition_is_prometheus_format() -> None:
    metrics = SilentHarness().loop.metrics()
    lines = exposition(metrics).splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    samples = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    assert {name: float(value) for name, _, value in samples} == metrics
    families = [line.split()[2] for line in lines if line.startswith("#")]
    assert len(families) == len(set(families)), "each family stands in one place"


@pytest.mark.parametrize(
    "name, declaration",
    [
        ("a_total", "# TYPE a_total counter"),
        ('a{quantile="0.50"}', "# TYPE a summary"),
        ("a_count", "# TYPE a summary"),
        ('a_count{broker_id="1"}', "# TYPE a summary"),
        ('a{broker_id="1",quantile="0.50"}', "# TYPE a summary"),
        ("a_globaltopiccount", "# TYPE a_globaltopiccount gauge"),
        ('a_total{observer="x"}', "# TYPE a_total counter"),
    ],
)
def test_metric_type_follows_from_name(name: str, declaration: str) -> None:
    assert exposition({name: 1.5}) == f"{declaration}\n{name} 1.5\n"


def test_labels_are_escaped() -> None:
    class Malformed:
        name = 'a"b\\c\nd'

        def stepped(self, cause: object, effects: object) -> None:
            raise ValueError

    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1)]}, (1,)))
    controller = ControllerCore(1, ControllerConfig(), Selection({}))
    loop = ControllerLoop(
        controller, ensemble.connect(), RecordingTransport(), VirtualClock(), [(Malformed.name, Malformed())]
    )
    loop.open()
    loop.run_until_idle()
    (line,) = [line for line in exposition(loop.metrics()).splitlines() if line.startswith("kframe_observer")]
    assert line.startswith(r'kframe_observer_failures_total{observer="a\"b\\c\nd"} ')
    assert LINE.fullmatch(line)


# -- samples


def test_quarantined_znodes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness()
    assert harness.loop.metrics()["kframe_store_quarantined"] == 0
    monkeypatch.setattr(type(harness.loop.store), "quarantined", lambda _store: {"/brokers/ids/1": "no JSON"})
    assert harness.loop.metrics()["kframe_store_quarantined"] == 1
