"""``kframe spark sweep``: every failure of one broker, two brokers and one rack in every cluster of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.findings import fail_on_option, findings
from kframe.cli.numbers import WholeNumber
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.spark_fleet import fleet_rack_map_option, left_out_of, open_with_racks
from kframe.cli.spark_session import SparkSettings, planned_in, report_messages, spark_options
from kframe.cli.studies import config_option, config_pairs
from kframe.cli.sweep import KRAFT_COLUMNS, WIDE, SweepOptions, failure_options, shorten_broker_lists

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile

_SCHEMA: Final = "kframe.spark-sweep/v1"
#: Columns that count effects of the failure itself (``Sweep.count_of``).
_EFFECT_COLUMNS: Final = {
    "offline": "newly_offline",
    "under-min-isr": "newly_under_min_isr",
    "data-loss": "unclean_elections",
    "possible-data-loss": "newly_may_lose_data",
}


@click.command()
@click.argument("folder", metavar="DIR")
@fleet_rack_map_option("DIR")
@failure_options
@click.option("--limit", type=WholeNumber(), default=5, show_default=True,
              help="Failures of each kind that a table lists for each cluster; data has them all.")  # fmt: skip
@config_option
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR",
              help="Also write all failures as Parquet by cluster to DIR.")  # fmt: skip
@click.option("--force", is_flag=True, help="Sweep again what is in the DIR of --out already.")
@fail_on_option
@spark_options
@output_option
def sweep(
    folder: str, rack_map: InputFile | None, sweep_options: SweepOptions, limit: int, config: tuple[str, ...],
    out: str | None, force: bool, fail_on: tuple[str, ...], spark: SparkSettings, output: str,
) -> None:  # fmt: skip
    """Fail every broker, every two brokers together, and every rack, in each cluster of the fleet in DIR.

    In KRaft clusters, fail every log directory too. Each failure starts from the present state of the cluster. The
    built-in rule elects the leaders. With --out, clusters that are there already are not swept again.
    """
    from kframe.spark.clusterwise import swept as sweeping
    from kframe.spark.marks import Writing
    from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS
    from kframe.spark.sweeping import Sweeping

    tables = (PARTITIONS, BROKERS, CLUSTERS)
    session, fleet = open_with_racks(spark, folder, rack_map, tables, fingerprints=out is not None)
    settings = Sweeping(config_pairs(config), sweep_options.depth, sweep_options.racks, sweep_options.by)
    with sweeping(session, fleet, settings, Writing(out, force, planned_in(out, "clusters"))) as result:
        problems = [row.asDict() for row in result.problems.orderBy("cluster", "problem").collect()]
        listed = {problem["cluster"] for problem in problems}
        with rows_document(_table(result.summary, limit, output, listed), output) as document:
            left_out = left_out_of(fleet, listed, problems, otherwise="no broker is known to be up, so none can fail")
            document["left_out"] = left_out.rows()
        bad = findings(fail_on, lambda condition: _rows_with(result.summary, _EFFECT_COLUMNS[condition]))
    if limit or output not in ("table", "wide"):
        left_out.report()
    report_messages(
        result.changed, (f"cluster {problem['cluster']}: {problem['problem']}" for problem in problems), bad, "failure"
    )


def _table(result: Any, limit: int, output: str, listed: set[str]) -> OutputTable:
    """The failures. Their clusters are added to ``listed`` when they are printed."""

    def data(row: Any) -> dict[str, Any]:
        listed.add(row["cluster"])
        return _rounded(row.asDict())

    ordered = result.orderBy("cluster", "rank")
    columns = ["cluster", "rank", *KRAFT_COLUMNS, "rules"]
    table = output in ("table", "wide")
    selected = ordered.where(f"rank_of_kind <= {limit}") if table else ordered
    rows = map(data, selected.select(*columns).toLocalIterator())
    return OutputTable(_SCHEMA, columns, shorten_broker_lists(rows) if table else rows, WIDE | {"rules"})


def _rows_with(frame: Any, column: str) -> int | None:
    """Number of rows with a value above 0 in a column; None if a value is null."""
    ((unknown, positive),) = frame.selectExpr(f"count_if({column} is null)", f"count_if({column} > 0)").collect()
    return None if unknown else int(positive)


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Rounded as in ``kframe whatif sweep``."""
    return row | {name: None if row[name] is None else round(row[name], 3) for name in ("leaders_mean", "leader_skew")}
