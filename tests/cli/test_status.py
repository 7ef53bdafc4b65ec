"""``kframe controller status``: first line, counts, and equal content in data and table output."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from kframe.cli.monitor import LISTENER, Monitor
from kframe.cli.selectors import ChosenSelectorRecord
from kframe.cli.status import Page, fetch_page, report, show
from kframe.embedded import MemoryEnsemble, RecordingTransport
from kframe.model.config import ControllerConfig
from kframe.ports.live_cluster import ClusterStatus, LiveCounts
from kframe.runtime.builder import ControllerBuilder
from kframe.snapshot import generate
from kframe.snapshot.instances import Instance
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy

ACTIVE = Instance(1000, "h1", 11, 0, "token-a")
STANDBY = Instance(1001, "h2", 12, 0, "token-b")
SIX = (1, 2, 3, 4, 5, 6)
SELECTOR = ChosenSelectorRecord("most-racks", ["OFFLINE"], {"racks": 3})


def counts(**changed: Any) -> LiveCounts:
    """Five partitions: healthy, offline, under-replicated, under min ISR, and under reassignment."""
    topics = {
        "t": [
            healthy(1, 2),
            PartitionSpec((7, 8), leader=None, isr=(7,)),
            PartitionSpec((1, 2, 3), 1, (1, 2)),
            PartitionSpec((1, 2), 1, (1,)),
            PartitionSpec((1, 2, 3), 1, (1, 2), adding_replicas=(3,)),
        ],
        "going": [PartitionSpec((7, 8), leader=None, isr=(7,))],
    }
    cluster = cluster_of(topics, SIX)
    index = cluster.topics.find("going")
    assert index is not None
    cluster.topics.deleting[index] = 1
    defaults = LiveCounts(cluster, 1, frozenset({("t", 4), ("t", 0)}), {"min.insync.replicas": "2"}, {"/a": "no JSON"})
    return replace(defaults, **changed)


def status(**changed: Any) -> ClusterStatus:
    defaults = ClusterStatus(
        1000,
        5,
        0,
        "the-id",
        (1, 2),
        2,
        6,
        warnings=("w1", "w2", "w3", "w4"),
        kind="kframe",
        instance=ACTIVE,
        standbys=(STANDBY,),
        counts=counts(),
    )
    return replace(defaults, **changed)


def shown_lines(
    capsys: pytest.CaptureFixture[str], status: ClusterStatus, page: Page, output: str = "table"
) -> list[str]:
    show(report(status, page, ControllerConfig()), output)
    return capsys.readouterr().out.splitlines()


def test_first_lines_name_controller_and_standbys(capsys: pytest.CaptureFixture[str]) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({}, "kframe 1000 on h1 pid 11, epoch 5, since 1970-01-01T00:00:00.000+00:00", "1001 on h2 pid 12"),
        (
            {"kind": "broker", "controller_id": 2, "instance": None, "standbys": ()},
            "broker 2, epoch 5, since 1970-01-01T00:00:00.000+00:00",
            "none",
        ),
        (
            {"kind": "kraft", "controller_id": 3000, "instance": None, "elected_ms": None, "standbys": ()},
            "KRaft controller 3000, epoch 5, since -",
            "none",
        ),
        (
            {"kind": "unknown", "controller_id": None, "instance": None, "elected_ms": None},
            "-, not a registered broker or instance of kframe, epoch 5, since -",
            "1001 on h2 pid 12",
        ),
        (
            {"kind": None, "controller_id": None, "instance": None, "elected_ms": None},
            "none (epoch 5)",
            "1001 on h2 pid 12",
        ),
    ]
    for changed, *texts in cases:
        lines = [line.partition(" ") for line in shown_lines(capsys, status(**changed), Page())[:2]]
        expected = dict(zip(("controller", "standbys"), texts, strict=True))
        assert {name: text.strip() for name, _, text in lines} == expected


def test_partitions_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown_lines(capsys, status(), Page({"1": 0, "2": 3}, {}))
    fields = {line[:27].strip(): line[27:].strip() for line in lines}
    assert {
        name: fields[name]
        for name in (
            "offline partitions",
            "under replicated partitions",
            "under min isr partitions",
            "topics to delete",
            "reassigning partitions",
            "queues",
            "quarantined",
        )
    } == {
        "offline partitions": "1",
        "under replicated partitions": "3",
        "under min isr partitions": "2",
        "topics to delete": "1",
        "reassigning partitions": "2",
        "queues": "broker 1: 0, broker 2: 3",
        "quarantined": "0",
    }


def test_partitions_of_a_captured_cluster_are_counted() -> None:
    snapshot = generate(6, 3, 2, seed=1)
    document = report(ClusterStatus.of(snapshot, 5, "kraft"), Page(), ControllerConfig())
    assert (document.partitions, document.offline_partitions, document.reassigning_partitions) == (6, 0, 0)
    assert not document.quick


@pytest.mark.parametrize(
    ("selectors", "line"),
    [
        (None, "unknown"),
        ([], "Kafka's rule for all elections"),
        ([SELECTOR], "most-racks (racks=3) for OFFLINE"),
        (
            [SELECTOR, ChosenSelectorRecord("b", ["REASSIGN", "PREFERRED"], {})],
            "most-racks (racks=3) for OFFLINE; b for REASSIGN, PREFERRED",
        ),
    ],
)
def test_selectors_in_force_are_named(
    capsys: pytest.CaptureFixture[str], selectors: list[ChosenSelectorRecord] | None, line: str
) -> None:
    show(report(status(), Page({}, {}, selectors), ControllerConfig()), "table")
    lines = capsys.readouterr().out.splitlines()
    assert [text.removeprefix("leader selectors").strip() for text in lines if text.startswith("leader sel")] == [line]


def test_invalid_cluster_default_is_ignored() -> None:
    result = status(counts=counts(broker_defaults={"min.insync.replicas": "many"}))
    assert report(result, Page(), ControllerConfig()).under_min_isr_partitions == 1


def test_security_notes_are_one_line_unless_wide(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown_lines(capsys, status(), Page())
    assert [line.partition(" ")[2].strip() for line in lines if line.startswith("security")] == [
        "w1; w2; w3; and 1 more note (-o wide shows all)"
    ]
    assert "  w4" not in lines
    assert shown_lines(capsys, status(), Page(), "wide")[-4:] == ["  w1", "  w2", "  w3", "  w4"]
    assert "security" in shown_lines(capsys, status(warnings=()), Page())[-3]


@pytest.mark.parametrize("quick", [False, True])
def test_json_status_has_all_table_fields(capsys: pytest.CaptureFixture[str], quick: bool) -> None:
    result = status(counts=None, partitions=None) if quick else status()
    document = json.loads("\n".join(shown_lines(capsys, result, Page(problem="no pages"), "json")))
    lists = {"quarantined": [] if quick else [{"path": "/a", "reason": "no JSON"}], "unreadable": []}
    figures = (None,) * 5 if quick else (1, 3, 2, 1, 2)
    assert document == {
        "schema": "kframe.controller-status/v1",
        "controller_id": 1000,
        "controller_kind": "kframe",
        "controller_host": "h1",
        "controller_pid": 11,
        "controller_epoch": 5,
        "elected": "1970-01-01T00:00:00.000+00:00",
        "standbys": [{"id": 1001, "host": "h2", "pid": 12, "started": "1970-01-01T00:00:00.000+00:00"}],
        "cluster_id": "the-id",
        "brokers": [1, 2],
        "topics": 2,
        "partitions": None if quick else 6,
        "offline_partitions": figures[0],
        "under_replicated_partitions": figures[1],
        "under_min_isr_partitions": figures[2],
        "topics_to_delete": figures[3],
        "reassigning_partitions": figures[4],
        "queues": None,
        "queues_unknown": "no pages",
        "selectors": None,
        "quick": quick,
        "quarantined_by": "storage",
        **lists,
        "warnings": ["w1", "w2", "w3", "w4"],
    }


# -- the controller's metrics page


def test_queues_and_quarantined_records_come_from_page() -> None:
    instance = Instance.of_this_process(1000)
    monitor = Monitor("0", instance.token, [SELECTOR])
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2)]}, (1, 2)))
    builder = ControllerBuilder(1000, ensemble.connect(), RecordingTransport(), servers=[monitor])
    with builder.build() as controller:
        controller.inspect(lambda _cluster: None).result(timeout=30)
        result = status(instance=replace(instance, metrics=monitor.addresses[LISTENER]))
        assert fetch_page(result) == Page(
            {str(broker_id): 0 for broker_id in controller.transport.queues()}, {}, [SELECTOR]
        )
        assert report(result, fetch_page(result), ControllerConfig()).quarantined_by == "controller"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"kind": None, "instance": None}, "there is no controller"),
        ({"kind": "broker", "instance": None}, "the controller is no instance of kframe"),
        ({}, "the controller serves no pages (--metrics-listen)"),
        ({"instance": replace(ACTIVE, metrics="127.0.0.1:1")}, "it is served on h1 alone"),
        ({"instance": replace(ACTIVE, metrics="nonsense")}, "the page at nonsense cannot be read"),
    ],
)
def test_unreachable_status_page_is_reported(changed: dict[str, Any], problem: str) -> None:
    page = fetch_page(status(**changed))
    assert (page.queues, page.quarantined) == (None, None)
    assert page.problem is not None
    assert problem in page.problem


class _Handler(BaseHTTPRequestHandler):
    response = (200, b"")

    def do_GET(self) -> None:
        status, body = self.response
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing."""


@pytest.fixture
def other_server() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ((404, b""), "status 404"),
        ((200, b"not JSON"), "Expecting value"),
        ((200, b"[]"), "no attribute"),
        ((200, b'{"token":"another"}'), "another process serves it"),
        ((200, b'{"token":"TOKEN"}'), "queues"),
        ((200, b'{"token":"TOKEN","queues":{"x":1},"quarantined":{}}'), "invalid literal"),
        ((200, b'{"token":"TOKEN","queues":[],"quarantined":{}}'), "no attribute"),
    ],
)
def test_invalid_response_is_not_a_status_page(
    other_server: HTTPServer, response: tuple[int, bytes], problem: str
) -> None:
    instance = Instance.of_this_process(1000)
    _Handler.response = response[0], response[1].replace(b"TOKEN", instance.token.encode())
    page = fetch_page(status(instance=replace(instance, metrics=f"127.0.0.1:{other_server.server_port}")))
    assert page.queues is None
    assert page.problem is not None
    assert problem in page.problem
