"""``-v`` and ``-q``, which every command takes at any place after ``kframe``."""

from __future__ import annotations

import sys
from typing import Final, TypeVar

import click

Command = TypeVar("Command", bound=click.Command)

#: The key of ``Context.meta`` that ``-q`` sets.
_SILENCED: Final = "kframe.cli.quiet"


def is_quiet() -> bool:
    """Whether the user wants no progress and no notes on stderr."""
    ctx = click.get_current_context(silent=True)
    return bool(ctx is not None and ctx.meta.get(_SILENCED))


def _set_verbose(_ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    import logging  # ``--help`` does not need it.

    log = logging.getLogger("kframe")
    if value:
        logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
        log.setLevel(logging.INFO)
        return
    for logger in (log, logging.getLogger()):  # Python would print warnings of a logger without any handler.
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _set_quiet(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_SILENCED] = True


def verbosity_options(command: Command) -> Command:
    """Add ``-v`` and ``-q`` to one command, which sees neither."""
    command.params += [
        click.Option(
            ["-v", "--verbose"],
            is_flag=True,
            expose_value=False,
            callback=_set_verbose,
            help="Log the engine's steps to standard error.",
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_set_quiet,
            help="Print no progress on standard error.",
        ),
    ]
    return command


def add_verbosity(command: Command) -> Command:
    """Add ``-v`` and ``-q`` to a command, or to all commands of a group, once."""
    if isinstance(command, click.Group):
        for member in command.commands.values():
            add_verbosity(member)
    elif all("--quiet" not in option.opts for option in command.params):
        verbosity_options(command)
    return command
