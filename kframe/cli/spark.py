"""``kframe spark``: operations on fleets, on Spark. Each command is in its own module and is added here."""

from __future__ import annotations

import click

from kframe.cli import spark_ingest, spark_plan, spark_play, spark_report, spark_sweep
from kframe.cli.output import ReportingGroup


@click.group("spark", cls=ReportingGroup)
def group() -> None:
    """Analyze fleets, which are snapshots of many clusters, with Spark.

    Spark is local unless --master or --remote is given, or spark-submit runs the command.
    """


group.add_command(spark_ingest.ingest)
group.add_command(spark_ingest.validate)
group.add_command(spark_play.failover)
group.add_command(spark_play.requests)
group.add_command(spark_sweep.sweep)
group.add_command(spark_report.report)
group.add_command(spark_plan.plan_clusters)
