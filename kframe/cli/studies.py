"""Options shared by commands that analyse a snapshot: its path, and the controller's configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import click

from kframe.cli.completion import complete_selectors
from kframe.cli.inputs import INPUT, NamedPath
from kframe.cli.options import collected
from kframe.cli.output import BadInput
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.reading import SnapshotReading, reading_options
from kframe.cli.topics import rack_names

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
    selector_options: Mapping[str, str]
    plugins: PluginSettings

    def open(self) -> WhatIf:
        """Read the snapshot and take ownership of its cluster. Raises InputError or BadInput for unusable input."""
        from kframe.whatif import WhatIf
        from kframe.whatif.engines.choice import engine_of

        selectors = chosen_selectors(self.plugins, self.selectors, self.selector_options)
        return WhatIf.of(engine_of(self.cluster.read(), self.cluster.config, selectors))


def chosen_selectors(
    plugins: PluginSettings, names: Iterable[str], options: Mapping[str, str] = MappingProxyType({})
) -> dict[ElectionKind, LeaderSelector]:
    """The leader selectors called ``names``; no plugin is loaded if there is none.

    ``options`` has texts by ``NAME.OPTION``. Raises PluginError, ConfigError, and BadInput for another selector.
    """
    chosen, values = tuple(names), dict[str, dict[str, object]]()
    for key, text in options.items():
        name, _, option = key.rpartition(".")
        if name not in chosen:
            raise BadInput(f"--selector-option {key}: found selector {name!r}, expected one that --selector names")
        values.setdefault(name, {})[option] = text
    return plugins.registry().selectors_for(chosen, values) if chosen else {}


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


def pairs_of_option(_ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Callback of an option for ``KEY=VALUE``."""
    return config_pairs(texts, option.opts[0])


config_option: Final = click.option(
    "--config",
    multiple=True,
    callback=pairs_of_option,
    metavar="KEY=VALUE",
    help="Kafka's configuration key; may be repeated.",
)
selector_option: Final = click.option(
    "--selector",
    "selectors",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_selectors,
    help="Leader selector to use; may be repeated.",
)
selector_settings_option: Final = click.option(
    "--selector-option",
    "selector_options",
    multiple=True,
    callback=pairs_of_option,
    metavar="NAME.OPTION=VALUE",
    help="Option of a leader selector; may be repeated.",
)


#: Adds SNAPSHOT, the options of ``reading_options`` and ``--config`` to a command, which receives them as ``cluster``.
cluster_options: Final = collected(
    "cluster",
    ClusterSettings,
    click.argument("source", metavar="SNAPSHOT", type=INPUT),
    reading_options,
    config_option,
)
#: Adds those, ``--selector`` and the plugin options to a command, which receives them as ``study``.
study_options: Final = collected(
    "study",
    StudySettings,
    cluster_options,
    selector_option,
    selector_settings_option,
    plugin_options,
)
#: Options that select brokers by their racks, and how several fail.
racks_option: Final = click.option(
    "--racks",
    multiple=True,
    callback=rack_names,
    metavar="RACK,...",
    help="All brokers of these racks; may be repeated.",
)
together_option: Final = click.option(
    "--together/--one-by-one",
    default=True,
    help="Whether all brokers are affected at once (default), or one after another.",
)
election_option: Final = click.option(
    "--type", "election", type=click.Choice(("preferred", "unclean")), required=True, help="Kind of election."
)
