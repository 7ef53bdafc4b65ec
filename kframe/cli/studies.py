"""Options shared by commands that analyse a snapshot: its path, and the controller's configuration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import click

from kframe.cli.completion import complete_selectors
from kframe.cli.inputs import INPUT, NamedPath
from kframe.cli.output import BadInput, with_options
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.reading import SnapshotReading, reading_options
from kframe.errors import PluginError

if TYPE_CHECKING:
    from kframe.model.elections import LeaderSelector
    from kframe.model.ids import ElectionKind
    from kframe.snapshot import Snapshot
    from kframe.snapshot.files import InputFile
    from kframe.whatif import WhatIf

PATH: Final = NamedPath()


def replica_lists(_ctx: click.Context, _option: click.Parameter, value: str | None) -> list[list[int]] | None:
    """Callback of an option for the replicas of each partition: ``[[1,2],[2,3]]``."""
    if value is None:
        return None
    import msgspec

    try:
        return msgspec.json.decode(value, type=list[list[Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]]])
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise click.BadParameter(f"found {value!r}, expected replica lists such as [[1,2],[2,3]]") from problem


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A snapshot and the settings of its controller, from a command's options."""

    source: InputFile
    reading: SnapshotReading
    config: Mapping[str, str]

    def read(self) -> Snapshot:
        """Read the snapshot. Raises InputError if it is unusable."""
        return self.reading.read(self.source)


@dataclass(frozen=True, slots=True)
class StudySettings:
    """A cluster and a controller for experiments."""

    cluster: ClusterSettings
    selectors: tuple[str, ...]
    plugins: PluginSettings

    def open(self) -> WhatIf:
        """Read the snapshot and take ownership of its cluster. Raises InputError or BadInput for unusable input."""
        from kframe.whatif import WhatIf
        from kframe.whatif.engines.choice import engine_of

        selectors = chosen_selectors(self.plugins, self.selectors)
        return WhatIf.of(engine_of(self.cluster.read(), self.cluster.config, selectors))


def chosen_selectors(plugins: PluginSettings, names: Iterable[str]) -> dict[ElectionKind, LeaderSelector]:
    """The leader selectors called ``names``; no plugin is loaded if there is none. Raises BadInput."""
    if not names:
        return {}
    try:
        return plugins.registry().selectors_for(names)
    except PluginError as problem:
        raise BadInput(str(problem)) from problem


config_option: Final = click.option(
    "--config", multiple=True, metavar="KEY=VALUE", help="Kafka's configuration key; may be repeated."
)
selector_option: Final = click.option(
    "--selector",
    "selectors",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_selectors,
    help="Leader selector to use; may be repeated.",
)


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add SNAPSHOT, the options of ``reading_options`` and ``--config`` to a command, as ``cluster``."""

    @functools.wraps(command)
    def with_cluster(
        *args: Any, source: InputFile, reading: SnapshotReading, config: tuple[str, ...], **kwargs: Any
    ) -> Any:
        return command(*args, cluster=ClusterSettings(source, reading, config_pairs(config)), **kwargs)

    return with_options(
        with_cluster,
        click.argument("source", metavar="SNAPSHOT", type=INPUT),
        reading_options,
        config_option,
    )


def study_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``cluster_options``, ``--selector`` and the plugin options to a command, as ``study``."""

    @cluster_options
    @selector_option
    @plugin_options
    @functools.wraps(command)
    def with_settings(
        *args: Any, cluster: ClusterSettings, selectors: tuple[str, ...], plugins: PluginSettings, **kwargs: Any
    ) -> Any:
        return command(*args, study=StudySettings(cluster, selectors, plugins), **kwargs)

    return with_settings


def config_pairs(pairs: Iterable[str], name: str = "--config") -> dict[str, str]:
    """``KEY=VALUE`` texts of the option or argument ``name`` as a dictionary. Raises BadInput."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise BadInput(f"{name}: found {pair!r}, expected KEY=VALUE")
        if key in values:
            raise BadInput(f"{name}: found {key} twice, expected each key once")
        values[key] = value
    return values
