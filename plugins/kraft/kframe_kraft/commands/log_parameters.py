"""The arguments and options of ``kframe log``: sources, positions and types of records."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from kframe.plugin.commands import await_file, awaited_stream
from kframe.plugin.settings import INT64_MAX, parse_whole

if TYPE_CHECKING:
    _ParamType = click.ParamType[str]
else:
    _ParamType = click.ParamType

#: The scheme of the URL of a quorum.
QUORUM: Final = "kraft://"
_END: Final = "end"


class LogSource(click.Path):
    """A path that exists, or the URL of a quorum."""

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        """The path, or the URL as text. Fails for a path that does not exist."""
        text = os.fspath(value)
        if text.startswith(QUORUM):
            return text
        if not awaited_stream(Path(text)):
            await_file(Path(text))
        return Path(os.fsdecode(super().convert(text, param, ctx)))


class LogOffset(_ParamType):
    """An offset as text, or ``end``."""

    name = "offset"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text. Fails for anything else."""
        if value != _END and parse_whole(value, INT64_MAX) is None:
            self.fail(f"found {value!r}, expected an offset from 0 to {INT64_MAX}, or {_END}", param, ctx)
        return value


class LogTime(_ParamType):
    """A time as text, or ``end``. ``end_of`` reads it."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text. Fails for a number, which ``end_of`` would read as an offset."""
        if parse_whole(value, INT64_MAX) is not None:
            self.fail(
                f"found {value!r}, expected a time such as 2026-11-24T09:30:00Z; --offset takes offsets", param, ctx
            )
        return value


def position_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--offset`` and ``--time`` to a command, as its parameter ``position``; by default the end of the log."""

    @functools.wraps(command)
    def with_position(*args: Any, offset: str | None, time: str | None, **kwargs: Any) -> Any:
        if offset is not None and time is not None:
            raise click.UsageError("--offset and --time exclude one another")
        return command(*args, position=offset or time or _END, **kwargs)

    options = (
        click.option("--offset", metavar="N", type=LogOffset(), help="After the record at this offset, or end."),
        click.option("--time", metavar="T", type=LogTime(), help="At this time, UTC unless it has a zone."),
    )
    return options[0](options[1](with_position))


class RecordType(_ParamType):
    """The name of a type of records, such as PartitionChange."""

    name = "type"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as Kafka spells it. Fails for an unknown type."""
        from kframe_kraft.time_travel.entries import type_named

        try:
            return type_named(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """All types that begin with ``incomplete``."""
        from kframe_kraft.time_travel.entries import type_names

        return [CompletionItem(name) for name in type_names() if name.lower().startswith(incomplete.lower())]
