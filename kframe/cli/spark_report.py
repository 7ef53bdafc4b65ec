"""``kframe spark report``: the outcomes of scenarios, by cluster, broker, rack or topic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from kframe.cli.numbers import limit_of
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.progress import progress
from kframe.cli.report import check_page, force_option, report_option, write_page
from kframe.cli.spark_fleet import LeftOutClusters
from kframe.cli.studies import PATH

#: The keys of ``kframe.spark.report.REPORTS``.
BY: Final = ("cluster", "broker", "rack", "topic")
#: Rows that are made Python objects at a time.
_BATCH: Final = 10_000
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
@output_option
def report(
    folder: str,
    by: str,
    limit: int,
    plot: Path | None,
    page: Path | None,
    force: bool,
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
        new_figure(1, 1)  # Report a missing matplotlib before the results are read.
    played, chosen = written(folder), REPORTS[by]
    with progress("summing up") as tick:
        rows = chosen.rows(played, tick)
    listed = rows[:limit] if output in ("table", "wide") else rows
    left_out = LeftOutClusters(chosen.left_out(played, rows))
    schema = f"kframe.spark-report-{by}/v1"
    with rows_document(OutputTable(schema, rows.schema.names, _records(listed), _WIDE), output) as document:
        document["left_out"] = left_out.parts()
    if len(listed) < len(rows):
        click.echo("and more: --limit shows them", err=True)
    left_out.report()
    if plot is not None:
        clusters = rows if by == BY[0] else REPORTS[BY[0]].rows(played)
        write_plot(clusters[:limit].to_pylist(), plot)
    if page is not None:
        write_page(page, page_document(page_of(by, folder, rows[:limit].to_pylist(), len(rows), left_out.parts())))


def _records(rows: Any) -> Iterator[dict[str, Any]]:
    """The rows of an Arrow table. Holds those of one batch at a time."""
    for batch in rows.to_batches(max_chunksize=_BATCH):
        yield from batch.to_pylist()
