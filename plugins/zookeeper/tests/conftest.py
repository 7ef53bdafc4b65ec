"""ZooKeeper servers, each started on first use and stopped after the last test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture
from kframe_zookeeper.session.settings import settings_of_url

from verification.zookeeper.certificates import Authority
from verification.zookeeper.commands import PASSWORD, ControllerRun, Start
from verification.zookeeper.proxy import Proxy
from verification.zookeeper.servers import HOST, Ensemble, ServerHandle, ServerOptions, missing, running
from verification.zookeeper.sessions import FixtureFactory, fixture_factory, load_dump, session

EXAMPLE_DUMP = Path(__file__).parents[3] / "examples/clusters/kafka-3.9.1-six-brokers/healthy.zookeeper.jsonl.gz"
USERS = {"kafka": "its secret", "other": "another"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the servers. Tests that use it need real servers."""
    if lacking := missing():
        pytest.skip(lacking)
    return tmp_path_factory.mktemp("zookeeper")


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of all server and client certificates."""
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def zookeeper(folder: Path) -> Iterator[ServerHandle]:
    """A server without authentication. Each test uses its own chroot and leaves the server running."""
    with running(ServerHandle(folder / "open", ServerOptions())) as server:
        yield server


@pytest.fixture
def own_zookeeper(folder: Path, tmp_path: Path) -> Iterator[ServerHandle]:
    """A server for one test. The test may stop, kill or freeze it."""
    with running(ServerHandle(tmp_path / "own", ServerOptions())) as server:
        yield server


@pytest.fixture(scope="session")
def tls_zookeeper(folder: Path, authority: Authority) -> Iterator[ServerHandle]:
    """A server with a second port for TLS. Its certificate is valid for 127.0.0.1 and localhost."""
    identity = authority.issue("server", HOST, "localhost")
    with running(ServerHandle(folder / "tls", ServerOptions(identity=identity))) as server:
        yield server


@pytest.fixture(scope="session")
def sasl_zookeeper(folder: Path) -> Iterator[ServerHandle]:
    """A server that accepts USERS only."""
    with running(ServerHandle(folder / "sasl", ServerOptions(users=USERS))) as server:
        yield server


@pytest.fixture(scope="session")
def ensemble(folder: Path) -> Iterator[Ensemble]:
    """Three servers. A test may stop some of them, and calls start() afterwards."""
    with running(Ensemble(folder / "ensemble", ServerOptions())) as server:
        yield server


@pytest.fixture(scope="session")
def secured_ensemble(folder: Path, authority: Authority) -> Iterator[Ensemble]:
    """Three servers that accept USERS only, with ports for TLS."""
    identity = authority.issue("ensemble", HOST)
    with running(Ensemble(folder / "secured", ServerOptions(identity=identity, users=USERS))) as server:
        yield server


@pytest.fixture
def make_fixture(zookeeper: ServerHandle) -> Iterator[FixtureFactory]:
    with fixture_factory(settings_of_url(f"zookeeper://{zookeeper.address}"), ZooKeeperFixture) as make:
        yield make


@pytest.fixture
def proxy(zookeeper: ServerHandle) -> Iterator[Proxy]:
    with Proxy(zookeeper.address) as server_proxy:
        yield server_proxy


@pytest.fixture
def address(zookeeper: ServerHandle) -> str:
    """HOST:PORT/CHROOT of the example cluster, which has no controller."""
    address = f"{zookeeper.address}/cluster-{uuid.uuid4()}"
    load_dump(address, EXAMPLE_DUMP)
    return address


@pytest.fixture
def client(address: str) -> Iterator[KazooClient]:
    """A session in the chroot of the example cluster."""
    with session(address) as client:
        yield client


@pytest.fixture
def start(address: str, tmp_path: Path) -> Iterator[Start]:
    """Start ``kframe controller run`` with an id and further arguments."""
    runs: list[ControllerRun] = []

    def start(controller_id: int, *arguments: str, timeout_ms: int = 20_000) -> ControllerRun:
        folder = tmp_path / f"run-{len(runs)}"
        run = ControllerRun(controller_id, address, folder, *arguments, timeout_ms=timeout_ms)
        runs.append(run)
        run.start()
        return run

    yield start
    for run in runs:
        run.kill()
        assert PASSWORD not in run.log
