"""``kframe``: the group of all commands. A command is imported when it is called."""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import click

import kframe
from kframe.cli.entry_points import entry_points, load
from kframe.cli.exits import EXIT_CODES, output_faults, report
from kframe.cli.layout import help_width
from kframe.cli.output import ReportingGroup
from kframe.cli.repeated import refuse_repeated_options
from kframe.cli.standard_streams import open_closed_streams
from kframe.cli.verbosity import add_verbosity, verbosity_options


class Entry(NamedTuple):
    """The module of a command and its line in the list of commands, so that listing imports no command."""

    module: str
    attribute: str
    help: str


#: The entry points by which plugins announce their commands.
COMMANDS_GROUP: Final = "kframe.commands"

#: New objects before the garbage collector searches them for cycles. Most are of imports, which last as long as the
#: process: Python's own 700 have it search 130 times before a command begins.
_COLLECT_AFTER: Final = 10_000

COMMANDS: Final[Mapping[str, Entry]] = {
    "bench": Entry("kframe.cli.bench", "command", "Time the engine on a generated cluster."),
    "completion": Entry("kframe.cli.completion", "command", "Print the completion script of a shell."),
    "controller": Entry("kframe.cli.controller", "group", "Run a controller, show its status, or make it resign."),
    "demo": Entry("kframe.cli.demo", "command", "Fail brokers of a real cluster and of a million partitions."),
    "elect": Entry("kframe.cli.elect", "command", "Elect leaders of a live cluster."),
    "explain": Entry("kframe.cli.explain", "command", "Explain why a partition has its leader."),
    "plan": Entry("kframe.cli.plan", "group", "Generate, check and execute reassignment plans."),
    "plugins": Entry("kframe.cli.plugins", "group", "List, check and create plugins."),
    "reassign": Entry(
        "kframe.cli.reassign", "group", "Reassign partitions of a live cluster; list and cancel reassignments."
    ),
    "scenario": Entry("kframe.cli.scenario", "group", "Run scenario files on the controller."),
    "schema": Entry("kframe.cli.schema", "command", "Print the JSON Schemas of outputs, scenarios and plans."),
    "snapshot": Entry("kframe.cli.snapshot", "group", "Capture, convert, show and generate snapshots."),
    "spark": Entry("kframe.cli.spark", "group", "Analyze snapshots of many clusters with Spark."),
    "states": Entry("kframe.cli.states", "command", "Show the state machines of partitions and replicas."),
    "whatif": Entry(
        "kframe.cli.whatif", "group", "Evaluate failures, elections, reassignments and new topics on a snapshot."
    ),
}


def announced_commands() -> dict[str, str]:
    """The commands of installed plugins with their lines of help, without those that have a name of kframe's own.

    Each entry point of the group ``kframe.commands`` is a mapping in a module that imports nothing slow. A plugin that
    cannot be loaded is left out: ``kframe plugins list`` names its error.
    """
    announced: dict[str, str] = {}
    for point, reference in entry_points(COMMANDS_GROUP):
        try:
            announced |= {str(name): str(text) for name, text in load(reference).items()}
        except Exception:
            import logging  # Only a broken plugin needs it.

            logging.getLogger("kframe.plugins").info("the commands of %s are not listed", point, exc_info=True)
    return {name: text for name, text in announced.items() if name not in COMMANDS}


class App(ReportingGroup):
    """The root group. Names that are not commands of kframe are looked up in the plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of kframe's own commands, and of those that plugins announce."""
        return sorted({*COMMANDS, *super().list_commands(ctx), *announced_commands()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command. Raises PluginError if two plugins clash."""
        known = super().get_command(ctx, cmd_name)
        if known is not None:
            return known
        entry = COMMANDS.get(cmd_name)
        return self._plugin_command(ctx, cmd_name) if entry is None else _load(entry)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name. Raises UsageError for an unknown one, whose plugin is named, and for an
        option that has a value twice."""
        try:
            name, command, remaining = super().resolve_command(ctx, args)
        except click.UsageError as problem:
            from kframe.registry.known_plugins import plugin_of_command  # Only a wrong name needs it.

            plugin = plugin_of_command(args[0])
            if plugin is None or args[0] in announced_commands():
                raise
            raise click.UsageError(f"No such command {args[0]!r}: {plugin.hint()}", ctx) from problem
        if command is not None and not ctx.resilient_parsing:
            refuse_repeated_options(command, click.Context(command, ctx, name), remaining)
        return name, command, remaining

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])
        if announced := announced_commands():
            with formatter.section("Commands of plugins"):
                formatter.write_dl(sorted(announced.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Python ``warnings`` of libraries are logged, not printed. Raises OutputFault if standard
        output cannot be written."""
        import logging  # ``--help`` invokes nothing: without it, it takes a twentieth less.

        logging.captureWarnings(True)
        with output_faults():
            return super().invoke(ctx)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run and exit. Every error is one line on stderr."""
        run: Callable[..., Any] = super().main
        try:
            code = run(*args, **{**extra, "standalone_mode": False})
        except (Exception, KeyboardInterrupt) as problem:
            code = report(problem)
        sys.exit(code if isinstance(code, int) else 0)

    def _plugin_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from kframe.registry.registry import build_registry

        everything = click.Group(commands={name: _load(entry) for name, entry in COMMANDS.items()})
        build_registry().register_commands(everything)
        command = everything.get_command(ctx, name)
        return None if command is None else add_verbosity(command)


def _load(entry: Entry) -> click.Command:
    command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
    return add_verbosity(command)


@verbosity_options
@click.command(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(kframe.__version__, prog_name="kframe", message="%(prog)s %(version)s")
def cli() -> None:
    """A cluster controller that decides as Apache Kafka's does, and predicts what Kafka's would do."""


def main() -> None:
    """The ``kframe`` command."""
    open_closed_streams()
    # Libraries read these when they are imported. Arrow's own allocator keeps the pages of what it has read. Threads of
    # OpenBLAS, which kframe's small matrices do not need, spin for a twentieth of a second when they start.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(gc.freeze)  # Python searches all objects for cycles again at exit, only to free their memory.
    cli(prog_name="kframe", terminal_width=help_width())
