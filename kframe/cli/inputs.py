"""The arguments for what commands read: a path, a named pipe, ``-`` for standard input, or a live cluster's URL."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from contextlib import suppress
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

    def convert(self, value: str | InputFile, param: click.Parameter | None, ctx: click.Context | None) -> InputFile:
        """The path, or a copy of the stream. Raises SnapshotError, and UsageError for a URL and a second ``-``."""
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
        path = Path(value)
        stream = awaited_stream(path)
        if not stream:
            await_file(path)
        with progress("reading", awaited=stream) as tick:
            return ctx.with_resource(opened(path, tick))


class SourcePath(InputPath):
    """A file to read, or the URL of a live cluster, which stays as it is."""

    name = "path or URL"

    def convert(self, value: str | InputFile, param: click.Parameter | None, ctx: click.Context | None) -> InputFile:
        """The URL, or the file as ``InputPath`` returns it."""
        if isinstance(value, str) and is_url(value):
            return cast("InputFile", value)
        return super().convert(value, param, ctx)


def await_file(path: Path) -> None:
    """Read the first byte of a file, or the first name of a directory. Say after two seconds that it is awaited.

    Later readers report what cannot be read.
    """
    with progress("reading", awaited=str(path)), suppress(OSError):
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            with path.open("rb", buffering=0) as file:
                file.read(1)
        elif stat.S_ISDIR(mode):
            with os.scandir(path) as entries:
                next(entries, None)


def awaited_stream(path: Path) -> str:
    """What must be written before the stream at a path can be read. Empty for a path that is no stream."""
    from kframe.snapshot.streams import STANDARD_INPUT, is_pipe

    if str(path) == STANDARD_INPUT:
        return "standard input"
    return f"the named pipe {path}" if is_pipe(path) else ""


def is_url(value: object) -> TypeGuard[str]:
    """Whether a value of ``SourcePath`` is the URL of a live cluster: SCHEME://ADDRESS."""
    return isinstance(value, str) and _URL.match(value) is not None


INPUT: Final = InputPath()
SOURCE: Final = SourcePath()
