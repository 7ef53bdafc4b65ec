"""The options of all commands that read a snapshot: its format, its mode, and what it does not show of its brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from kframe.cli.inputs import INPUT
from kframe.cli.numbers import IDS, broker_ids
from kframe.cli.options import collected
from kframe.cli.progress import progress

if TYPE_CHECKING:
    from kframe.snapshot import Snapshot
    from kframe.snapshot.content import Mode
    from kframe.snapshot.files import InputFile

#: The keys of ``kframe.snapshot.FORMATS``, repeated here so that ``--help`` does not import NumPy.
FORMAT_NAMES: Final = ("kframe", "zookeeper", "describe", "kcat", "reassignment")
#: The values of ``kframe.snapshot.content.Mode``, repeated for the same reason.
MODES: Final = ("zookeeper", "kraft")


class FormatChoice(click.Choice[str]):
    """The formats of kframe and, once another name is given or completed, those of plugins."""

    def __init__(self) -> None:
        super().__init__(FORMAT_NAMES)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if a format has it."""
        if value not in FORMAT_NAMES:
            self._load()
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """All names that begin so."""
        self._load()
        return super().shell_complete(ctx, param, incomplete)

    def _load(self) -> None:
        from kframe.snapshot.formats import format_names

        self.choices = format_names()


@dataclass(frozen=True, slots=True)
class SnapshotReading:
    """How a command reads a snapshot: options that say what the file does not show. None: as the file shows it."""

    source_format: str | None = None
    mode: Mode | None = None
    rack_map: InputFile | None = None
    controllers: tuple[int, ...] = ()

    def read(self, source: InputFile | str) -> Snapshot:
        """Read the snapshot. Raises InputError if it, or the rack map, is unusable."""
        from kframe.snapshot import read_snapshot

        with progress("reading") as tick:
            snapshot = read_snapshot(source, self.source_format, tick)
        return self.complete(snapshot)

    def complete(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot in the stated mode, with the racks of the map and the instances of kframe. Raises InputError if
        it contradicts them."""
        if self.mode is not None:
            snapshot = snapshot.with_mode(self.mode)
        snapshot = snapshot.with_controllers(self.controllers)
        if self.rack_map is None:
            return snapshot
        from kframe.snapshot.rack_map import with_racks

        return with_racks(snapshot, self.racks(), str(self.rack_map))

    def racks(self) -> dict[int, str]:
        """The racks of the map by broker id; also those of brokers that no snapshot has yet."""
        if self.rack_map is None:
            return {}
        from kframe.snapshot.rack_map import read_rack_map

        return read_rack_map(self.rack_map)


def controllers_option(metavar: str) -> Callable[[Any], Any]:
    """``--controllers`` of a command whose snapshots ``metavar`` names."""
    help_text = f"Instances of kframe, which are no brokers, where {metavar} does not show them; may be repeated."
    return click.option("--controllers", multiple=True, callback=broker_ids, metavar=IDS, help=help_text)


def rack_map_option(metavar: str, columns: str = "broker and rack") -> Callable[[Any], Any]:
    """``--rack-map`` of a command whose snapshots ``metavar`` names; CSV has these ``columns``."""
    help_text = f"Racks of brokers that {metavar} lacks: CSV with {columns}, or JSON."
    return click.option("--rack-map", type=INPUT, metavar="FILE", help=help_text)


#: Adds options to a command that has SNAPSHOT, which receives them as ``reading``.
reading_options: Final = collected(
    "reading",
    SnapshotReading,
    click.option("--from", "source_format", type=FormatChoice(), help="Format of SNAPSHOT; detected by default."),
    click.option("--mode", type=click.Choice(MODES), help="Mode of the cluster, where SNAPSHOT does not show it."),
    rack_map_option("SNAPSHOT"),
    controllers_option("SNAPSHOT"),
)
