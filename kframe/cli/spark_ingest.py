"""``kframe spark ingest`` and ``validate``: create fleets from files, and check their consistency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import HAS_FINDINGS
from kframe.cli.numbers import limit_of, limit_option
from kframe.cli.output import OutputTable, emit_rows, output_option, rows_document
from kframe.cli.reading import MODES, controllers_option
from kframe.cli.spark_fleet import (
    FleetCommand,
    as_fleet,
    check_racks,
    fleet_options,
    fleet_rack_map_option,
    left_out_of,
    out_options,
    read_racks,
)
from kframe.cli.spark_session import SparkSettings, report_messages, report_saved, spark_options
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.snapshot.content import Mode
    from kframe.snapshot.files import InputFile

_PATH: Final = click.Path(file_okay=False)


@click.command()
@click.argument("sources", metavar="SRC...", nargs=-1, required=True)
@click.option("--out", "folder", type=_PATH, required=True, metavar="DIR", help="Directory of the fleet's tables.")
@click.option("--name", metavar="PATTERN", help="Names of clusters, such as {parent}@{stem}.  [default: {stem}]")
@click.option("--mode", type=click.Choice(MODES), help="Mode of the clusters, where SRC does not show it.")
@controllers_option("SRC")
@fleet_rack_map_option("SRC")
@click.option("--force", is_flag=True, help="Ingest clusters again whose input has not changed.")
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(("quarantined", "rejected")),
    help="Exit with 3 if this is found; may be repeated.",
)
@limit_option
@spark_options
@output_option
def ingest(
    sources: tuple[str, ...],
    folder: str,
    name: str | None,
    mode: Mode | None,
    controllers: tuple[int, ...],
    rack_map: InputFile | None,
    force: bool,
    fail_on: tuple[str, ...],
    limit: int | None,
    spark: SparkSettings,
    output: str,
) -> None:
    """Ingest the clusters in SRC into the tables of a fleet in DIR, and invalid ones into its quarantine.

    SRC are ZooKeeper dumps, the output of kafka-topics --describe or kcat -L -J, snapshot directories, or directories
    and patterns of these. Each cluster is checked by the rules of its mode. Clusters that are there already are skipped
    unless their input has changed.
    """
    from kframe.spark.fleet import record_of
    from kframe.spark.ingest import INGESTED
    from kframe.spark.ingest import ingest as ingested
    from kframe.spark.sources import find_sources

    result = find_sources(sources, name)
    racks = read_racks(rack_map)
    check_racks(racks, {source.cluster for source in result}, "SRC")

    def saved_count() -> tuple[int, int]:
        return sum(record_of(Path(folder), source.cluster) is not None for source in result), len(result)

    report_saved(folder, saved_count, "clusters")
    frame = ingested(spark.session(), result, folder, force=force, mode=mode, controllers=controllers, rack_map=racks)
    rows = frame.toArrow().sort_by("cluster").to_pylist()
    emit_rows(OutputTable("kframe.spark-ingest/v1", INGESTED.schema.names, rows, frozenset({"source"}), limit), output)
    bad = {
        "quarantined": sum(row["quarantined"] for row in rows),
        "rejected": sum(row["reason"] is not None for row in rows),
    }
    rejected, quarantined = bad["rejected"], bad["quarantined"]
    clusters, in_quarantine = counted(len(rows), "cluster"), counted(quarantined, "row")
    click.echo(f"{folder}: {clusters}, {rejected} rejected, {in_quarantine} in quarantine", err=True)
    if any(bad[condition] for condition in fail_on):
        click.get_current_context().exit(HAS_FINDINGS)


@click.command()
@fleet_options
@out_options("Validate", "Also write the violations as Parquet by cluster to DIR.")
@click.option(
    "--fail-on", type=click.Choice(("error", "warning")), help="Exit with 3 on findings of this severity or worse."
)
@limit_of(50, "Violations that a table lists")
@spark_options
@output_option
@as_fleet
def validate(fleet: FleetCommand, fail_on: str | None, limit: int, output: str) -> None:
    """List invalid states in the clusters of DIR, and unhealthy partitions.

    DIR is a fleet that kframe spark ingest wrote, or any input of it. An error is a state that Kafka never writes; a
    warning is a partition without a leader, under its min ISR and the like. With --out, clusters that are there already
    are not validated again.
    """
    from kframe.spark.validation import ValidateStage

    counts: Counter[str] = Counter()
    with fleet.results(ValidateStage()) as (content, result):
        clean = set(content.names() - {problem["cluster"] for problem in result.problems})
        for part in result.parts():
            counts.update(part["severity"].to_pylist())
            clean -= set(part["cluster"].to_pylist())
        valid, left_out = sorted(clean), left_out_of(content, content.names(), result.problems)
        rows = _by_severity(result)
        page = islice(rows, limit) if output in ("table", "wide") else rows
        names = result.table.schema.names
        with rows_document(OutputTable("kframe.spark-violations/v1", names, page), output) as document:
            document |= {"left_out": left_out.parts(), "valid": valid}
    errors, warnings = (counts[severity] for severity in ("error", "warning"))
    left_out.report()
    if valid:
        click.echo(f"no violations in {', '.join(valid)}", err=True)
    note = (
        f" ({errors + warnings - limit} not shown)" if output in ("table", "wide") and errors + warnings > limit else ""
    )
    click.echo(f"{fleet.folder}: {counted(errors, 'error')}, {counted(warnings, 'warning')}{note}", err=True)
    report_messages(result, {}, "")
    if (fail_on is not None and errors) or (fail_on == "warning" and warnings):
        click.get_current_context().exit(HAS_FINDINGS)


def _by_severity(result: Any) -> Iterator[dict[str, Any]]:
    """Violations, errors first, then by cluster and rule. Holds those of one cluster at a time."""
    for severity in ("error", "warning"):
        for part in result.parts():
            rows = [row for row in part.to_pylist() if row["severity"] == severity]
            yield from sorted(rows, key=_sort_key)


def _sort_key(row: Mapping[str, Any]) -> list[tuple[bool, Any]]:
    """The key of a violation in the order of its cluster. Absent values come first."""
    return [(row[name] is not None, row[name]) for name in ("rule", "topic", "partition", "actual")]
