"""The commands of ``kframe`` and of the installed plugins, from the click tree."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import click

from kframe.cli.app import COMMANDS, cli
from kframe.registry.registry import build_registry

#: Columns of a usage line.
_COLUMNS = 78


@dataclass(frozen=True, slots=True)
class CommandPage:
    """Documentation of a command: its name, usage, paragraphs, and its options with their help.

    A paragraph whose lines may not be filled ends with a line feed.
    """

    name: str
    usage: str
    summary: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    subcommands: tuple[CommandPage, ...]

    def walk(self) -> Iterator[CommandPage]:
        """Return this command and all below it, in order."""
        yield self
        for subcommand in self.subcommands:
            yield from subcommand.walk()


def command_tree() -> CommandPage:
    """Return the root command; the commands of plugins follow those of kframe."""
    context = click.Context(cli, info_name="kframe", terminal_width=_COLUMNS, **cli.context_settings)
    return _page(cli, context, [*COMMANDS, *plugin_commands()])


def plugin_commands() -> list[str]:
    """Return the names of the commands that installed plugins add."""
    everything = click.Group(commands={name: click.Command(name) for name in COMMANDS})
    build_registry().register_commands(everything)
    return sorted(set(everything.commands) - set(COMMANDS))


def _page(command: click.Command, context: click.Context, names: list[str] | None = None) -> CommandPage:
    subcommands = []
    if isinstance(command, click.Group):
        for child in names or command.list_commands(context):
            subcommand = command.get_command(context, child)
            if subcommand is not None and not subcommand.hidden:
                subcommands.append(_page(subcommand, click.Context(subcommand, parent=context, info_name=child)))
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    name = context.command_path.removeprefix("kframe ")
    return CommandPage(
        context.command_path,
        command.get_usage(context).removeprefix("Usage: "),
        COMMANDS[name].help if name in COMMANDS else command.get_short_help_str(limit=200),
        tuple(_paragraphs(command.help or "")),
        tuple(record for record in records if record is not None and record[1]),
        tuple(subcommands),
    )


def _paragraphs(text: str) -> Iterator[str]:
    """Return the paragraphs of a help text; click keeps the lines after a backspace character."""
    for paragraph in inspect.cleandoc(text).partition("\f")[0].split("\n\n"):
        lines = [line for line in paragraph.splitlines() if line.strip() != "\b"]
        if "\b" in paragraph:
            yield "\n".join(lines) + "\n"
        elif lines:
            yield " ".join(line.strip() for line in lines)
