"""The clusters of a fleet in ``kframe spark``: opened with the racks of a map, and those that a table leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

import click

from kframe.cli.reading import rack_map_option
from kframe.errors import InputError

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile
    from kframe.snapshot.rack_map import FleetRackMap
    from kframe.spark.marks import LeftOutPart


def fleet_rack_map_option(metavar: str) -> Callable[[Any], Any]:
    """``--rack-map`` of a command for a fleet that ``metavar`` names."""
    return rack_map_option(metavar, "broker and rack, with cluster or without")


def read_racks(file: InputFile | None) -> FleetRackMap | None:
    """The racks in the file of ``--rack-map``, if it was given. Raises InputError for a malformed file."""
    from kframe.snapshot.rack_map import read_fleet_rack_map

    return None if file is None else read_fleet_rack_map(file)


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


def left_out_clusters(
    fleet: Any, listed: Collection[str], reasons: Mapping[str, str] | None = None, otherwise: str = ""
) -> dict[str, str]:  # fmt: skip
    """Why clusters of a fleet have no row in a table, by name.

    A reason is the rejection of the cluster, its entry in ``reasons``, or ``otherwise``. ``listed`` have rows.
    """
    left_out = {name: f"rejected when it was ingested: {reason}" for name, reason in fleet.rejected.items()}
    for name in fleet.names() - {*listed}:
        left_out[name] = (reasons or {}).get(name, otherwise)
    return left_out


def left_out_parts(
    left_out: Mapping[str, str], problems: Iterable[Mapping[str, Any]] = ()
) -> list[LeftOutPart]:  # fmt: skip
    """Clusters with their reasons, and ``problem`` by ``cluster`` and, if any, ``scenario``, in order."""
    from kframe.spark.marks import LeftOutPart

    parts = [LeftOutPart(name, None, reason) for name, reason in left_out.items()]
    parts += (LeftOutPart(problem["cluster"], problem.get("scenario"), problem["problem"]) for problem in problems)
    return in_order(parts)


def in_order(parts: Iterable[LeftOutPart]) -> list[LeftOutPart]:
    """By cluster, then by scenario."""
    return sorted(parts, key=lambda part: (part.cluster, part.scenario or ""))


def left_out_rows(parts: Iterable[LeftOutPart]) -> list[dict[str, str | None]]:
    """The field ``left_out`` of a document."""
    return [{"cluster": part.cluster, "scenario": part.scenario, "reason": part.reason} for part in parts]


def report_left_out(parts: Iterable[LeftOutPart]) -> None:
    """Name what is left out, with the reason, on standard error."""
    for part in parts:
        scenario = "" if part.scenario is None else f", scenario {part.scenario}"
        click.echo(f"cluster {part.cluster}{scenario}: left out: {part.reason}", err=True)
