"""The distributions of kframe's own plugins, so that a message can name the plugin that an input needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kframe.errors import pip_command


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A distribution, the extra of kframe-controller that installs it, and the names of what it offers."""

    distribution: str
    extra: str
    commands: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()
    directory: str = ""
    """The kind of directory that it reads as a snapshot, if any."""
    directory_entries: tuple[str, ...] = ()
    """Names of files and directories of which such a directory has at least one."""

    def hint(self) -> str:
        """How to install it."""
        return f"{self.distribution} offers it: {pip_command(self.extra)}"


KNOWN_PLUGINS: Final = (
    KnownPlugin("kframe-console", "console", commands=("console",)),
    KnownPlugin("kframe-kafka-wire", "live", schemes=("kafka",)),
    KnownPlugin(
        "kframe-kraft",
        "kraft",
        commands=("kraft", "log"),
        schemes=("kraft", "kraft-memory"),
        directory="metadata.log.dir of a KRaft node",
        directory_entries=("__cluster_metadata-0", "meta.properties"),
    ),
    KnownPlugin("kframe-simulator", "sim", commands=("sim",)),
    KnownPlugin("kframe-zookeeper", "zookeeper", schemes=("zookeeper",)),
)


def plugin_of_command(name: str) -> KnownPlugin | None:
    """The plugin that has the command ``kframe NAME``, or None."""
    return next((plugin for plugin in KNOWN_PLUGINS if name in plugin.commands), None)


def plugin_of_scheme(scheme: str) -> KnownPlugin | None:
    """The plugin that serves URLs of the scheme, or None."""
    return next((plugin for plugin in KNOWN_PLUGINS if scheme in plugin.schemes), None)


def plugin_of_directory(path: Path) -> KnownPlugin | None:
    """The plugin that reads the directory as a snapshot, or None."""
    return next(
        (plugin for plugin in KNOWN_PLUGINS if any((path / name).exists() for name in plugin.directory_entries)), None
    )
