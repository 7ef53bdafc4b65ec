"""The extension points of kframe that this distribution implements: the command ``kframe console``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kframe.plugin import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def kframe_register_commands(cli: click.Group) -> None:
    """Add ``kframe console``."""
    from kframe_console import command

    cli.add_command(command.command)
