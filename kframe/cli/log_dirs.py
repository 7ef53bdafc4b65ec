"""Log directories on the command line: their names, and where they are listed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.admin import open_administration
from kframe.cli.inputs import INPUT, is_url
from kframe.cli.live import KAFKA
from kframe.cli.output import BadInput
from kframe.cli.plugins import PluginSettings
from kframe.model.whole_numbers import parse_whole

if TYPE_CHECKING:
    from kframe.ports.administration import DirectoryName, LogDirectory
    from kframe.snapshot.files import InputFile

#: The metavariable of a log directory.
DIRECTORY: Final = "ID:PATH"
_EXPECTED: Final = "the output of kafka-log-dirs --describe, or FILE.json of kframe snapshot capture --log-dirs"

log_dirs_option: Final = click.option(
    "--log-dirs",
    type=INPUT,
    metavar="FILE",
    help="Log directories: output of kafka-log-dirs --describe, or FILE.json of kframe snapshot capture --log-dirs.",
)


def parse_directory(text: str) -> DirectoryName:
    """The log directory that ``ID:PATH`` names. Raises ValueError."""
    from kframe.ports.administration import DirectoryName

    broker, _, path = text.partition(":")
    broker_id = parse_whole(broker)
    if broker_id is None or not path:
        raise ValueError("a broker id and a path, such as 1:/var/lib/kafka/data-0")
    return DirectoryName(broker_id, path)


def directories(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> tuple[DirectoryName, ...]:
    """Callback of a repeated option for ``ID:PATH``, each once."""
    named: dict[DirectoryName, None] = {}
    for text in values:
        try:
            directory = parse_directory(text)
        except ValueError as problem:
            raise click.BadParameter(f"found {text!r}, expected {problem}") from problem
        if directory in named:
            raise click.BadParameter(f"found {text} twice, expected each log directory once")
        named[directory] = None
    return tuple(named)


def listed_directories(
    source: InputFile | str, log_dirs: InputFile | None, command_config: Path | None, plugins: PluginSettings
) -> Mapping[int, Sequence[LogDirectory]] | None:
    """The log directories in a file, or those that the brokers at a ``kafka://`` URL list; None without either.

    Raises BadInput, InputError, StoreError.
    """
    from kframe.plans.generate.log_dirs import is_log_dirs, read_directories
    from kframe.snapshot.files import read_document

    if log_dirs is not None:
        document = read_document(log_dirs, expected="log directories")
        if not is_log_dirs(document):
            raise BadInput(f"{log_dirs}: found no log directories, expected {_EXPECTED}")
        return read_directories(document, str(log_dirs))
    if not is_url(source) or not source.startswith(f"{KAFKA}:"):
        return None
    with open_administration(source, command_config, plugins) as admin:
        description = admin.describe()
        return admin.log_directories(sorted(description.brokers.keys() - set(description.controllers)))
