"""The arguments for what commands read: a path, a named pipe, ``-`` for standard input, or a live cluster's URL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
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


class NamedPath(click.Path):
    """A path that a command reads or writes by its name: not empty, and not ``-`` for a standard stream."""

    def __init__(self, *, dir_okay: bool = True) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path. Raises BadParameter."""
        if not value:
            self.fail("found an empty name, expected a path", param, ctx)
        if value == "-":
            self.fail("found -, expected a path (./- is a file of this name)", param, ctx)
        return super().convert(value, param, ctx)


def check_distinct(paths: Iterable[tuple[str, Path | InputFile | str | None]]) -> None:
    """Raise UsageError if two of these files, each with the name of its option, are the same: one would be lost."""
    options: dict[str, str] = {}
    for option, path in paths:
        if isinstance(path, str | Path) and not is_url(path) and str(path) != "-":
            name = os.path.realpath(path)
            if name in options:
                raise click.UsageError(f"{option}: found {path}, the file of {options[name]}, expected another")
            options[name] = option


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
        if not value:
            self.fail("found an empty name, expected a file", param, ctx)
        if is_url(value):
            self.fail(f"found the URL {value}, expected a file; kframe snapshot capture writes one", param, ctx)
        if value == STANDARD_INPUT:
            if _STANDARD_INPUT_READ in ctx.meta:
                raise click.UsageError("found - twice, expected standard input once", ctx)
            ctx.meta[_STANDARD_INPUT_READ] = True
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


INPUT: Final = InputPath()
SOURCE: Final = SourcePath()
