"""``kframe plugins``: output and exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kframe.cli.plugins import group

SAFE = """
from kframe.plugin import ElectionKind, Option, SelectorSpec, SnapshotFormatSpec, StoreSpec, Tier, hookimpl

def make(rack):
    return lambda election: None

@hookimpl
def kframe_leader_selectors():
    options = (Option("rack", str, "a", "The rack to prefer."),)
    return [SelectorSpec("abstain", Tier.SCALAR, make, (ElectionKind.OFFLINE,), "Nobody.", options)]

@hookimpl
def kframe_stores():
    return [StoreSpec("nowhere", "no.such:store", "Loses everything.")]

@hookimpl
def kframe_snapshot_formats():
    return [SnapshotFormatSpec("xml", lambda path, start: False, "no.such:read", "Clusters in XML.")]

@hookimpl
def kframe_register_commands(cli):
    pass
"""
UNSAFE = """
from kframe.plugin import ElectionKind, SelectorSpec, Tier, hookimpl

@hookimpl
def kframe_leader_selectors():
    first = lambda: (lambda election: election.replicas[0])
    return [SelectorSpec("first", Tier.SCALAR, first, (ElectionKind.OFFLINE,), "The first replica, dead or alive.")]
"""

COMMANDS_ONLY = """
from kframe.plugin import hookimpl

@hookimpl
def kframe_register_commands(cli):
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugins directory with a safe, an unsafe and a broken plugin."""
    for name in ("KFRAME_TRACE_PLUGINS", "KFRAME_PLUGINS_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, text in {"safe": SAFE, "unsafe": UNSAFE, "broken": "1/0"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def as_json(result: Result) -> Any:
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def test_list(folder: Path) -> None:
    result = run("list", "--plugins-dir", folder, "-o", "wide")
    assert result.exit_code == 0
    lines = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert lines["PLUGIN"].split() == ["PLUGIN", "DISTRIBUTION", "SOURCE", "STATE", "ERROR", "OFFERS"]
    assert " builtin " in lines["builtin"]
    assert " loaded  " in lines["safe"]
    assert " abstain,nowhere,xml,commands" in lines["safe"]
    assert "broken" in lines["broken"]
    assert "ZeroDivisionError" in lines["broken"]


def test_json_list_has_all_columns_of_table(folder: Path) -> None:
    document = as_json(run("list", "--plugins-dir", folder, "--no-plugin", "unsafe", "-o", "json"))
    assert document["schema"] == "kframe.plugins/v2"
    plugins = {row["plugin"]: row for row in document["rows"]}
    assert plugins["unsafe"]["state"] == "disabled"
    assert plugins["broken"]["error"] == "ZeroDivisionError: division by zero"
    assert plugins["safe"] == {
        "plugin": "safe",
        "distribution": str(folder / "safe.py"),
        "source": "plugins dir",
        "state": "loaded",
        "error": None,
        "selectors": [
            {
                "name": "abstain",
                "tier": "scalar",
                "kinds": ["OFFLINE"],
                "doc": "Nobody.",
                "options": [{"name": "rack", "type": "str", "default": "a", "doc": "The rack to prefer."}],
            }
        ],
        "stores": [{"name": "nowhere", "doc": "Loses everything."}],
        "transports": [],
        "clusters": [],
        "admins": [],
        "servers": [],
        "controllers": [],
        "observers": [],
        "broker_models": [],
        "checks": [],
        "documents": [],
        "snapshot_formats": [{"name": "xml", "doc": "Clusters in XML."}],
        "cost_terms": [],
        "goals": [],
        "commands": True,
        "offers": ["abstain", "nowhere", "xml", "commands"],
    }


@pytest.mark.parametrize("name", ["safe", "abstain"])
def test_show(folder: Path, name: str) -> None:
    result = run("show", name, "--plugins-dir", folder)
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "plugin safe",
        f"distribution {folder / 'safe.py'}",
        "source plugins dir",
        "state loaded",
        "selectors abstain (scalar; OFFLINE): Nobody. [rack=a (str): The rack to prefer.]",
        "stores nowhere: Loses everything.",
        "snapshot formats xml: Clusters in XML.",
        "commands yes",
    ]


def test_check_fails(folder: Path) -> None:
    result = run("check", "unsafe", "--plugins-dir", folder, "-o", "wide")
    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if " is-safe " in line]
    assert line.split()[:5] == ["first", "selector", "scalar", "is-safe", "no"]
    assert "in OFFLINE elections it chose a broker that is dead" in line


def test_check_as_json(folder: Path) -> None:
    result = run("check", "first", "--no-plugin", "simulator", "--plugins-dir", folder, "-o", "json")
    assert result.exit_code == 1
    document = as_json(result)
    assert document["schema"] == "kframe.plugins.check/v1"
    assert {(row["offer"], row["kind"], row["tier"]) for row in document["rows"]} == {("first", "selector", "scalar")}
    assert {row["check"]: row["passed"] for row in document["rows"]} == {
        "is-named": True,
        "keeps-to-its-array": True,
        "is-safe": False,
        "same-batch-same-answer": True,
        "leaves-the-batch-alone": True,
        "single-broker-batches": False,
    }


def test_check_of_a_store_without_a_plugin_that_checks_stores() -> None:
    result = run("check", "memory", "--no-plugin", "simulator")
    assert result.exit_code == 2
    assert "not tried: no plugin checks stores and transports; kframe-simulator does" in result.stderr


CHECKED = """
from kframe.plugin import CheckSpec, hookimpl
from kframe.testing.selector_checks import Finding

