"""The live page: values of controllers that run here or serve pages, what happens, and the writes of a demo."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest
from kframe_console.pages import live
from kframe_console.sources import controllers, monitor
from kframe_console.sources.controller_values import controller_content
from kframe_console.sources.controllers import ControllerReading, ServedControllers, embedded_reading
from kframe_console.sources.demo.kraft import KraftDemo
from kframe_console.sources.demo.source import DemoSource
from kframe_console.sources.monitor import ClusterMonitor
from kframe_console.sources.saved import no_cluster

import kframe
from kframe.cli.monitor import LISTENER, Monitor
from kframe.plugin import ConfigError
from kframe.plugin.cluster import ClusterState, Registration
from kframe.plugin.memory import EmbeddedBrokers, MemoryEnsemble, VirtualClock
from kframe.plugin.snapshot import Snapshot
from kframe.runtime.health import HealthStatus
from kframe.testing.waiting import wait_until
from verification.console.client import ConsoleClient, console_of


@contextmanager
def zookeeper_controllers() -> Iterator[list[tuple[kframe.Controller, str]]]:
    """An active controller and a stand-by, with the addresses of their pages."""
    ensemble = MemoryEnsemble.from_cluster(ClusterState())
    ensemble.register_brokers(Registration(broker_id, -1) for broker_id in (1, 2, 3))
    running = []
    for controller_id in (1000, 1001):
        pages = Monitor("127.0.0.1:0")
        controller = kframe.ControllerBuilder(
            controller_id, ensemble.connect(), EmbeddedBrokers(VirtualClock()), servers=[pages]
        ).build()
        controller.start()
        wait_until(lambda: controller.status().active_controller == 1000)  # noqa: B023 - it waits at once
        running.append((controller, f"http://{pages.addresses[LISTENER]}"))
    running[0][0].create_topics([kframe.NewTopic("orders", 6, 3)]).result(60)
    yield running
    for controller, _ in running:
        controller.stop()


def test_served_pages_have_the_values_of_the_controller() -> None:
    with zookeeper_controllers() as running:
        embedded = [embedded_reading(controller) for controller, _ in running]
        served = ServedControllers([address for _, address in running]).read_controllers()
    contents = [
        [msgspec.structs.replace(controller_content(reading), name="", latencies=[]) for reading in readings]
        for readings in (embedded, served)
    ]
    assert contents[0] == contents[1]
    active, standby = contents[1]
    assert (active.role, active.controller_id, active.controller_epoch, active.problems) == ("active", 1000, 1, [])
    assert (standby.role, standby.controller_id, standby.controller_epoch) == ("standby", 1001, None)
    assert active.gauges["globalpartitioncount"] == 6
    assert [queue.broker_id for queue in active.queues] == [1, 2, 3]
    assert "TopicChange" in {latency.event for latency in controller_content(served[0]).latencies}
    assert all(
        latency.count and latency.p99_ms >= latency.p50_ms for latency in controller_content(served[0]).latencies
    )


def test_kraft_controller_by_its_pages() -> None:
    pages = Monitor("127.0.0.1:0")
    with kframe.KraftControllerBuilder(3000, "kraft-memory:").build() as leader:
        leader.register_broker(1).result(60)
        quorum = leader.quorum
        healthy = HealthStatus((), dict(quorum.details()))
        pages.serve(leader.metrics, lambda: healthy, lambda: healthy)
        (reading,) = ServedControllers([f"http://{pages.addresses[LISTENER]}"]).read_controllers()
        pages.stop()
    content = controller_content(reading)
    assert (content.role, content.controller_id, content.gauges["activebrokercount"]) == ("active", 3000, 1)
    assert [latency.event for latency in content.latencies] == ["all events", "wait in the queue"]
    assert content.elections == {"unclean": 0, "from_elr": 0}


def test_shadow_counts_its_differences() -> None:
    pages = Monitor("127.0.0.1:0")
    counts = {"kframe_shadow_rounds_total": 7, "kframe_shadow_disagreements_total": 2}
    pages.serve(lambda: counts, lambda: HealthStatus((), {}), lambda: HealthStatus(("no known controller",), {}))
    (reading,) = ServedControllers([f"http://{pages.addresses[LISTENER]}"]).read_controllers()
    pages.stop()
    content = controller_content(reading)
    assert (content.role, content.shadow) == ("shadow", {"rounds": 7, "disagreements": 2})
    assert content.problems == ["no known controller"]


class _Hostile(http.server.BaseHTTPRequestHandler):
    body = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"name nonsense\n", b"[" * 100_000, b"1 1\n" * 1_000, b"{}", b'{"reasons": 1}']
)
def test_malformed_and_long_pages_are_problems(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Hostile, "body", body)
    monkeypatch.setattr(controllers, "_PAGE_BYTES_MAX", 1_000)
    with http.server.HTTPServer(("127.0.0.1", 0), _Hostile) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        (reading,) = ServedControllers([f"http://127.0.0.1:{server.server_port}"]).read_controllers()
        server.shutdown()
    content = controller_content(reading)
    assert content.role == "unreachable"
    assert "its pages cannot be read" in content.problems[0]


@pytest.mark.parametrize(
    "address", ["http://h", "https://h:1", "h:1", "http://h:1/metrics", "http://h:99999", "http://[:1", "", "file:///a"]
)
def test_addresses_of_pages(address: str) -> None:
    with pytest.raises(ConfigError, match=r"--metrics: found .*, expected http://HOST:PORT"):
        ServedControllers([address])


# -- What has happened.


class _Changing:
    """Controllers whose readings a test sets."""

    def __init__(self, *readings: ControllerReading) -> None:
        self.readings = [*readings]

    def read_controllers(self) -> list[ControllerReading]:
        return self.readings


BROKERS = "kafka_controller_kafkacontroller_activebrokercount"
OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"


def reading(active: bool, epoch: int, unclean: int = 0, disagreements: int | None = None) -> ControllerReading:
    metrics = {"kafka_controller_controllerstats_uncleanleaderelections_total": float(unclean)}
    if disagreements is not None:
        metrics["kframe_shadow_disagreements_total"] = disagreements
    details = {"active": active, "controller_id": 1, "controller_epoch": epoch, "events_waiting": 0}
    return ControllerReading("c", details, metrics)


@pytest.mark.parametrize(
    "before, after, events",
    [
        (reading(True, 1), reading(True, 1), []),
        (reading(False, -1), reading(True, 2), ["c is active in epoch 2"]),
        (reading(True, 2), reading(False, -1), ["c is a stand-by"]),
        (reading(True, 2), replace(reading(True, 2), is_reachable=False), ["c is unreachable in epoch 2"]),
        (
            replace(reading(True, 2), metrics={BROKERS: 3.0, OFFLINE: 0.0}),
            replace(reading(True, 2), metrics={BROKERS: 2.0, OFFLINE: 1_234.0}),
            ["partitions without a leader: 0, now 1,234", "active brokers: 3, now 2"],
        ),
        (reading(True, 2, unclean=1), reading(True, 2, unclean=4), ["3 of the elections unclean"]),
        (reading(False, -1, disagreements=0), reading(False, -1, disagreements=2), ["c has found 2 differences"]),
    ],
)
def test_events_of_controllers(before: ControllerReading, after: ControllerReading, events: list[str]) -> None:
    changing = _Changing(before)
    sampled = ClusterMonitor(no_cluster("none"), changing)
    sampled.sample()
    changing.readings = [after]
    sampled.sample()
    assert [event.text for event in sampled.state.events] == events


def test_change_right_after_the_start_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "PERIOD_S", 3600.0)
    changing = _Changing(reading(True, 1))
    sampled = ClusterMonitor(no_cluster("none"), changing)
    sampled.start()
    wait_until(lambda: bool(sampled.state.samples))
    sampled.close()
    changing.readings = [reading(True, 2)]
    sampled.sample()
    assert [event.text for event in sampled.state.events] == ["c is active in epoch 2"]


def test_samples_and_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    changing = _Changing()
    sampled = ClusterMonitor(no_cluster("none"), changing)
    for number in range(monitor.SAMPLES_MAX + 50):
        changing.readings = [reading(True, number)]
        sampled.sample()
    assert (len(sampled.state.samples), len(sampled.state.events)) == (monitor.SAMPLES_MAX, monitor.EVENTS_MAX)
    assert sampled.state.samples[-1].number == monitor.SAMPLES_MAX + 50


# -- The page.


@pytest.fixture
def console() -> Iterator[ConsoleClient]:
    source = DemoSource(KraftDemo(4), 24, step_s=0.01)
    with console_of(source, controllers=source) as console:
        wait_until(lambda: len(source.reading("").snapshot) == 24 and content(console).sample > 0)
        yield console


def content(console: ConsoleClient, after: int = 0) -> live.LiveContent:
    return msgspec.convert(console.json("/live", after=str(after)), live.LiveContent)


def test_page_shows_what_a_button_has_done(console: ConsoleClient) -> None:
    form = {"operation": "kill", "broker": "2", "topic": "", "partitions": "6"}
    answer = console.write("/demo", form)
    assert answer.json() == {"schema": "kframe.console-demo/v1", "result": "kill broker 2: requested"}
    wait_until(lambda: any(event.kind == "fencing" for event in content(console).events))
    shown = content(console)
    assert shown.demo is not None
    assert [broker.state for broker in shown.demo.brokers] == ["active", "fenced", "active", "active"]
    assert shown.controllers[0].gauges["fencedbrokercount"] == 1
    page = console.client.get("/live").text
    assert "broker 2 is fenced" in page
    assert 'class="tile state-fenced"' in page
    assert console.json("/brokers", fenced="yes")["total"] == 1
    fields = {**form, "operation": "start", "csrf_token": console.token("/live")}
    assert "Live" in console.client.post("/demo", data=fields).text, "without scripts"


def test_curves_continue_after_a_sample(console: ConsoleClient) -> None:
    wait_until(lambda: content(console).sample >= 2)
    whole = content(console)
    assert len(whole.curves.times) == whole.sample
    assert all(len(column) == whole.sample for column in whole.curves.p95_ms.values())
    assert set(whole.curves.p95_ms) == {"all events", "wait in the queue"}
    wait_until(lambda: content(console).sample > whole.sample)
    rest = content(console, whole.sample)
    assert len(rest.curves.times) == rest.sample - whole.sample
    assert rest.curves.times[0] > whole.curves.times[-1]


@pytest.mark.parametrize(
    "fields, status, message",
    [
        ({"operation": "kill", "broker": "2", "csrf_token": "0"}, 403, "found no valid token"),
        ({"operation": "burn", "broker": "2"}, 400, "operation: found 'burn'"),
        ({"operation": "kill", "broker": "9"}, 400, "broker: found 9, expected a broker from 1 to 4"),
        ({"operation": "kill", "broker": "x"}, 400, "broker: found 'x'"),
        ({"operation": "kill"}, 400, "broker: found None"),
        ({"operation": "resign"}, 400, "operation: found 'resign'"),
        ({"operation": "create_topic", "topic": "t", "partitions": "99999"}, 400, "partitions: found '99999'"),
        ({"operation": "create_topic", "topic": "t" * 300}, 400, "topic: found"),
        ({}, 400, "operation: found no value"),
    ],
)
def test_refused_writes(console: ConsoleClient, fields: dict[str, str], status: int, message: str) -> None:
    console.refused(console.write("/demo", fields), status, message)


def test_only_a_demo_can_be_broken(kraft_snapshot: Snapshot) -> None:
    with console_of(kraft_snapshot) as console:
        console.refused(console.write("/demo", {"operation": "roll"}), 400, "not that of kframe console --demo")
        assert "No running controller is known" in console.client.get("/live").text
        assert content(console).controllers == []


def test_console_without_cluster_has_the_live_page_alone() -> None:
    controllers = _Changing(reading(True, 5), replace(reading(False, -1), name="<b>", problems=("<i>",)))
    pages = (replace(live.live_page, path="/"),)
    with console_of(no_cluster("c"), pages=pages, controllers=controllers) as console:
        wait_until(lambda: bool(console.json("/")["controllers"]))
        page = console.client.get("/").text
        assert "<td>c</td><td>active</td>" in page
        assert "&lt;b&gt;" in page
        assert "<i>" not in page
        assert console.client.get("/partitions").status_code == 404
