"""``kframe spark failover`` and ``requests``: the outcomes of scenarios in every cluster of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.findings import fail_on_option, findings
from kframe.cli.numbers import IDS, broker_ids, limit_option
from kframe.cli.options import collected, with_options
from kframe.cli.output import OutputTable, output_option, rows_document
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.spark_fleet import FleetCommand, as_fleet, fleet_options, left_out_of, out_options, rows_with
from kframe.cli.spark_session import report_messages, spark_options
from kframe.cli.studies import config_option, racks_option, selector_option, together_option

if TYPE_CHECKING:
    from kframe.spark.play import EngineSettings, ScenarioStage

#: Verbs that need only the other options.
_VERBS: Final = ("fail", "restart", "shutdown", "elect", "fence", "unfence")


@dataclass(frozen=True, slots=True)
class FleetScenario:
    """The scenario of a fleet from a command's options."""

    brokers: tuple[int, ...]
    racks: tuple[str, ...]
    each_broker: bool
    each_rack: bool
    scenarios: str | None
    verb: str
    together: bool
    election: str | None

    def why_none(self) -> str:
        """Why a cluster has no scenario of these."""
        reasons = []
        if self.each_broker:
            reasons.append("no broker is known to be up")
        if self.each_rack:
            reasons.append("no broker that is up has a rack")
        if self.scenarios is not None:
            reasons.append(f"no scenario in {self.scenarios} is for it")
        return "; ".join(reasons)

    def table(self, brokers: Callable[[], Any]) -> Any:
        """The scenarios as rows of SCENARIOS. Calls ``brokers`` for the rows of BROKERS if they are needed.

        Raises UsageError if there is none.
        """
        import pyarrow as pa

        from kframe.spark.scenarios import read_scenarios, scenario_rows, scenarios_of_each

        tables = []
        if self.brokers or self.racks or self.verb == "elect":
            name = "-".join([self.verb, *map(str, self.brokers), *self.racks])
            tables.append(
                scenario_rows(
                    name,
                    self.verb,
                    brokers=self.brokers,
                    racks=self.racks,
                    together=self.together,
                    election=self.election,
                )
            )
        if self.each_broker:
            tables.append(scenarios_of_each("broker", brokers(), self.verb))
        if self.each_rack:
            tables.append(scenarios_of_each("rack", brokers(), self.verb))
        if self.scenarios is not None:
            tables.append(read_scenarios(self.scenarios))
        if not tables:
            raise click.UsageError("no scenario: give --brokers, --racks, --each-broker, --each-rack or --scenarios")
        return pa.concat_tables(tables)


def _engine(config: dict[str, str], selectors: tuple[str, ...], plugins: PluginSettings) -> EngineSettings:
    from kframe.spark.play import EngineSettings

    if plugins.trace:
        plugins.registry()  # report errors here; executors have no terminal
    folder = None if plugins.plugins_dir is None else str(plugins.plugins_dir.absolute())
    return EngineSettings(config, selectors, plugins_dir=folder, disabled=plugins.disabled)


_scenario_option: Final = collected(
    "scenario",
    FleetScenario,
    click.option(
        "--brokers",
        multiple=True,
        callback=broker_ids,
        metavar=IDS,
        help="Brokers of every cluster, such as 2,5 or 1-3; may be repeated.",
    ),
    racks_option,
    click.option("--each-broker", is_flag=True, help="A scenario for each broker that is up."),
    click.option("--each-rack", is_flag=True, help="A scenario for each rack."),
    click.option(
        "--scenarios",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Scenarios as JSON lines, or as a table FILE.parquet.",
    ),
    click.option(
        "--verb", type=click.Choice(_VERBS), default="fail", show_default=True, help="Operation on the brokers."
    ),
    together_option,
    click.option("--type", "election", type=click.Choice(("preferred", "unclean")), help="Kind of election."),
)


def _scenario_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add DIR, ``scenario``, ``rack_map`` and ``engine``, which are scenarios, racks and controllers, to a command."""
    return with_options(
        command,
        fleet_options,
        _scenario_option,
        collected("engine", _engine, config_option, selector_option, plugin_options),
    )


@click.command()
@_scenario_options
@out_options("Play", "Write all tables as Parquet by cluster and scenario to DIR.")
@fail_on_option
@limit_option
@spark_options
@output_option
@as_fleet
def failover(
    fleet: FleetCommand,
    scenario: FleetScenario,
    engine: EngineSettings,
    fail_on: tuple[str, ...],
    limit: int | None,
    output: str,
) -> None:
    """Count the partitions that scenarios affect, in every cluster of the fleet in DIR.

    With --out, changed partitions, loads of brokers, conditions and impacts are written too; clusters and scenarios
    that are there already are not played again.
    """
    from kframe.spark.play import FAILOVER, ScenarioStage

    _run(fleet, ScenarioStage(FAILOVER, engine), "kframe.spark-impacts/v1", scenario, output, limit, fail_on)


@click.command()
@_scenario_options
@out_options("Play", "Write the requests as Parquet by cluster and scenario to DIR.")
@click.option("--encoded", is_flag=True, help="Write encoded request bodies to the DIR of --out too.")
@limit_option
@spark_options
@output_option
@as_fleet
def requests(
    fleet: FleetCommand,
    scenario: FleetScenario,
    engine: EngineSettings,
    encoded: bool,
    limit: int | None,
    output: str,
) -> None:
    """Count the requests to each broker of the fleet in DIR in scenarios, with entries and bytes, by kind.

    The controller of a KRaft cluster sends no requests: failover counts the records that it writes.
    """
    from kframe.spark.play import REQUESTED, ScenarioStage

    _run(fleet, ScenarioStage(REQUESTED, engine, encoded), "kframe.spark-requests/v2", scenario, output, limit)


def _run(
    command: FleetCommand,
    stage: ScenarioStage,
    schema: str,
    scenario: FleetScenario,
    output: str,
    limit: int | None,
    fail_on: tuple[str, ...] = (),
) -> None:
    from kframe.spark.modes import MODES

    listed: set[str] = set()
    with command.results(stage, "clusters and scenarios", scenario.table) as (fleet, result):
        rows = (_plain(row, listed) for row in result.rows())
        with rows_document(OutputTable(schema, result.table.schema.names, rows, limit=limit), output) as document:
            problems = {problem["cluster"]: problem["problem"] for problem in reversed(result.problems)}
            silent = {name: MODES[fleet.clusters[name].mode].why_no_request for name in result.clusters}
            left_out = left_out_of(fleet, {*listed, *problems}, result.problems, silent, scenario.why_none())
            document["left_out"] = left_out.parts()
        left_out.report()
        result.write_left_out(left_out.parts(), fleet.names() | fleet.rejected.keys())
        bad = findings(
            fail_on, lambda condition: rows_with(result.parts(), f"found_{str(condition).replace('-', '_')}")
        )
    report_messages(result, bad, "scenario")


def _plain(row: Mapping[str, Any], listed: set[str]) -> dict[str, Any]:
    """A row as data, whose cluster is added to ``listed``."""
    listed.add(row["cluster"])
    return {name: None if isinstance(value, list) else value for name, value in row.items()}