@hookimpl
def kframe_plugin_checks():
    check = lambda offer, url: Finding("scheme", "Its URL has its scheme.", f"it is {url}")
    return [CheckSpec("scheme", check, "URLs.")]
"""


@pytest.mark.parametrize("arguments, url", [((), "memory:"), (("--url", "memory:x"), "memory:x")])
def test_checks_of_plugins_are_run(folder: Path, arguments: tuple[str, ...], url: str) -> None:
    (folder / "checked.py").write_text(CHECKED)
    result = run("check", "memory", *arguments, "--no-plugin", "simulator", "--plugins-dir", folder, "-o", "json")
    assert result.exit_code == 1
    (row,) = as_json(result)["rows"]
    assert (row["check"], row["passed"], row["problem"]) == ("scheme", False, f"it is {url}")


def test_check_lists_offers_that_cannot_be_tested(folder: Path) -> None:
    rows = as_json(run("check", "safe", "--plugins-dir", folder, "-o", "json"))["rows"]
    assert {row["passed"] for row in rows if row["offer"] == "abstain"} == {True}
    assert [row["passed"] for row in rows if row["offer"] == "nowhere"] == [None]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["show", "safer"], "no plugin, selector, cost term, goal, store or transport 'safer'; there are: "),
        (["check", "broken"], "plugin broken ("),
        (["check", "no-selectors"], "offers no selector, cost term, goal, store or transport to check"),
    ],
)
def test_usage_error_has_exit_code_2(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "no-selectors.py").write_text(COMMANDS_ONLY)
    result = run(*arguments, "--plugins-dir", folder)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_duplicate_plugin_name_exits_with_2_until_disabled(folder: Path) -> None:
    (folder / "again.py").write_text(SAFE)
    result = run("list", "--plugins-dir", folder)
    assert result.exit_code == 2
    assert "leader selector 'abstain' is offered by" in result.stderr
    assert run("list", "--plugins-dir", folder, "--no-plugin", "again").exit_code == 0


@pytest.mark.parametrize("environment, traced", [({"KFRAME_TRACE_PLUGINS": "1"}, True), ({}, False)], ids=str)
def test_trace(folder: Path, environment: dict[str, str], traced: bool) -> None:
    result = CliRunner(env=environment).invoke(group, ["list", "--plugins-dir", str(folder)])
    assert ("plugins: safe: kframe_leader_selectors -> abstain\n" in result.stderr) is traced


def test_new(tmp_path: Path) -> None:
    result = run("create", tmp_path / "mine", "--name", "mine")
    assert result.exit_code == 0
    assert all(Path(line).is_file() for line in result.stdout.splitlines())
