from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kframe_console.application import application
from kframe_console.command import example
from kframe_console.pages.page import ConsolePage
from kframe_console.sources.saved import SavedSource
from starlette.testclient import TestClient

from kframe.plugin.snapshot import Snapshot, read_snapshot

EXAMPLES = example().parent


@pytest.fixture(scope="session")
def kraft_snapshot() -> Snapshot:
    return read_snapshot(example())


@pytest.fixture(scope="session")
def zookeeper_snapshot() -> Snapshot:
    return read_snapshot(Path(EXAMPLES / "kafka-3.9.1-six-brokers" / "broker-4-dead.zookeeper.jsonl.gz"))


@pytest.fixture(scope="session", params=["kraft", "zookeeper"])
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    snapshot: Snapshot = request.getfixturevalue(f"{request.param}_snapshot")
    return snapshot


@pytest.fixture(scope="session")
def question() -> Callable[[ConsolePage], dict[str, str]]:
    """Parameters for a page that needs some."""
    return lambda page: {"operation": "fail", "brokers": "1"} if page.path.startswith("/whatif") else {}


@pytest.fixture
def client(snapshot: Snapshot) -> Iterator[TestClient]:
    with TestClient(application(SavedSource.of(snapshot)), base_url="http://localhost") as client:
        yield client
