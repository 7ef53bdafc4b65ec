"""``kframe scenario``: run scenario files on the controller, and record its actions."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.numbers import limit_option
from kframe.cli.output import BadInput, OutputTable, ReportingGroup, emit_heading, emit_rows, output_option
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.studies import PATH, chosen_selectors, selector_option
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.scenario.kraft.runner import KraftScenarioRunner
    from kframe.scenario.runner import ScenarioRunner
    from kframe.scenario.trace_types import ScenarioCheckRow

_APIS: Final = {"LeaderAndIsr": "leader_and_isr", "UpdateMetadata": "update_metadata", "StopReplica": "stop_replica"}


@click.group("scenario", cls=ReportingGroup)
def group() -> None:
    """Play scenario files (kframe.scenario/v1) to the controller, and record what it does."""


@group.command()
@click.argument("source", metavar="FILE", type=PATH)
@click.option(
    "--trace", "target", metavar="OUT", type=PATH, help="Write the trace (kframe.trace/v1 or trace-kraft/v1)."
)
@selector_option
@plugin_options
@limit_option
@output_option
def run(
    source: Path,
    target: Path | None,
    selectors: tuple[str, ...],
    plugins: PluginSettings,
    limit: int | None,
    output: str,
) -> None:
    """Play FILE. A table has a line a step; -o json is the trace itself."""
    from kframe.whatif.files import replacing

    trace = _runner(source, selectors, plugins).play()
    if target is not None:
        with replacing(target) as new:
            new.write_text(f"{json.dumps(trace, indent=1)}\n", encoding="utf-8")
    if output == "json":
        click.echo(json.dumps(trace, indent=1))
        return
    emit_heading(f"{trace['scenario']}: {trace['controller']}") if output in ("table", "wide") else None
    rows = [_row(number, step) for number, step in enumerate(trace["steps"], 1)]
    emit_rows(OutputTable("kframe.scenario-steps/v1", list(rows[0]), rows, limit=limit), output)


@group.command()
@click.argument("sources", metavar="FILE...", nargs=-1, required=True, type=PATH)
@limit_option
@output_option
def check(sources: tuple[Path, ...], limit: int | None, output: str) -> None:
    """Check each FILE by playing it, without its trace. Exit code 2 if one is refused."""
    rows = [_checked(source) for source in sources]
    emit_rows(
        OutputTable("kframe.scenario-check/v1", ("file", "playable", "steps", "problem"), rows, limit=limit), output
    )
    bad = sum(not row.playable for row in rows)
    if bad:
        raise BadInput(f"cannot be played: {bad} of {counted(len(rows), 'scenario')}")


def _checked(source: Path) -> ScenarioCheckRow:
    from kframe.errors import InputError
    from kframe.scenario.trace_types import ScenarioCheckRow

    try:
        runner = _runner(source, (), PluginSettings())
        runner.play()  # Some errors, such as a broker that is not registered at its step, show only then.
    except InputError as problem:
        return ScenarioCheckRow(str(source), playable=False, steps=None, problem=str(problem))
    return ScenarioCheckRow(str(source), playable=True, steps=len(runner.scenario.steps), problem=None)


def _runner(source: Path, selectors: tuple[str, ...], plugins: PluginSettings) -> ScenarioRunner | KraftScenarioRunner:
    """The runner of a scenario of either mode."""
    from kframe.scenario import strict_yaml
    from kframe.scenario.format import parse_scenario, read_text
    from kframe.scenario.kraft.format import is_kraft, parse_kraft_scenario
    from kframe.scenario.kraft.runner import KraftScenarioRunner
    from kframe.scenario.runner import ScenarioRunner

    text = read_text(source)
    document = strict_yaml.load(text, str(source))
    if is_kraft(document):
        return KraftScenarioRunner(parse_kraft_scenario(document, str(source)), chosen_selectors(plugins, selectors))
    scenario = parse_scenario(text, str(source))
    models = next(iter(plugins.registry().broker_models.values()), None) if scenario.brokers_replicate else None
    return ScenarioRunner(
        scenario, chosen_selectors(plugins, selectors), make_replication=None if models is None else models.make
    )


def _row(number: int, step: dict[str, Any]) -> dict[str, Any]:
    """A step, with counts of what a controller commits in KRaft mode, or stores and sends in ZooKeeper mode."""
    ((kind, argument),) = step["step"].items()
    text = json.dumps(argument)
    shortened = text if len(text) <= 40 else f"{text[:37]}..."
    if "batches" in step:
        batches = [batch["records"] for batch in step["batches"] if not batch.get("control")]
        counts = {"batches": len(batches), "records": sum(map(len, batches))}
    else:
        apis = Counter(request["api"] for request in step["requests"])
        counts = {"stored": len(step["partitions"]), **{name: apis[api] for api, name in _APIS.items()}}
    return {"step": number, "kind": kind, "argument": shortened, **counts, "response": step["response"]}
