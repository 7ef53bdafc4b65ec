"""Shared code of the commands that connect to a live cluster: address, configuration, and warnings."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.options import collected
from kframe.cli.output import BadInput
from kframe.cli.plugins import PluginSettings

if TYPE_CHECKING:
    from kframe.ports.live_cluster import LiveCluster
    from kframe.settings.settings import Settings

CONNECT: Final = "zookeeper.connect"
SCHEME: Final = "zookeeper"
KAFKA: Final = "kafka"
KRAFT: Final = "kraft"
#: Schemes of clusters that kframe reads as a client.
CLIENT_SCHEMES: Final = (KAFKA, KRAFT)
_PATH: Final = click.Path(path_type=Path)

CONFIG_OPTION: Final = click.option(
    "--config",
    "config",
    metavar="FILE",
    type=_PATH,
    help="Kafka's server.properties; options and KFRAME_... override it.",
)

COMMAND_CONFIG: Final = click.option(
    "--command-config",
    metavar="FILE",
    type=_PATH,
    help="Properties file of a Kafka client: security.protocol, ssl.*, sasl.*.",
)


def _settings(zookeeper: str | None, config: Path | None) -> Settings:
    return gather(config, {} if zookeeper is None else {CONNECT: (zookeeper, "--zookeeper")})


ZOOKEEPER_OPTION: Final = click.option(
    "--zookeeper", metavar="HOST:PORT[/CHROOT]", help=f"ZooKeeper connection string ({CONNECT})."
)
#: Adds ``--zookeeper`` and ``--config`` to a command, which receives them as ``settings``.
live_options: Final = collected("settings", _settings, ZOOKEEPER_OPTION, CONFIG_OPTION)


def gather(config: Path | None, options: Mapping[str, tuple[str, str]] | None = None) -> Settings:
    """Settings from ``options`` (value and option name, by key), the environment and a file."""
    from kframe.settings.settings import Setting, Settings

    overrides = {key: Setting(value, f"option {option}") for key, (value, option) in (options or {}).items()}
    with echo_warnings():
        return Settings.gather(overrides, os.environ, config)


def cluster_of(settings: Settings, plugins: PluginSettings, url: str | None = None) -> LiveCluster:
    """The live cluster at ``url``. Without it, the cluster at the ZooKeeper address in the settings. Raises BadInput,
    PluginError and ConfigError."""
    connect = settings.get(CONNECT)
    if url is None and not (connect or "").strip():
        raise BadInput(f"no ZooKeeper address: give --zookeeper, or a file with {CONNECT} by --config")
    with echo_warnings(), settings.located():
        return plugins.registry().open_cluster(url or connect_url(settings), settings.values)


def connect_url(settings: Settings) -> str:
    """The URL of the cluster at the ZooKeeper address in the settings."""
    return f"{SCHEME}://{settings.get(CONNECT)}"


def cluster_of_brokers(url: str, file: Path | None, plugins: PluginSettings) -> LiveCluster:
    """The live cluster of these brokers or this quorum, with the properties of Kafka's clients in ``file``.

    Raises PluginError and ConfigError.
    """
    return plugins.registry().open_cluster(url, client_properties(file))


def opened_cluster(
    url: str, config: Path | None, command_config: Path | None, plugins: PluginSettings
) -> tuple[LiveCluster, AbstractContextManager[None]]:
    """The live cluster at a URL, with a client's configuration for ``kafka:`` and ``kraft:``, else with a server's; and
    a context in which errors name the file of a setting. It is not connected yet.

    Raises UsageError for the configuration of the other kind, and as ``cluster_of``.
    """
    if (scheme := url.partition(":")[0]) in CLIENT_SCHEMES:
        if config is not None:
            raise click.UsageError(f"--config has settings for ZooKeeper: a {scheme}:// URL takes --command-config")
        return cluster_of_brokers(url, command_config, plugins), nullcontext()
    if command_config is not None:
        raise click.UsageError("--command-config has settings for kafka:// and kraft:// URLs: others take --config")
    settings = gather(config)
    return cluster_of(settings, plugins, url), settings.located()


def awaited(url: str) -> str:
    """What must respond before the cluster at a URL can be read."""
    match url.partition(":")[0]:
        case "kraft":
            return f"a leader of the quorum at {url}"
        case "kafka":
            return f"a controller of the cluster at {url}"
    return url


def client_properties(file: Path | None) -> dict[str, str]:
    """The properties of Kafka's clients in a file. Raises ConfigError."""
    from kframe.settings.properties import read_properties

    return {} if file is None else {entry.key: entry.value for entry in read_properties(file)}


@contextmanager
def echo_warnings() -> Iterator[None]:
    """Print warnings of kframe and its plugins to stderr, one per line, unless the log has a handler already."""
    log, handler = logging.getLogger(), logging.StreamHandler(sys.stderr)
    if any(not isinstance(handler, logging.NullHandler) for handler in log.handlers):
        yield
        return
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("warning: %(message)s"))
    handler.addFilter(lambda record: record.name.startswith("kframe"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
