"""``kframe controller run`` of a KRaft controller, as an operator starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS
from kframe_kraft.disk import read_quorum_state
from kframe_kraft.live.calls import describe_quorum
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.testing.waiting import wait_until
from tests.cli.running import kframe
from verification.kraft.scripted_quorum import connect
from verification.zookeeper.servers import free_ports

HOST, CLUSTER_ID = "127.0.0.1", "4L6g3nShT-eMCtK--X86sw"
WAIT_S = 60


@pytest.fixture
def port() -> int:
    """A free port."""
    (number,) = free_ports(1)
    return number


@pytest.fixture
def config(tmp_path: Path, port: int) -> Path:
    """The configuration of node 9, whose directory is formatted for a dynamic quorum."""
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=controller\nnode.id=9\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://{HOST}:{port}\nlog.dirs={tmp_path / 'logs'}\n"
    )
    result = kframe("kraft", "format", "--standalone", "-t", CLUSTER_ID, "-c", path)
    assert result.exit_code == 0, result.output
    return path


@contextmanager
def running(config: Path, *options: str, file_bytes: int = -1) -> Iterator[subprocess.Popen[str]]:
    """The command in a process, stopped at the end of the block. ``file_bytes``: its files cannot be larger."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({file_bytes}, {file_bytes}))"
    program = f"{limit}; from kframe.cli.app import main; main()"
    command = [sys.executable, "-c", program, "controller", "run", "--config", str(config), *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def leader(port: int) -> tuple[int, int] | None:
    """Leader and epoch of the quorum; None while there is none."""
    try:
        with closing(connect((HOST, port), reply_bytes_max=2**20)) as client:
            quorum = describe_quorum(client)
    except CONNECTION_ERRORS:
        return None
    return quorum.leader_id, quorum.leader_epoch


def stopped(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """The log of a process that a signal ends with exit code 0."""
    process.send_signal(number)
    _, log = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, log
    return log


def test_it_leads_until_a_signal_and_again_in_a_higher_epoch(config: Path, port: int) -> None:
    for epoch, number in ((1, signal.SIGTERM), (2, signal.SIGINT)):
        with running(config) as process:
            wait_until(lambda: leader(port) is not None or process.poll() is not None)
            assert leader(port) == (9, epoch)
            log = stopped(process, number)
        assert f"leads cluster {CLUSTER_ID} in epoch {epoch} as the only voter of a dynamic quorum" in log
        assert log.rstrip().endswith("[Controller id=9] stopped (kframe.controller)")
    state = read_quorum_state(config.parent / "logs" / LOG_DIRECTORY)
    assert state is not None
    assert state.leader_epoch == 2


def test_status_shows_the_quorum_and_the_cluster(config: Path, port: int) -> None:
    with running(config) as process:
        wait_until(lambda: leader(port) is not None or process.poll() is not None)
        result = kframe("controller", "status", f"kraft://{HOST}:{port}", "-o", "json")
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout)
        assert (document["controller_id"], document["controller_kind"], document["controller_epoch"]) == (9, "kraft", 1)
        assert (document["cluster_id"], document["topics"], document["offline_partitions"]) == (CLUSTER_ID, 0, 0)
        table = kframe("controller", "status", f"kraft://{HOST}:{port}")
        assert "KRaft controller 9, epoch 1" in table.stdout
        assert "not audited" in table.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("kafka://h:1",), "expected kraft://HOST:PORT"),
        (("kraft://h:1", "--quick"), "--quick and --zookeeper are for ZooKeeper mode"),
        (("--zookeeper", "h:1", "--command-config", "f"), "--command-config is for kraft:// URLs"),
    ],
)
def test_status_refuses_options_of_the_other_mode(words: tuple[str, ...], problem: str) -> None:
    result = kframe("controller", "status", *words)
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())


def page(port: int, path: str) -> tuple[int, str] | None:
    """Status and text of a page; None while it is not served."""
    connection = HTTPConnection(HOST, port)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except OSError:
        return None
    finally:
        connection.close()


