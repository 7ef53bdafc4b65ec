"""The clusters of a fleet in ``kframe spark``: opened with the racks of a map, and those that a table leaves out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.options import collected, with_options
from kframe.cli.progress import progress
from kframe.cli.reading import rack_map_option
from kframe.cli.spark_session import SparkSettings, planned_in
from kframe.errors import InputError

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile
    from kframe.snapshot.rack_map import FleetRackMap
    from kframe.spark.inputs import Fleet
    from kframe.spark.row_types import LeftOutCluster
    from kframe.spark.stages import Stage, StageResult


def fleet_rack_map_option(metavar: str) -> Callable[[Any], Any]:
    """``--rack-map`` of a command for a fleet that ``metavar`` names."""
    return rack_map_option(metavar, "broker and rack, with cluster or without")


def read_racks(file: InputFile | None) -> FleetRackMap | None:
    """The racks in the file of ``--rack-map``, if it was given. Raises InputError for a malformed file."""
    from kframe.snapshot.rack_map import read_fleet_rack_map

    return None if file is None else read_fleet_rack_map(file)


@dataclass(frozen=True, slots=True)
class FleetCommand:
    """The fleet of a command, and where its results are written."""

    folder: str
    rack_map: InputFile | None
    out: str | None
    force: bool
    spark: SparkSettings

    @contextmanager
    def results(
        self, stage: Stage, unit: str = "clusters", scenarios: Callable[[Callable[[], Any]], Any] | None = None
    ) -> Iterator[tuple[Fleet, StageResult]]:
        """The fleet with the racks of the map, and the result of a stage, which consists of ``unit``. Small fleets are
        played in this process, without a session.

        ``scenarios`` makes the rows of SCENARIOS; its argument returns the rows of BROKERS. Names the clusters of the
        map that the fleet lacks. Raises InputError for a malformed map or fleet, before the session starts if the map
        is malformed.
        """
        from kframe.spark.inputs import open_fleet
        from kframe.spark.marks import Writing
        from kframe.spark.stages import run_stage

        racks = read_racks(self.rack_map)
        fleet = open_fleet(self.folder, racks)
        check_racks(racks, fleet.names(), self.folder)
        session = self.spark.session_for(fleet.cost())
        if self.out is not None:
            fleet = fleet.with_fingerprints(session, racks)
        rows = None if scenarios is None else scenarios(functools.cache(lambda: fleet.brokers(session)))
        if session is None and rows is not None:
            session = self.spark.session_for(fleet.cost(rows["cluster"].to_pylist()))
        writing = Writing(self.out, self.force, planned_in(self.out, unit))
        with ExitStack() as stack:
            with progress(unit) as tick:
                result = stack.enter_context(run_stage(session, fleet, stage, writing, rows, tick))
            yield fleet, result


#: Passes ``folder``, ``rack_map``, ``out``, ``force`` and ``spark`` to a command as ``fleet``.
as_fleet: Final = collected("fleet", FleetCommand)


def fleet_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add DIR and ``--rack-map`` to a command."""
    return with_options(command, click.argument("folder", metavar="DIR"), fleet_rack_map_option("DIR"))


def out_options(verb: str, help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--out`` and ``--force`` of a command whose ``verb`` is done once for each result."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        return with_options(
            command,
            click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help=help_text),
            click.option("--force", is_flag=True, help=f"{verb} again what is in the DIR of --out already."),
        )

    return decorate


def check_racks(racks: FleetRackMap | None, clusters: Set[str], where: str) -> None:
    """Name the clusters of a map that ``where`` lacks. Raises InputError for a map without entries for its clusters."""
    if racks is None or not clusters:
        return
    unknown = sorted(racks.clusters.keys() - clusters)
    if not racks.every and not racks.clusters.keys() & clusters:
        expected = f"racks of {', '.join(sorted(clusters))}"
        raise InputError(racks.name, f"racks of {', '.join(unknown)}" if unknown else "no entry", expected)
    for name in unknown:
        click.echo(f"{racks.name}: {where} has no cluster {name}", err=True)


@dataclass(frozen=True, slots=True)
class LeftOutClusters:
    """What a table of a fleet leaves out, with the reasons."""

    clusters: Sequence[LeftOutCluster]
    """Clusters, and their scenarios if any, without a row."""
    problems: Sequence[LeftOutCluster] = ()
    """Those that a problem stopped. The command reports them itself."""

    def parts(self) -> list[LeftOutCluster]:
        """All of them, by cluster, then by scenario: the field ``left_out`` of a document."""
        return _in_order([*self.clusters, *self.problems])

    def report(self) -> None:
        """Name the clusters, with the reason, on standard error."""
        for part in _in_order(self.clusters):
            scenario = "" if part.scenario is None else f", scenario {part.scenario}"
            click.echo(f"cluster {part.cluster}{scenario}: left out: {part.reason}", err=True)


def left_out_of(
    fleet: Fleet,
    listed: Collection[str],
    problems: Iterable[Mapping[str, Any]] = (),
    reasons: Mapping[str, str] | None = None,
    otherwise: str = "",
) -> LeftOutClusters:
    """The clusters of a fleet without a row in a table; those in ``listed`` have rows.

    A reason is the rejection of the cluster, its entry in ``reasons``, or ``otherwise``. ``problems`` have ``problem``
    by ``cluster`` and, if any, ``scenario``.
    """
    from kframe.spark.row_types import LeftOutCluster

    left_out = {name: f"rejected when it was ingested: {reason}" for name, reason in fleet.rejected.items()}
    for name in fleet.names() - {*listed}:
        left_out[name] = (reasons or {}).get(name, otherwise)
    return LeftOutClusters(
        [LeftOutCluster(name, None, reason) for name, reason in left_out.items()],
        [LeftOutCluster(problem["cluster"], problem.get("scenario"), problem["problem"]) for problem in problems],
    )


def _in_order(parts: Iterable[LeftOutCluster]) -> list[LeftOutCluster]:
    return sorted(parts, key=lambda part: (part.cluster, part.scenario or ""))


def rows_with(parts: Iterable[Any], column: str) -> int | None:
    """Number of rows with a value above 0 in a column; None if a value is null."""
    values = [value for part in parts for value in part[column].to_pylist()]
    return None if None in values else sum(value > 0 for value in values)
