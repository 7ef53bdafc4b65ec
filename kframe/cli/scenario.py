"""``kframe scenario``: run scenario files on the controller, and record its actions."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.output import BadInput, OutputTable, ReportingGroup, emit_heading, emit_rows, output_option
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.studies import PATH, chosen_selectors, selector_option

if TYPE_CHECKING:
    from kframe.scenario.runner import ScenarioRunner

_STEP_COLUMNS: Final = ("step", "kind", "argument", "stored", "leader_and_isr", "update_metadata", "stop_replica",
                        "response")  # fmt: skip
_APIS: Final = {"LeaderAndIsr": "leader_and_isr", "UpdateMetadata": "update_metadata", "StopReplica": "stop_replica"}


@click.group("scenario", cls=ReportingGroup)
def group() -> None:
    """Play scenario files (kframe.scenario/v1) to the controller, and write down what it does."""


@group.command()
@click.argument("source", metavar="FILE", type=PATH)
@click.option("--trace", "target", metavar="OUT", type=PATH, help="Write the trace (kframe.trace/v1) to this file.")
@selector_option
@plugin_options
@output_option
def run(source: Path, target: Path | None, selectors: tuple[str, ...], plugins: PluginSettings, output: str) -> None:
    """Play FILE. A table has a line a step; -o json is the trace itself."""
    runner = _runner(source, selectors, plugins)
    trace = runner.play()
    if target is not None:
        _write(target, f"{json.dumps(trace, indent=1)}\n")
    if output == "json":
        click.echo(json.dumps(trace, indent=1))
        return
    emit_heading(f"{trace['scenario']}: {trace['controller']}") if output in ("table", "wide") else None
    rows = [_step_row(number, step) for number, step in enumerate(trace["steps"], 1)]
    emit_rows(OutputTable("kframe.scenario-steps/v1", _STEP_COLUMNS, rows), output)


@group.command()
@click.argument("sources", metavar="FILE...", nargs=-1, required=True, type=PATH)
@output_option
def check(sources: tuple[Path, ...], output: str) -> None:
    """Check each FILE by playing it, without its trace. Exit code 2 if one is refused."""
    rows = [_checked(source) for source in sources]
    emit_rows(OutputTable("kframe.scenario-check/v1", ("file", "playable", "steps", "problem"), rows), output)
    bad = sum(not row["playable"] for row in rows)
    if bad:
        raise BadInput(f"{bad} of {len(rows)} scenarios cannot be played")


def _checked(source: Path) -> dict[str, Any]:
    from kframe.errors import InputError

    try:
        runner = _runner(source, (), PluginSettings())
        runner.play()  # Some errors, such as a broker that is not registered at its step, show only then.
    except InputError as problem:
        return {"file": str(source), "playable": False, "steps": None, "problem": str(problem)}
    return {"file": str(source), "playable": True, "steps": len(runner.scenario.steps), "problem": None}


def _runner(source: Path, selectors: tuple[str, ...], plugins: PluginSettings) -> ScenarioRunner:
    from kframe.scenario.format import read_scenario
    from kframe.scenario.runner import ScenarioRunner

    scenario = read_scenario(source)
    models = next(iter(plugins.registry().broker_models.values()), None) if scenario.brokers_replicate else None
    return ScenarioRunner(
        scenario, chosen_selectors(plugins, selectors), make_replication=None if models is None else models.make
    )


def _step_row(number: int, step: dict[str, Any]) -> dict[str, Any]:
    ((kind, argument),) = step["step"].items()
    sent = dict.fromkeys(_APIS.values(), 0)
    for request in step["requests"]:
        sent[_APIS[request["api"]]] += 1
    text = json.dumps(argument)
    return {
        "step": number,
        "kind": kind,
        "argument": text if len(text) <= 40 else f"{text[:37]}...",
        "stored": len(step["partitions"]),
        **sent,
        "response": step["response"],
    }


def _write(target: Path, text: str) -> None:
    """Write the whole file or nothing. Raises BadInput if it cannot be written."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(0o644)
            Path(name).replace(target)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise BadInput(
            f"{target}: found {problem.strerror or problem}, expected a file that can be written"
        ) from problem
