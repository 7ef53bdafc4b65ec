"""``kframe controller run``: how it reads its configuration, its warnings, and its logging."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kframe.cli.logs import CONTROLLER_LOG, STATE_CHANGE_LOG, start_logs
from kframe.cli.output import BadInput
from kframe.cli.run import RECORDING, WIRE, NetworkSettings, assemble, network_settings, own_id, risks, summary
from kframe.embedded import MemoryEnsemble
from kframe.errors import ConfigError
from kframe.plugin import ServerSpec, TransportSpec, hookimpl
from kframe.registry.registry import Registry, build_registry
from kframe.settings.settings import Setting, Settings
from kframe.testing.clusters import cluster_of, healthy


def settings(values: Mapping[str, str]) -> Settings:
    return Settings({key: Setting(value, f"server.properties: {key}") for key, value in values.items()})


def registry(*schemes: type) -> Registry:
    """Return kframe's own plugins, and a plugin for the scheme kafka."""

    class Plugin:
        @hookimpl
        def kframe_transports(self) -> list[TransportSpec]:
            return [TransportSpec("kafka", "nowhere:x", "A test's.")] if TransportSpec in schemes else []

        @hookimpl
        def kframe_servers(self) -> list[ServerSpec]:
            return [ServerSpec("kafka", "nowhere:x", "A test's.")] if ServerSpec in schemes else []

    return build_registry(extra=[Plugin()], allowed=())


@pytest.mark.parametrize(
    ("values", "expected"),
    [({"broker.id": "7"}, 7), ({"node.id": " 8 "}, 8), ({"node.id": "8", "broker.id": "7"}, 7)],
)
def test_own_id(values: dict[str, str], expected: int) -> None:
    assert own_id(settings(values)) == expected


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, BadInput),
        ({"broker.id": "-1"}, ConfigError),
        ({"broker.id": "x"}, ConfigError),
        ({"node.id": "2147483648"}, ConfigError),
    ],
)
def test_missing_or_invalid_ids_are_refused(values: dict[str, str], problem: type[Exception]) -> None:
    with pytest.raises(problem):
        own_id(settings(values))


@pytest.mark.parametrize(
    ("schemes", "requested", "expected"),
    [
        ((), (None, ()), (RECORDING, ())),
        ((TransportSpec,), (None, ()), (WIRE, ())),
        ((TransportSpec, ServerSpec), (None, ()), (WIRE, (WIRE,))),
        ((TransportSpec, ServerSpec), (None, ("other:",)), (WIRE, ("other:",))),
        ((TransportSpec, ServerSpec), ("counting:", ()), ("counting:", ())),
        ((TransportSpec, ServerSpec), ("counting:", ("kafka:",)), ("counting:", ("kafka:",))),
    ],
)
def test_kafka_protocol_is_default_transport_and_server(
    schemes: tuple[type, ...], requested: tuple[str | None, tuple[str, ...]], expected: tuple[str, tuple[str, ...]]
) -> None:
    network = network_settings(registry(*schemes), *requested, None)
    assert (network.transport, network.servers) == expected


@pytest.mark.parametrize("never", [None, "1001", "1000,1001"])
def test_own_id_is_never_assigned_replicas(never: str | None) -> None:
    """The controller adds its own id to the ids in the settings."""
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1)]}, (1, 2)))
    values = {"broker.id": "1000", **({} if never is None else {"kframe.never.replicas": never})}
    controller = assemble(settings(values), ensemble.connect(), NetworkSettings(RECORDING, (), None), registry())
    controller.open()
    controller.run_until_idle()
    config = controller._loop.controller.config
    assert config["kframe.never.replicas"] == {1000} | ({1001} if never else set())
    controller.stop()


@pytest.mark.parametrize(
    ("never", "insist", "first"),
    [
        (None, None, False),
        ("1000", None, False),
        ("1001", None, True),
        ("1000,1001", None, True),
        ("1001", False, False),
        (None, True, True),
    ],
)
def test_instances_come_before_brokers_with_several_instances(
    never: str | None, insist: bool | None, first: bool
) -> None:
    ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1)]}, (1, 2)))
    given = {"broker.id": "1000", **({} if never is None else {"kframe.never.replicas": never})}
    network = NetworkSettings(RECORDING, (), None)
    controller = assemble(settings(given), ensemble.connect(), network, registry(), insist=insist)
    assert (controller._loop._contention is not None) is first
    controller.stop()


WIRED = NetworkSettings(WIRE, (WIRE,), None)
SAFE = {"broker.id": "1000", "listeners": "INSIDE://h:9092", "listener.security.protocol.map": "INSIDE:SSL"}


