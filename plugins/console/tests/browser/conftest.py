from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kframe_console.application import application
from kframe_console.command import example
from kframe_console.sources.live import LiveSource

from kframe.plugin.snapshot import Snapshot
from tests.tools import ToolMissing
from verification.console.browser import Open, chromium, visiting
from verification.console.doubles import FakeGroups, FakeReader, put_fleet
from verification.console.hands import HANDS, HandsOf
from verification.console.running import running_console
from verification.console.served import served


# Playwright runs an event loop in this thread as long as it is open, so it does not outlive the tests of a file.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(chromium())
        except ToolMissing as missing:
            pytest.skip(str(missing))
        yield running


@pytest.fixture
def visit_port(browser: Any) -> Iterator[Open]:
    """Opens a console on a port of this machine."""
    with ExitStack() as stack:
        yield lambda port, **options: stack.enter_context(visiting(browser, port, **options))


@pytest.fixture(scope="module")
def zookeeper_port() -> Iterator[int]:
    """A console of six brokers, of which the fifth is dead."""
    snapshot = example().parent / "kafka-3.9.1-six-brokers" / "broker-4-dead.zookeeper.jsonl.gz"
    with running_console(snapshot) as console:
        yield console.port


@pytest.fixture(scope="module")
def healthy_port() -> Iterator[int]:
    """A console of the six brokers when all were alive."""
    with running_console(example().parent / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz") as console:
        yield console.port


@pytest.fixture(scope="module")
def kraft_port() -> Iterator[int]:
    """A console of a metadata log of three brokers with its history."""
    with running_console(example()) as console:
        yield console.port


@pytest.fixture(scope="module")
def fleet_port(
    tmp_path_factory: pytest.TempPathFactory, kraft_snapshot: Snapshot, zookeeper_snapshot: Snapshot
) -> Iterator[int]:
    """A console of a fleet: a cluster in each mode, and one that could not be ingested."""
    clusters = {"east": zookeeper_snapshot, "west=1": kraft_snapshot, "refused": None}
    with running_console(put_fleet(tmp_path_factory.mktemp("parquet") / "fleet", clusters)) as console:
        yield console.port


@pytest.fixture(scope="module")
def groups_port(kraft_snapshot: Snapshot) -> Iterator[int]:
    """A console of a live cluster whose topics have consumer groups."""
    source = LiveSource("kafka://b:9092", FakeReader(kraft_snapshot), lambda snapshot: snapshot, 3600, FakeGroups())
    with served(application(source)) as port:
        yield port


@pytest.fixture(params=HANDS)
def hands_of(request: pytest.FixtureRequest) -> HandsOf:
    return HANDS[request.param]
