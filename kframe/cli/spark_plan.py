"""``kframe spark plan``: a reassignment plan for each cluster of a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.numbers import limit_option
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.plan_goals import chosen_terms, goal_options, term_options
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.spark_fleet import fleet_rack_map_option, left_out_of, open_with_racks
from kframe.cli.spark_session import SparkSettings, planned_in, report_messages, spark_options

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile

_SCHEMA: Final = "kframe.spark-plans/v1"
#: Columns that appear only in wide tables and data.
_WIDE: Final = frozenset({"scope", "reassigning", "unit", "exact", "crowded_before", "crowded_after", "proof"})


@click.command("plan")
@click.argument("folder", metavar="DIR")
@fleet_rack_map_option("DIR")
@goal_options
@term_options
@plugin_options
@click.option(
    "--weights",
    type=click.Path(file_okay=False, exists=True),
    metavar="DIR",
    help="Sizes by cluster: CLUSTER.parquet, .csv or .json with topic, partition and bytes.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write summaries and moves as Parquet by cluster to DIR.",
)
@click.option("--force", is_flag=True, help="Plan again what is in the DIR of --out already.")
@limit_option
@spark_options
@output_option
def plan_clusters(
    folder: str,
    rack_map: InputFile | None,
    goals: dict[str, Any],
    goal: str | None,
    cost_terms: tuple[str, ...],
    plugins: PluginSettings,
    weights: str | None,
    out: str | None,
    force: bool,
    limit: int | None,
    spark: SparkSettings,
    output: str,
) -> None:
    """Make a plan for each cluster of the fleet in DIR, as kframe plan generate does, and print a summary of each.

    Exit code 3: a cluster has no plan, because the request names what it lacks. 1: a plan does not do all that is
    requested. With --out, clusters that are there already are not planned again.
    """
    from kframe.plans.generate import PlanRequest
    from kframe.spark.marks import Writing
    from kframe.spark.plans import PLANS, PlanningStage
    from kframe.spark.stages import run_stage

    PlanRequest(**goals, **chosen_terms(plugins, goal, cost_terms))
    stage = PlanningStage(
        goals,
        _absolute(weights),
        goal,
        tuple(dict.fromkeys(cost_terms)),
        _absolute(plugins.plugins_dir),
        plugins.disabled,
    )
    session, fleet = open_with_racks(spark, folder, rack_map, fingerprints=out is not None)
    with run_stage(session, fleet, stage, Writing(out, force, planned_in(out, "clusters"))) as result:
        rows, problems = list(result.rows()), result.problems
    left_out = left_out_of(fleet, fleet.names(), problems)
    with rows_document(OutputTable(_SCHEMA, PLANS.schema.names, rows, _WIDE, limit), output) as document:
        document["left_out"] = left_out.parts()
    left_out.report()
    lines = (f"cluster {problem['cluster']}: {problem['problem']}" for problem in problems)
    report_messages(result.changed, lines, {}, "cluster")
    if not all(row["targets_met"] for row in rows):
        click.get_current_context().exit(1)


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else str(Path(path).absolute())
