"""Commands, keys and addresses of Containerfile, compose file and unit are those of kframe."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from kframe.cli.app import cli
from kframe.cli.monitor import parse_address
from kframe.model.config import NEVER_REPLICAS
from kframe.settings.properties import read_properties
from kframe.settings.settings import KNOWN, Settings, environment_name
from tests.architecture.source import ROOT

DEPLOY: Final = ROOT / "deploy"
CONTAINERFILE: Final = (DEPLOY / "Containerfile").read_text()
COMPOSE: Final = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
UNIT: Final = (DEPLOY / "systemd" / "kframe.service").read_text()
EXAMPLE: Final = DEPLOY / "systemd" / "server.properties"
INSTALLED: Final = "/etc/kframe/server.properties"


def instruction(name: str) -> list[str]:
    """Return the words of an instruction in exec form. An indented CMD belongs to HEALTHCHECK."""
    (words,) = re.findall(rf"^{name} (\[.*\])$", CONTAINERFILE, re.MULTILINE)
    result: list[str] = json.loads(words)
    return result


def unit_command() -> list[str]:
    """Return the words of ExecStart."""
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    return shlex.split(line)


COMMANDS: Final = {
    "Containerfile": [*instruction("ENTRYPOINT"), *instruction("CMD")],
    "compose.yaml": ["kframe", *COMPOSE["services"]["kframe"]["command"]],
    "kframe.service": [Path(unit_command()[0]).name, *unit_command()[1:]],
}


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Parse the arguments of a ``kframe`` command and return its parameters. Raises click.UsageError."""
    name, *arguments = [str(EXAMPLE) if word == INSTALLED else word for word in words]
    command: click.Command = cli
    context = None
    while isinstance(command, click.Group):
        context = click.Context(command, parent=context, info_name=name)
        name = arguments.pop(0)
        subcommand = command.get_command(context, name)
        if subcommand is None:
            raise click.UsageError(f"no command {name}")
        command = subcommand
    return command.make_context(name, arguments, parent=context).params


@pytest.mark.parametrize("source", COMMANDS)
def test_commands_parse(source: str) -> None:
    assert COMMANDS[source][:3] == ["kframe", "controller", "run"]
    address = parse(COMMANDS[source])["metrics_listen"]
    host, port = parse_address(address)
    assert port == 9108
    assert host == ("127.0.0.1" if source == "kframe.service" else "0.0.0.0")


def test_health_check_requests_a_served_page() -> None:
    script = instruction("    CMD")[-1]
    assert "http://127.0.0.1:9108/healthz" in script
    compile(script, "HEALTHCHECK", "exec")


def test_example_file_has_known_keys_and_valid_values() -> None:
    keys = {entry.key for entry in read_properties(EXAMPLE)}
    assert keys <= KNOWN
    config = Settings.gather({}, {}, EXAMPLE).controller_config()
    assert config[NEVER_REPLICAS] == {1000, 1001}


def test_environment_variables_match_keys() -> None:
    variables = set(COMPOSE["services"]["kframe"]["environment"])
    assert variables
    assert variables <= {environment_name(key) for key in KNOWN}


def test_services_run_with_minimal_privileges() -> None:
    for name, service in COMPOSE["services"].items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
    assert COMPOSE["services"]["kframe"]["read_only"] is True
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert re.search(r"^USER 10001:10001$", CONTAINERFILE, re.MULTILINE)


def test_brokers_differ_only_by_id_and_address() -> None:
    brokers = {name: service for name, service in COMPOSE["services"].items() if name.startswith("broker")}
    assert sorted(brokers) == ["broker1", "broker2", "broker3"]
    for name, service in brokers.items():
        overrides = set(service["command"][3::2])
        assert overrides == {f"broker.id={name[-1]}", f"advertised.listeners=PLAINTEXT://{name}:9092"}
    dependencies = COMPOSE["services"]["kframe"]["depends_on"]
    assert dependencies == {name: {"condition": "service_healthy"} for name in brokers}


def test_mounted_files_exist() -> None:
    volumes = [volume for service in COMPOSE["services"].values() for volume in service.get("volumes", [])]
    sources = {volume.partition(":")[0] for volume in volumes}
    files = {source for source in sources if source.startswith("./")}
    assert files
    assert [file for file in files if not (DEPLOY / file).exists()] == []
    assert sources - files == set(COMPOSE["volumes"])


def test_container_build_includes_required_files() -> None:
    context = (ROOT / ".dockerignore").read_text().splitlines()
    included = {line[1:] for line in context if line.startswith("!")}
    assert [name for name in included if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {*project["license-files"], project["readme"], "setup.py", "kframe_build.py", "kframe"} <= included
    (sources,) = re.findall(r"pip wheel .*$", CONTAINERFILE, re.MULTILINE)
    assert {word.removeprefix("./") for word in sources.split() if word.startswith("./")} <= included
