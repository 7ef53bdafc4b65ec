"""Shared code of the commands that change a live cluster through its admin API. They change nothing without
``--execute``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.live import COMMAND_CONFIG, KAFKA, client_properties
from kframe.cli.options import collected, with_options
from kframe.cli.output import OutputTable, emit_rows
from kframe.cli.plugins import PluginSettings, plugin_options

if TYPE_CHECKING:
    from kframe.errors import ErrorCode
    from kframe.model.events import TopicPartition
    from kframe.ports.administration import Administration

EXECUTE: Final = click.option("--execute", is_flag=True, help="Execute; without it, only print what would change.")


def _url(bootstrap_server: tuple[str, ...]) -> str:
    return f"{KAFKA}://{','.join(bootstrap_server)}"


#: Adds ``--bootstrap-server`` to a command, which receives the URL of these brokers as ``url``.
bootstrap_option: Final = collected(
    "url",
    _url,
    click.option(
        "--bootstrap-server",
        multiple=True,
        required=True,
        metavar="HOST:PORT,...",
        help="Brokers to bootstrap from; may be repeated.",
    ),
)


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--bootstrap-server`` and ``--command-config`` to a command. It receives a connected ``admin``."""

    @functools.wraps(command)
    def with_admin(*args: Any, url: str, command_config: Path | None, plugins: PluginSettings, **kwargs: Any) -> Any:
        with open_administration(url, command_config, plugins) as admin:
            return command(*args, admin=admin, **kwargs)

    return with_options(plugin_options(with_admin), bootstrap_option, COMMAND_CONFIG)


@contextmanager
def open_administration(url: str, file: Path | None, plugins: PluginSettings) -> Iterator[Administration]:
    """The admin API of the cluster at a URL, with the properties of Kafka's clients in ``file``. Raises PluginError."""
    admin = plugins.registry().open_admin(url, client_properties(file))
    try:
        yield admin
    finally:
        admin.close()


def emit_codes(codes: Mapping[TopicPartition, ErrorCode], output: str, limit: int | None) -> None:
    """Print one code per partition."""
    from kframe.cli.documents.cluster import PartitionCode

    rows = (PartitionCode(*partition, code.name) for partition, code in sorted(codes.items()))
    emit_rows(OutputTable("kframe.partition-codes/v1", PartitionCode.__struct_fields__, rows, limit=limit), output)
