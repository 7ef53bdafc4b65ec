"""``kframe spark sweep``: every failure of one broker, two brokers and one rack in every cluster of a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from kframe.cli.output import Table, emit_rows, output_option
from kframe.cli.spark_session import SparkSettings, spark_options
from kframe.cli.studies import FOUND, config_pairs
from kframe.cli.sweep import COLUMNS, SORT_BY, WIDE, shown
from kframe.errors import InputError

_SCHEMA: Final = "kframe.spark-sweep/v1"


@click.command()
@click.argument("place", metavar="DIR")
@click.option("--depth", type=click.IntRange(1, 2), default=2, show_default=True, help="Brokers that fail together.")
@click.option("--racks/--no-racks", default=True, help="Whether whole racks fail, too (default).")
@click.option("--sort-by", type=click.Choice(SORT_BY), default=SORT_BY[0], show_default=True,
              help="What the worst is judged by first.")  # fmt: skip
@click.option("--top", type=click.IntRange(min=0), default=5, show_default=True,
              help="Failures of each kind that a table lists for each cluster; data has them all.")  # fmt: skip
@click.option("--config", multiple=True, metavar="KEY=VALUE", help="Kafka's configuration key.")
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR",
              help="Also write all failures as Parquet by cluster to DIR.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace failures that are in the DIR of --out already.")
@spark_options
@output_option
def sweep(
    place: str, depth: int, racks: bool, sort_by: str, top: int, config: tuple[str, ...], out: str | None, force: bool,
    spark: SparkSettings, output: str,
) -> None:  # fmt: skip
    """Every broker dies, every two brokers together, and every rack, in each cluster of the fleet in DIR.

    Each time it is the cluster as it stands that is hit. The built-in rule elects the leaders.
    """
    from kframe.spark.fleet import open_fleet
    from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS
    from kframe.spark.sweeping import FAILURES
    from kframe.spark.sweeping import sweep as swept
    from kframe.whatif import SortBy

    if out is not None and Path(out).exists() and not force:
        raise InputError(out, "something already there", "a new directory, or --force to replace it")
    session = spark.session()
    fleet = open_fleet(session, place, (PARTITIONS, BROKERS, CLUSTERS))
    found = swept(fleet["partitions"], fleet["brokers"], fleet["clusters"], config_pairs(config), depth=depth,
                  racks=racks, by=SortBy(sort_by))  # fmt: skip
    if out is not None:
        found.write.mode("overwrite" if force else "errorifexists").partitionBy("cluster").parquet(out)
        found = session.read.schema(FAILURES.ddl).parquet(out).select(*FAILURES.schema.names)
    else:
        found = found.persist()
    try:
        _emit(found, top, output)
        problems = [row.asDict() for row in found.where("problem is not null").orderBy("cluster").collect()]
    finally:
        found.unpersist()
    for one in problems:
        click.echo(f"cluster {one['cluster']}: {one['problem']}", err=True)
    if problems:
        click.get_current_context().exit(FOUND)


def _emit(found: Any, top: int, output: str) -> None:
    ordered = found.where("problem is null").orderBy("cluster", "rank")
    columns = ["cluster", "rank", *COLUMNS]
    table = output in ("table", "wide")
    chosen = ordered.where(f"rank_of_kind <= {top}") if table else ordered
    rows = (_rounded(row.asDict()) for row in chosen.select(*columns).toLocalIterator())
    emit_rows(Table(_SCHEMA, columns, shown(rows) if table else rows, WIDE), output)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """As ``kframe whatif sweep`` prints it."""
    return row | {name: None if row[name] is None else round(row[name], 3) for name in ("leaders_mean", "leader_skew")}
