"""``kframe spark report``: the outcomes of scenarios, by cluster, broker, rack or topic."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

import click

from kframe.cli.numbers import limit_of
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.report import check_page, force_option, report_option, write_page
from kframe.cli.spark_fleet import LeftOutClusters
from kframe.cli.spark_session import SparkSettings, spark_options
from kframe.cli.studies import PATH

#: The keys of ``kframe.spark.report.REPORTS``.
BY: Final = ("cluster", "broker", "rack", "topic")
#: Columns that appear only in wide tables and data.
_WIDE: Final = frozenset(
    {
        "partitions",
        "at_min_isr",
        "newly_at_min_isr",
        "newly_under_replicated",
        "states_changed",
        "partition_states_written",
        "registered_before",
        "registered_after",
        "preferred_leaders_before",
        "preferred_leaders_after",
        "in_sync_replicas_before",
        "in_sync_replicas_after",
        "entries",
    }
)


@click.command()
@click.argument("folder", metavar="DIR")
@click.option(
    "--by", type=click.Choice(BY), default=BY[0], show_default=True, help="Entity of each row, in each scenario."
)
@limit_of(20, "Rows that a table, --plot and --report show, the worst first")
@click.option(
    "--plot", type=PATH, metavar="FILE", help="Also draw partitions offline and under min ISR: FILE.svg or FILE.png."
)
@report_option
@force_option
@spark_options
@output_option
def report(
    folder: str,
    by: str,
    limit: int,
    plot: Path | None,
    page: Path | None,
    force: bool,
    spark: SparkSettings,
    output: str,
) -> None:
    """Sum up the results that kframe spark failover and requests wrote to DIR, the worst first.

    By cluster: the impact of each scenario, the state of the cluster after it, and its leader skew. By broker and by
    rack: loads before and after, and requests. By topic: changes.
    """
    from kframe.pages.figures import new_figure
    from kframe.pages.render import document as page_document
    from kframe.spark.report import REPORTS, page_of, write_plot, written
    from kframe.whatif.files import PICTURES, check_file

    check_page(page, force=force)
    if plot is not None:
        check_file(plot, PICTURES, force=force)
        new_figure(1, 1)  # Report a missing matplotlib before Spark starts.
    session = spark.session()
    played, grouping = written(session, folder), REPORTS[by]
    ordered, table = grouping.ordered(played), output in ("table", "wide")
    rows = (row.asDict() for row in (ordered.limit(limit + 1) if table else ordered).toLocalIterator())
    listed = islice(rows, limit) if table else rows
    left_out = LeftOutClusters(grouping.left_out(played))
    schema = f"kframe.spark-report-{by}/v1"
    with rows_document(OutputTable(schema, grouping.table.schema.names, listed, _WIDE), output) as document:
        document["left_out"] = left_out.parts()
    if next(rows, None) is not None:
        click.echo("and more: --limit shows them", err=True)
    left_out.report()
    if plot is not None:
        worst = REPORTS["cluster"].ordered(played).limit(limit).toLocalIterator()
        write_plot([row.asDict() for row in worst], plot)
    if page is not None:
        worst_rows = [row.asDict() for row in ordered.limit(limit).toLocalIterator()]
        content = page_of(by, folder, worst_rows, ordered.count(), left_out.parts())
        write_page(page, page_document(content))
