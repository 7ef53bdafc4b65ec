"""``kframe spark sweep``: every failure of one broker, two brokers and one rack in every cluster of a fleet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import click

from kframe.cli.findings import fail_on_option, findings
from kframe.cli.numbers import limit_of
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.spark_fleet import FleetCommand, as_fleet, fleet_options, left_out_of, out_options, rows_with
from kframe.cli.spark_session import report_messages, spark_options
from kframe.cli.studies import config_option
from kframe.cli.sweep import WIDE, failure_options, shorten_broker_lists

_SCHEMA: Final = "kframe.spark-sweep/v1"
#: Columns that count effects of the failure itself (``Sweep.count_of``).
_EFFECT_COLUMNS: Final = {
    "offline": "newly_offline",
    "under-min-isr": "newly_under_min_isr",
    "data-loss": "unclean_elections",
    "possible-data-loss": "newly_may_lose_data",
}


@click.command()
@fleet_options
@failure_options
@limit_of(5, "Failures of each kind that a table lists for each cluster")
@config_option
@out_options("Sweep", "Also write all failures as Parquet by cluster to DIR.")
@fail_on_option
@spark_options
@output_option
@as_fleet
def sweep(
    fleet: FleetCommand,
    depth: int,
    racks: bool,
    sort_by: str,
    limit: int,
    config: dict[str, str],
    fail_on: tuple[str, ...],
    output: str,
) -> None:
    """Fail every broker, every two brokers together, and every rack, in each cluster of the fleet in DIR.

    In KRaft clusters, fail every log directory too. Each failure starts from the present state of the cluster. The
    built-in rule elects the leaders. With --out, clusters that are there already are not swept again.
    """
    from kframe.spark.sweeping import SweepStage
    from kframe.whatif import SortBy

    with fleet.results(SweepStage(config, depth, racks, SortBy(sort_by))) as (content, result):
        problems = result.problems
        listed = {problem["cluster"] for problem in problems}
        with rows_document(_table(result.parts(), limit, output, listed), output) as document:
            left_out = left_out_of(content, listed, problems, otherwise="no broker is known to be up, so none can fail")
            document["left_out"] = left_out.parts()
        bad = findings(fail_on, lambda condition: rows_with(result.parts(), _EFFECT_COLUMNS[condition]))
    if limit or output not in ("table", "wide"):
        left_out.report()
    report_messages(result, bad, "failure")


def _table(parts: Iterable[Any], limit: int, output: str, listed: set[str]) -> OutputTable:
    """The failures of each cluster. The clusters are added to ``listed`` when they are printed."""
    from kframe.whatif.results.sweep import KRAFT_COLUMNS

    columns = ["cluster", "rank", *KRAFT_COLUMNS, "rules"]
    table = output in ("table", "wide")

    def rows() -> Iterator[dict[str, Any]]:
        for part in parts:
            for row in part.to_pylist():
                if not table or row["rank_of_kind"] <= limit:
                    listed.add(row["cluster"])
                    for name in ("leaders_mean", "leader_skew"):  # as in kframe whatif sweep
                        row[name] = None if row[name] is None else round(row[name], 3)
                    yield {name: row[name] for name in columns}

    return OutputTable(_SCHEMA, columns, shorten_broker_lists(rows()) if table else rows(), WIDE | {"rules"})