@pytest.mark.parametrize(
    ("changed", "network", "brokers", "warnings"),
    [
        pytest.param({}, WIRED, (1, 2), [], id="nothing"),
        pytest.param({}, NetworkSettings(WIRE, (WIRE,), "9108"), (1, 2), [], id="metrics on this machine"),
        pytest.param({}, WIRED, (1, 1000), ["registered broker"], id="a broker's id"),
        pytest.param(
            {"broker.id": "1001"}, WIRED, (), ["reserved.broker.max.id=1000"], id="an id that may be given to a broker"
        ),
        pytest.param(
            {"broker.id": "1001", "reserved.broker.max.id": "2000"}, WIRED, (), [], id="an id that is reserved"
        ),
        pytest.param({"listeners": "PLAINTEXT://h:1"}, WIRED, (), ["no TLS"], id="plain"),
        pytest.param(
            {"listener.security.protocol.map": "A:SSL, inside:SASL_PLAINTEXT"},
            WIRED,
            (),
            ["no TLS"],
            id="plain by another name",
        ),
        pytest.param({}, NetworkSettings(RECORDING, (), None), (), ["no request reaches a broker"], id="recording"),
        pytest.param({}, NetworkSettings(WIRE, (), None), (), ["no server"], id="no server"),
        pytest.param({}, NetworkSettings(WIRE, (WIRE,), "0.0.0.0:9108"), (), ["no passwords"], id="public metrics"),
    ],
)
def test_risks(
    changed: dict[str, str], network: NetworkSettings, brokers: tuple[int, ...], warnings: list[str]
) -> None:
    messages = list(risks(settings({**SAFE, **changed}), network, brokers))
    assert len(messages) == len(warnings)
    assert all(part in line for part, line in zip(warnings, messages, strict=True))


def test_summary() -> None:
    """The startup line: id, address and protocol."""
    given = settings(
        {"broker.id": "1000", "zookeeper.connect": "zk:2181/kafka", "inter.broker.protocol.version": "2.8"}
    )
    ensemble = MemoryEnsemble.from_cluster(cluster_of({}, (1,)))
    network = NetworkSettings(RECORDING, (), "0")
    controller = assemble(given, ensemble.connect(), network, registry())
    with controller:
        line = summary(given, controller, network)
    assert re.fullmatch(
        r"kframe \S+ is a candidate for controller as 1000 at zk:2181/kafka, transport recording:, "
        r"listeners METRICS on 127\.0\.0\.1:\d+, inter-broker protocol 2\.8.*, listener PLAINTEXT, "
        r"leader selectors Kafka's rule for all elections",
        line,
    )


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        ("DEBUG", ["DEBUG", "INFO", "WARN", "ERROR", "FATAL"]),
        ("INFO", ["INFO", "WARN", "ERROR", "FATAL"]),
        ("WARN", ["WARN", "ERROR", "FATAL"]),
        ("ERROR", ["ERROR", "FATAL"]),
    ],
)
def test_log_levels_are_spelled_as_in_kafka(tmp_path: Path, level: str, logged: list[str]) -> None:
    start_logs(7, tmp_path, level)
    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        logging.getLogger("kframe.controller").log(number, "said\nin lines")
    lines = (tmp_path / CONTROLLER_LOG).read_text().splitlines()
    pattern = (
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (\w+) \[Controller id=7\] said\\nin lines \(kframe.controller\)"
    )
    assert [match[1] for line in lines if (match := re.fullmatch(pattern, line))] == logged
    assert len(lines) == len(logged)


@pytest.mark.parametrize(
    ("message", "written"),
    [
        ("stopped", "[Controller id=7] stopped"),
        ("[Controller id=7 epoch=3] x", "[Controller id=7 epoch=3] x"),
        ("[Topic Deletion Manager 7] x", "[Topic Deletion Manager 7] x"),
    ],
)
@pytest.mark.parametrize("logger", ["kframe.controller", "kframe.kafka_wire", "kframe.zookeeper"])
def test_log_line_names_controller_once(tmp_path: Path, logger: str, message: str, written: str) -> None:
    start_logs(7, tmp_path)
    logging.getLogger(logger).info(message)
    assert (tmp_path / CONTROLLER_LOG).read_text().endswith(f"] INFO {written} ({logger})\n")


def test_moved_log_files_are_created_again(tmp_path: Path) -> None:
    """Rename the file as logrotate does, without a signal."""
    start_logs(7, tmp_path)
    for name, logger in ((CONTROLLER_LOG, "kframe.controller"), (STATE_CHANGE_LOG, "kframe.statechange")):
        logging.getLogger(logger).info("before")
        (tmp_path / name).rename(tmp_path / f"{name}.1")
        logging.getLogger(logger).info("after")
        assert "before" in (tmp_path / f"{name}.1").read_text()
        assert [line.split("] ", 2)[2] for line in (tmp_path / name).read_text().splitlines()] == [f"after ({logger})"]


#: A command in which a library issues a warning. With an argument it starts the logs as ``controller run`` does.
WARNS = """
import sys, warnings
import click
from kframe.cli import app, logs

@app.cli.command("warn")
@click.argument("logged", default="")
def warn(logged):
    if logged:
        logs.start_logs(7, None)
    warnings.warn("this is old")

app.main()
"""


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["warn"], ""),
        (["warn", "yes"], r"\[\d{4}-.+\] WARN \[Controller id=7\] .+UserWarning: this is old.+ \(py\.warnings\)\n"),
        (["-v", "warn"], r"WARNING py\.warnings: .+UserWarning: this is old\s+"),
    ],
    ids=["a command", "a controller", "verbose"],
)
def test_library_warnings_are_logged_not_printed(arguments: list[str], printed: str) -> None:
    command = [sys.executable, "-c", WARNS, *arguments]
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed.stdout == ""
    assert re.fullmatch(printed, completed.stderr), completed.stderr
