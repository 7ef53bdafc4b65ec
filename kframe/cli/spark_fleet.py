"""The clusters of a fleet in ``kframe spark``: opened with the racks of a map, and those that a table leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kframe.cli.reading import rack_map_option
from kframe.errors import InputError

if TYPE_CHECKING:
    from kframe.cli.spark_session import SparkSettings
    from kframe.snapshot.files import InputFile
    from kframe.snapshot.rack_map import FleetRackMap
    from kframe.spark.inputs import Fleet
    from kframe.spark.row_types import LeftOutCluster


def fleet_rack_map_option(metavar: str) -> Callable[[Any], Any]:
    """``--rack-map`` of a command for a fleet that ``metavar`` names."""
    return rack_map_option(metavar, "broker and rack, with cluster or without")


def read_racks(file: InputFile | None) -> FleetRackMap | None:
    """The racks in the file of ``--rack-map``, if it was given. Raises InputError for a malformed file."""
    from kframe.snapshot.rack_map import read_fleet_rack_map

    return None if file is None else read_fleet_rack_map(file)


def open_with_racks(
    spark: SparkSettings, folder: str, rack_map: InputFile | None, *, fingerprints: bool
) -> tuple[Any, Fleet]:
    """The SparkSession, and the fleet in ``folder`` with the racks of ``--rack-map``.

    Names the clusters of the map that the fleet lacks. Raises InputError for a malformed map or fleet, before the
    session starts if the map is malformed.
    """
    from kframe.spark.inputs import open_fleet

    racks = read_racks(rack_map)
    session = spark.session()
    fleet = open_fleet(session, folder, fingerprints=fingerprints, racks=racks)
    check_racks(racks, fleet.names(), folder)
    return session, fleet


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
