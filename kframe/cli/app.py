"""``kframe``: the group of all commands, which are imported when they are called, and the handling of all errors.

Exit codes: 0 done; 1 failed; 2 wrong usage or bad input; 3 a ``--fail-on`` condition or a shadow disagreement; 4 a plan
is stale; 5 not controller.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

import kframe
from kframe.cli.output import ReportingGroup
from kframe.errors import ControllerFenced, InputError, KframeError, PluginError

FAILED: Final = 1
BAD_INPUT: Final = 2
FENCED: Final = 5
#: What click 8.2 raises for a group that is called without a command; its message is the group's help.
_HELP_ASKED: Final = getattr(click.exceptions, "NoArgsIsHelpError", ())


@dataclass(frozen=True, slots=True)
class Entry:
    """The module of a command and its line in the list of commands, so that listing imports no command."""

    module: str
    attribute: str
    help: str


COMMANDS: Final[Mapping[str, Entry]] = {
    "bench": Entry("kframe.cli.bench", "command", "Time the engine on a generated cluster."),
    "controller": Entry("kframe.cli.controller", "group", "Run a controller, show its status, or make it resign."),
    "demo": Entry("kframe.cli.demo", "command", "Fail brokers of a real cluster and of a million partitions."),
    "elect": Entry("kframe.cli.elect", "command", "Elect leaders of a live cluster."),
    "explain": Entry("kframe.cli.explain", "command", "Explain why a partition has its leader."),
    "plan": Entry("kframe.cli.plan", "group", "Check, show and execute reassignment plans."),
    "plugins": Entry("kframe.cli.plugins", "group", "List, check and create plugins."),
    "reassign": Entry(
        "kframe.cli.reassign", "group", "Reassign partitions of a live cluster; list and cancel reassignments."
    ),
    "scenario": Entry("kframe.cli.scenario", "group", "Run scenario files on the controller."),
    "snapshot": Entry("kframe.cli.snapshot", "group", "Capture, convert, show and generate snapshots."),
    "spark": Entry("kframe.cli.spark", "group", "Analyze snapshots of many clusters with Spark."),
    "states": Entry("kframe.cli.states", "command", "Show the state machines of partitions and replicas."),
    "whatif": Entry(
        "kframe.cli.whatif", "group", "Evaluate failures, elections, reassignments and new topics on a snapshot."
    ),
}


class App(ReportingGroup):
    """The root group. Names that are not commands of kframe are looked up in the plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of kframe's own commands."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command. Raises PluginError if two plugins clash."""
        known = super().get_command(ctx, cmd_name)
        if known is not None:
            return known
        entry = COMMANDS.get(cmd_name)
        return self._of_plugins(ctx, cmd_name) if entry is None else _load(entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, report every error in one line on stderr, and exit."""
        run: Callable[..., Any] = super().main
        try:
            code = run(*args, **{**extra, "standalone_mode": False})
        except (click.ClickException, click.Abort, KframeError) as problem:
            code = _report(problem)
        sys.exit(code if isinstance(code, int) else 0)

    def _of_plugins(self, ctx: click.Context, name: str) -> click.Command | None:
        from kframe.registry.registry import build_registry

        everything = click.Group(commands={own: _load(entry) for own, entry in COMMANDS.items()})
        build_registry().register_commands(everything)
        return everything.get_command(ctx, name)


def _load(entry: Entry) -> click.Command:
    command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
    return command


def _report(problem: Exception) -> int:
    """Print the error in one line; return the exit code."""
    if isinstance(problem, click.Abort):
        click.echo("error: aborted", err=True)
        return FAILED
    if not isinstance(problem, click.ClickException):
        click.echo(f"error: {problem}", err=True)
        if isinstance(problem, ControllerFenced):
            return FENCED
        return BAD_INPUT if isinstance(problem, InputError | PluginError) else FAILED
    message, ctx = problem.format_message(), getattr(problem, "ctx", None)
    if isinstance(problem, _HELP_ASKED):
        click.echo(message, err=True)
    else:
        hint = f" (see {ctx.command_path} --help)" if isinstance(problem, click.UsageError) and ctx is not None else ""
        click.echo(f"error: {' '.join(message.split())}{hint}", err=True)
    return problem.exit_code


@click.command(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kframe.__version__, prog_name="kframe", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Log to standard error what the engine does.")
def cli(verbose: bool) -> None:
    """A cluster controller that does what Apache Kafka's does, and tells what it would do."""
    log = logging.getLogger("kframe")
    if verbose:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        log.setLevel(logging.INFO)
    else:
        for quiet in (log, logging.getLogger()):  # warnings of libraries are shown only on request
            if not quiet.handlers:
                quiet.addHandler(logging.NullHandler())


def main() -> None:
    """The ``kframe`` command. Python ``warnings`` of libraries are logged, not printed."""
    logging.captureWarnings(True)
    cli(prog_name="kframe")
