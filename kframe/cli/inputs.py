"""The arguments for files that commands read: a path, a named pipe, or ``-`` for standard input."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.progress import progress

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile

    _ParamType = click.ParamType[InputFile]
else:
    _ParamType = click.ParamType

_STANDARD_INPUT_READ: Final = "kframe.cli.inputs"


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


INPUT: Final = InputPath()
