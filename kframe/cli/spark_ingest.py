"""``kframe spark ingest`` and ``validate``: fleets from files, and whether they hold together."""

from __future__ import annotations

from typing import Any, Final

import click

from kframe.cli.output import Table, emit_rows, output_option
from kframe.cli.spark_session import SparkSettings, spark_options

FOUND: Final = 3
_PATH: Final = click.Path(file_okay=False)


@click.command()
@click.argument("sources", metavar="SRC...", nargs=-1, required=True)
@click.option("--out", "place", type=_PATH, required=True, metavar="DIR", help="Where the fleet's tables are put.")
@click.option("--name", metavar="PATTERN", help="Names of clusters, such as {parent}@{stem}.  [default: {stem}]")
@click.option("--force", is_flag=True, help="Do clusters again whose input has not changed.")
@click.option("--fail-on", multiple=True, type=click.Choice(("quarantined", "refused")),
              help="Exit with 3 if this is found; may be repeated.")  # fmt: skip
@spark_options
@output_option
def ingest(
    sources: tuple[str, ...], place: str, name: str | None, force: bool, fail_on: tuple[str, ...],
    spark: SparkSettings, output: str,
) -> None:  # fmt: skip
    """Put the clusters in SRC into the tables of a fleet in DIR, and what cannot be taken into its quarantine.

    SRC are ZooKeeper dumps, the output of kafka-topics --describe or kcat -L -J, snapshot directories, or directories
    and patterns of these. Clusters that are there already are left alone unless their input has changed.
    """
    from kframe.spark.ingest import INGESTED
    from kframe.spark.ingest import ingest as ingested
    from kframe.spark.sources import find_sources

    found = find_sources(sources, name)
    rows = ingested(spark.session(), found, place, force=force).toArrow().sort_by("cluster").to_pylist()
    emit_rows(Table("kframe.spark-ingest/v1", INGESTED.schema.names, rows, frozenset({"source"})), output)
    bad = {"quarantined": sum(row["quarantined"] for row in rows), "refused": sum(_refused(row) for row in rows)}
    refused, quarantined = bad["refused"], bad["quarantined"]
    click.echo(f"{place}: {len(rows)} clusters, {refused} refused, {quarantined} rows in quarantine", err=True)
    if any(bad[what] for what in fail_on):
        click.get_current_context().exit(FOUND)


def _refused(row: dict[str, Any]) -> bool:
    return row["reason"] is not None
