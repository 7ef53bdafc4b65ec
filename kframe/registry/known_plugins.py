"""The distributions of kframe's own plugins, so that a message can name the one that a command or a URL needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe.errors.extras import pip_command


@dataclass(frozen=True, slots=True)
class KnownPlugin:
    """A distribution, the extra of kframe-controller that installs it, and the names of what it offers."""

    distribution: str
    extra: str
    commands: tuple[str, ...] = ()
    schemes: tuple[str, ...] = ()

    def hint(self) -> str:
        """How to install it."""
        return f"{self.distribution} offers it: {pip_command(self.extra)}"


KNOWN_PLUGINS: Final = (
    KnownPlugin("kframe-kafka-wire", "live", schemes=("kafka",)),
    KnownPlugin("kframe-kraft", "kraft", commands=("kraft", "log"), schemes=("kraft",)),
    KnownPlugin("kframe-simulator", "sim", commands=("sim",)),
    KnownPlugin("kframe-zookeeper", "zookeeper", schemes=("zookeeper",)),
)


def plugin_of_command(name: str) -> KnownPlugin | None:
    """The plugin that has the command ``kframe NAME``, or None."""
    return next((plugin for plugin in KNOWN_PLUGINS if name in plugin.commands), None)


def plugin_of_scheme(scheme: str) -> KnownPlugin | None:
    """The plugin that serves URLs of the scheme, or None."""
    return next((plugin for plugin in KNOWN_PLUGINS if scheme in plugin.schemes), None)
