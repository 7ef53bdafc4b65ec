"""The arguments for what commands read: a path, a named pipe, ``-`` for standard input, or a live cluster's URL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeGuard, cast

import click

from kframe.cli.progress import progress

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile

    _ParamType = click.ParamType[InputFile]
else:
    _ParamType = click.ParamType

_STANDARD_INPUT_READ: Final = "kframe.cli.inputs"
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://")


class InputPath(_ParamType):
    """A file to read. The copy of a stream exists until the command ends."""

    name = "path"

    def convert(
        self, value: str | InputFile, param: click.Parameter | None, ctx: click.Context | None
    ) -> InputFile:  # fmt: skip
        """The path, or a copy of the stream. Raises SnapshotError, and UsageError for a second ``-``."""
        from kframe.snapshot.streams import STANDARD_INPUT, opened

        if not isinstance(value, str):
            return value
        if ctx is None or ctx.resilient_parsing:
            return Path(value)
        if value == STANDARD_INPUT and ctx.meta.setdefault(_STANDARD_INPUT_READ, param) is not param:
            raise click.UsageError("found - twice, expected standard input once", ctx)
        with progress("reading") as tick:
            return ctx.with_resource(opened(Path(value), tick))


class SourcePath(InputPath):
    """A file to read, or the URL of a live cluster, which stays as it is."""

    name = "path or URL"

    def convert(
        self, value: str | InputFile, param: click.Parameter | None, ctx: click.Context | None
    ) -> InputFile:  # fmt: skip
        """The URL, or the file as ``InputPath`` returns it."""
        if isinstance(value, str) and is_url(value):
            return cast("InputFile", value)
        return super().convert(value, param, ctx)


def is_url(value: object) -> TypeGuard[str]:
    """Whether a value of ``SourcePath`` is the URL of a live cluster: SCHEME://ADDRESS."""
    return isinstance(value, str) and _URL.match(value) is not None


def broker_ids(_ctx: click.Context, _option: click.Parameter, value: str | None) -> tuple[int, ...]:
    """Callback of an option for broker ids separated by commas: ``2,5`` as (2, 5)."""
    try:
        return () if value is None else tuple(int(text) for text in value.split(","))
    except ValueError as problem:
        raise click.BadParameter(f"found {value!r}, expected broker ids such as 2,5") from problem


INPUT: Final = InputPath()
SOURCE: Final = SourcePath()
