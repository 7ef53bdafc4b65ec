"""``kframe spark plan``: a reassignment plan for each cluster of a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from kframe.cli.numbers import limit_option
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.plan_goals import chosen_terms, goal_options, term_options
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.spark_fleet import FleetCommand, as_fleet, fleet_options, left_out_of, out_options
from kframe.cli.spark_session import report_messages, spark_options

_SCHEMA: Final = "kframe.spark-plans/v1"
#: Columns that appear only in wide tables and data.
_WIDE: Final = frozenset({"scope", "reassigning", "unit", "exact", "crowded_before", "crowded_after", "proof"})


@click.command("plan")
@fleet_options
@goal_options
@term_options
@plugin_options
@click.option(
    "--weights",
    type=click.Path(file_okay=False, exists=True),
    metavar="DIR",
    help="Sizes by cluster: CLUSTER.parquet, .csv or .json with topic, partition and bytes.",
)
@out_options("Plan", "Write summaries and moves as Parquet by cluster to DIR.")
@limit_option
@spark_options
@output_option
@as_fleet
def plan_clusters(
    fleet: FleetCommand,
    goals: dict[str, Any],
    goal: str | None,
    cost_terms: tuple[str, ...],
    plugins: PluginSettings,
    weights: str | None,
    limit: int | None,
    output: str,
) -> None:
    """Make a plan for each cluster of the fleet in DIR, as kframe plan generate does, and print a summary of each.

    Exit code 3: a cluster has no plan, because the request names what it lacks. 1: a plan does not do all that is
    requested. With --out, clusters that are there already are not planned again.
    """
    from kframe.plans.generate import PlanRequest
    from kframe.spark.plans import PLANS, PlanningStage

    PlanRequest(**goals, **chosen_terms(plugins, goal, cost_terms))
    stage = PlanningStage(
        goals,
        _absolute(weights),
        goal,
        tuple(dict.fromkeys(cost_terms)),
        _absolute(plugins.plugins_dir),
        plugins.disabled,
    )
    with fleet.results(stage) as (content, result):
        rows = list(result.rows())
    left_out = left_out_of(content, content.names(), result.problems)
    with rows_document(OutputTable(_SCHEMA, PLANS.schema.names, rows, _WIDE, limit), output) as document:
        document["left_out"] = left_out.parts()
    left_out.report()
    report_messages(result, {}, "cluster")
    if not all(row["targets_met"] for row in rows):
        click.get_current_context().exit(1)


def _absolute(path: str | Path | None) -> str | None:
    return None if path is None else str(Path(path).absolute())
