"""The ``kframe`` command as a whole: its imports and its exit codes."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import kframe
from benchmarks.clusters import generated
from kframe.cli import app
from kframe.errors import BrokenInvariant, InputError, KframeError, PluginError, StoreError
from kframe.snapshot.content import Mode
from tests.architecture.source import ROOT

#: Modules that ``--help`` must not import.
SLOW = {"email", "numpy", "pyarrow", "rich", "yaml", "msgspec", "pluggy", "kazoo", "pyspark", "matplotlib"}


#: The modules of kframe that the list of commands imports, besides those in which plugins announce theirs.
HELP = {
    "kframe",
    "kframe.cli",
    "kframe.cli.app",
    "kframe.cli.entry_points",
    "kframe.cli.exits",
    "kframe.cli.layout",
    "kframe.cli.output",
    "kframe.cli.repeated",
    "kframe.cli.standard_streams",
    "kframe.cli.verbosity",
    "kframe.errors",
    "kframe.lazy",
}
#: What no what-if of a snapshot directory needs, and what only that of the other mode needs.
NOT_FOR_A_WHAT_IF = {
    "kframe.whatif.engines.zookeeper.create",
    "kframe.whatif.engines.zookeeper.reassign",
    "kframe.registry.registry",
    "kframe.snapshot.describe",
    "kframe.snapshot.zookeeper",
    "kframe.plans.file.read",
    "kframe.whatif.sweep",
    "pandas",
    "pluggy",
    "pyarrow.compute",
    "rich",
    "yaml",
}
ONLY = {
    "zookeeper": {"kframe.core.controller", "kframe.runtime.loop", "kframe.embedded.ensemble"},
    "kraft": {"kframe.core.kraft.context", "kframe.whatif.engines.kraft.engine"},
}


def modules_after(*arguments: str) -> set[str]:
    """Return the modules that ``kframe`` imports in a new interpreter."""
    code = (
        "import sys\nfrom kframe.cli.app import cli\n"
        f"try:\n    cli({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(completed.stderr.split())


def loaded_after(*arguments: str) -> set[str]:
    """Return the top-level modules that ``kframe`` imports in a new interpreter."""
    return {name.partition(".")[0] for name in modules_after(*arguments)}


def test_list_of_commands_imports_few_modules() -> None:
    assert {name for name in modules_after("--help") if name.partition(".")[0] == "kframe"} == HELP


@pytest.mark.parametrize("mode, other", [("zookeeper", "kraft"), ("kraft", "zookeeper")])
def test_whatif_imports_only_modules_of_its_mode(mode: Mode, other: Mode, tmp_path: Path) -> None:
    generated(tmp_path / "cluster", 100, 5, mode)
    loaded = modules_after("whatif", "fail", str(tmp_path / "cluster"), "--brokers", "1")
    assert loaded & (NOT_FOR_A_WHAT_IF | ONLY[other]) == set()
    assert loaded >= ONLY[mode]


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["whatif", "fail", "--help"], ["snapshot", "--help"]])
def test_help_loads_nothing_slow(arguments: list[str]) -> None:
    assert loaded_after(*arguments) & SLOW == set()


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_loads_and_is_listed(name: str) -> None:
    assert CliRunner().invoke(app.cli, [name, "--help"]).exit_code == 0
    assert f"\n  {name} " in CliRunner().invoke(app.cli, ["--help"]).stdout


def test_version() -> None:
    assert CliRunner().invoke(app.cli, ["--version"]).stdout == f"kframe {kframe.__version__}\n"


def test_group_without_command_prints_help() -> None:
    result = CliRunner().invoke(app.cli, ["whatif"])
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


@pytest.fixture
def failing() -> Iterator[dict[str, Exception]]:
    """A command that raises the error of the test."""
    raised: dict[str, Exception] = {}

    @app.cli.command("failing")
    def failing() -> None:
        raise raised["it"]

    yield raised
    del app.cli.commands["failing"]


@pytest.mark.parametrize(
    "problem, code",
    [
        (InputError("x.json:3", "a dog", "a cat"), 2),
        (PluginError("two of them"), 2),
        (StoreError("storage is gone"), 1),
        (BrokenInvariant("never"), 1),
        (click.Abort(), 130),
    ],
)
def test_errors_end_in_one_line(failing: dict[str, Exception], problem: Exception, code: int) -> None:
    failing["it"] = problem
    result = CliRunner().invoke(app.cli, ["failing"])
    assert result.exit_code == code
    assert result.stderr == f"error: {problem if isinstance(problem, KframeError) else 'interrupted'}\n"


def test_verbose_prints_where_an_unexpected_error_was_raised(failing: dict[str, Exception]) -> None:
    failing["it"] = ZeroDivisionError("ours")
    default, verbose = (CliRunner().invoke(app.cli, [*option, "failing"]) for option in ([], ["-v"]))
    assert (default.exit_code, verbose.exit_code) == (70, 70)
    assert ("Traceback" in default.stderr, "raise raised" in verbose.stderr) == (False, True)


def test_library_logs_nothing_by_default() -> None:
    CliRunner().invoke(app.cli, ["states"])
    assert logging.getLogger("kframe").handlers