def test_pages_show_metrics_health_and_status(config: Path) -> None:
    (pages,) = free_ports(1)
    with running(config, "--metrics-listen", str(pages)) as process:
        wait_until(lambda: (page(pages, "/readyz") or (0,))[0] == 200 or process.poll() is not None)
        for path in ("/healthz", "/readyz", "/status"):
            response = page(pages, path)
            assert response is not None
            status, document = response[0], json.loads(response[1])
            assert (status, document["controller_id"], document["controller_epoch"]) == (200, 9, 1)
        response = page(pages, "/metrics")
        assert response is not None
        assert "kafka_controller_kafkacontroller_activecontrollercount 1\n" in response[1]
        assert f"metrics on {HOST}:{pages}" in stopped(process)


def test_selectors_of_the_configuration_are_in_force(config: Path) -> None:
    config.write_text(
        f"{config.read_text()}kframe.leader.selectors=avoid-brokers\nkframe.leader.selectors.avoid-brokers.brokers=1\n"
    )
    (pages,) = free_ports(1)
    with running(config, "--metrics-listen", str(pages)) as process:
        wait_until(lambda: (page(pages, "/readyz") or (0,))[0] == 200 or process.poll() is not None)
        response = page(pages, "/status")
        assert response is not None
        (selector,) = json.loads(response[1])["selectors"]
        assert (selector["name"], selector["options"]) == ("avoid-brokers", {"brokers": "1"})
        assert "leader selectors: avoid-brokers (brokers=1)" in stopped(process)


def test_unknown_selector_is_refused(config: Path) -> None:
    with running(config, "--selector", "no-such") as process:
        _, log = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert "--selector: " in log
    assert "no-such" in log


def test_address_of_pages_that_is_in_use_is_refused(config: Path, port: int) -> None:
    with running(config, "--metrics-listen", str(port)) as process:
        _, log = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert f"--metrics-listen: found {HOST}:{port}" in log
    assert "Traceback" not in log


def test_second_process_on_the_directory_is_refused(config: Path, port: int) -> None:
    with running(config) as first:
        wait_until(lambda: leader(port) is not None or first.poll() is not None)
        (other,) = free_ports(1)
        second_config = config.with_name("second.properties")
        second_config.write_text(config.read_text().replace(str(port), str(other)))
        with running(second_config) as second:
            _, log = second.communicate(timeout=WAIT_S)
        assert second.returncode == 2
        assert str(config.parent / "logs") in log
        assert "Traceback" not in log
        stopped(first)


def test_it_ends_when_the_log_cannot_be_written(config: Path) -> None:
    config.write_text(f"{config.read_text()}metadata.max.idle.interval.ms=10\n")
    with running(config, file_bytes=4096) as process:
        _, log = process.communicate(timeout=WAIT_S)
    assert process.returncode not in (0, -signal.SIGXFSZ)
    assert "as the only voter" in log
    assert "node 9 no longer leads" in log
    assert "Traceback" not in log


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("process.roles=controller", "process.roles=broker,controller", "kframe is no broker"),
        ("node.id=9", "node.id=8", "node.id 9, expected 8"),
        ("/logs", "/other", "meta.properties"),
    ],
)
def test_start_is_refused(config: Path, before: str, after: str, problem: str) -> None:
    config.write_text(config.read_text().replace(before, after))
    with running(config) as process:
        _, log = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert problem in log
    assert "Traceback" not in log


@pytest.mark.parametrize("option", [("--zookeeper", "a:1"), ("--id", "5"), ("--takeover",), ("--no-insist",)])
def test_options_of_zookeeper_mode_are_refused(config: Path, option: tuple[str, ...]) -> None:
    result = kframe("controller", "run", "--config", config, *option)
    assert result.exit_code == 2
    assert f"{option[0]}" in result.stderr.replace("--insist", "--no-insist")
    assert "is for ZooKeeper mode" in result.stderr


def test_leading_a_quorum_loads_no_zookeeper_controller() -> None:
    modules = "kframe.cli.run_quorum, kframe_kraft.server.serving"
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "kframe_kraft.controller.loop" in loaded
    assert "kframe.runtime.controller" not in loaded
