"""``kframe plan``: generate, stage, check, show and execute reassignment plans."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import FAILED
from kframe.cli.findings import emit_mode, emit_preface, emit_release
from kframe.cli.inputs import INPUT, SOURCE, check_distinct, is_url
from kframe.cli.live import COMMAND_CONFIG, CONFIG_OPTION
from kframe.cli.log_dirs import listed_directories, log_dirs_option
from kframe.cli.numbers import limit_of
from kframe.cli.options import collected
from kframe.cli.output import (
    BadInput,
    OutputTable,
    ReportingGroup,
    echo_more,
    emit_data,
    emit_heading,
    emit_record,
    emit_rows,
    emit_section,
    output_option,
    plain,
)
from kframe.cli.plan_disks import disks
from kframe.cli.plan_execute import COMMANDS
from kframe.cli.plan_generate import (
    PlanOutput,
    out_options,
    weights_option,
)
from kframe.cli.plan_generate import generate as generate_plan
from kframe.cli.plan_goals import chosen_leader_selector, chosen_terms, goal_options, rate_option, term_options
from kframe.cli.plan_restarts import restarts
from kframe.cli.plan_stage import limit_options
from kframe.cli.plan_stage import stage as stage_plan
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.reading import SnapshotReading, reading_options
from kframe.cli.report import check_page, force_option, report_option, write_page
from kframe.cli.snapshot import captured
from kframe.cli.studies import config_option, selector_option, selector_settings_option
from kframe.cli.topics import PATTERNS, TOPICS, topic_names
from kframe.model.texts import counted, duration_text

if TYPE_CHECKING:
    from kframe.model.arrays import Int64
    from kframe.plans.check.document import PlanMoves, PlannedPartition
    from kframe.plans.check.report import PlanReport
    from kframe.plans.check.rules import CheckedPlan
    from kframe.snapshot import Snapshot
    from kframe.snapshot.files import InputFile

_FINDINGS: Final = ("severity", "check", "topic", "partition", "error", "detail")
_BROKERS: Final = (
    "broker_id",
    "copied",
    "deleted",
    "replicas_before",
    "replicas_after",
    "preferred_leaders_before",
    "preferred_leaders_after",
)
#: The counts of findings by severity.
_COUNTS: Final = {"error": "errors", "warning": "warnings", "info": "notes"}
#: What the moves of a plan are called in tables, if it is not the name of their field.
_MOVES: Final = {"expected_seconds": "expected duration"}
#: The loads of brokers, named as in ``kframe plan generate``.
_LOADS: Final = {
    "replica_skew_before": "replicas before",
    "replica_skew_after": "replicas after",
    "preferred_skew_before": "leaders before",
    "preferred_skew_after": "leaders after",
}

_ALL_LISTED: Final = "-o json, csv and jsonl list them all"

_LIMIT: Final = limit_of(50)


@click.group("plan", cls=ReportingGroup)
def group() -> None:
    """Generate, stage, check, show and execute reassignment plans, as Kafka's reassignment JSON."""


def _checked_plan(plan: InputFile, source: InputFile, reading: SnapshotReading) -> CheckedPlan:
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.file.read import load_plan

    loaded = load_plan(plan)
    return resolve_plan(loaded, reading.read(source))


_SNAPSHOT: Final = click.argument("source", metavar="SNAPSHOT", type=INPUT)
_PLAN: Final = click.argument("plan", metavar="PLAN", type=INPUT)
#: Adds SNAPSHOT, PLAN and the options of SNAPSHOT to a command, which receives them as ``comparison``.
_comparison_options: Final = collected("comparison", _checked_plan, _SNAPSHOT, _PLAN, reading_options)

for _command in (*COMMANDS, disks, restarts):
    group.add_command(_command)


@group.command()
@click.argument("source", metavar="SNAPSHOT", type=SOURCE)
@reading_options
@CONFIG_OPTION
@COMMAND_CONFIG
@goal_options
@term_options
@selector_option
@selector_settings_option
@weights_option
@log_dirs_option
@out_options
@_LIMIT
@plugin_options
@output_option
def generate(
    source: InputFile | str,
    reading: SnapshotReading,
    config: Path | None,
    command_config: Path | None,
    goals: dict[str, Any],
    goal: str | None,
    cost_terms: tuple[str, ...],
    selectors: tuple[str, ...],
    selector_options: dict[str, str],
    weights: InputFile | None,
    log_dirs: InputFile | None,
    writing: PlanOutput,
    limit: int,
    plugins: PluginSettings,
    output: str,
) -> None:
    """Make a plan with as few moves as possible, and print a lower bound on the moves of any plan.

    SNAPSHOT is a file or directory, - for standard input, or the URL of a live cluster as in kframe snapshot capture.
    Goals may be combined. Exit code 1: the plan does not do all that is requested. The first line says what it lacks,
    and the report lists each such partition with the reason; all others are planned.
    """
    from kframe.plans.generate import PlanRequest

    goals |= chosen_terms(plugins, goal, cost_terms)
    goals["leader_selector"] = chosen_leader_selector(plugins, selectors, selector_options)
    goals["racks"] = _racks(reading.racks(), goals["racks"])
    PlanRequest(**{**goals, "rate": None})
    inputs = [("--weights", weights), ("--log-dirs", log_dirs), ("--rack-map", reading.rack_map)]
    writing.check([("SNAPSHOT", source), *inputs])
    if log_dirs is not None and not goals["demote_directories"]:
        raise BadInput("--log-dirs: found no --demote-directory, expected one with it")
    if is_url(source):
        if reading.source_format is not None:
            raise BadInput(f"--from {reading.source_format}: found a URL, expected a file")
        snapshot = reading.complete(captured(source, config, command_config, plugins))
    else:
        for option, file in (("--config", config), ("--command-config", command_config)):
            if file is not None:
                raise BadInput(f"{option}: found a file as SNAPSHOT, expected the URL of a live cluster")
        snapshot = reading.read(source)
    if goals["demote_directories"]:
        goals["log_directories"] = listed_directories(source, log_dirs, command_config, plugins) or {}
    sizes = _sizes(weights, snapshot)
    request = PlanRequest(**goals, weights=sizes)
    click.get_current_context().exit(generate_plan(snapshot, request, writing, output, limit))


@group.command()
@_SNAPSHOT
@_PLAN
@reading_options
@limit_options
@weights_option
@click.option("--out", metavar="DIR|FILE.json", help="Write stage-001.json … and manifest.json, or only the manifest.")
@report_option
@force_option
@_LIMIT
@output_option
def stage(
    source: InputFile,
    plan: InputFile,
    reading: SnapshotReading,
    limits: dict[str, Any],
    weights: InputFile | None,
    out: str | None,
    page: Path | None,
    force: bool,
    limit: int,
    output: str,
) -> None:
    """Order PLAN in stages within limits, and print the effect of a broker failure in each.

    A partition that alone exceeds a limit has a stage of its own. Exit code 1: a partition has no stage, or a
    stage fits no window.
    """
    from kframe.plans.stage.request import StageRequest

    check_distinct([("SNAPSHOT", source), ("PLAN", plan), ("--weights", weights), ("--out", out), ("--report", page)])
    check_page(page, force=force)
    comparison = _checked_plan(plan, source, reading)
    sizes = _sizes(weights, comparison.snapshot)
    code = stage_plan(comparison, StageRequest(**limits, weights=sizes), out, page, output, limit)
    click.get_current_context().exit(code)


@group.command()
@click.argument("files", nargs=-1, required=True, metavar="[SNAPSHOT] PLAN", type=INPUT)
@reading_options
@config_option
@click.option(
    "--one-rack",
    multiple=True,
    callback=topic_names,
    metavar=TOPICS,
    help=f"Expect all replicas of a partition of these topics in one rack; {PATTERNS}.",
)
@report_option
@force_option
@weights_option
@rate_option
@_LIMIT
@output_option
def check(
    files: tuple[InputFile, ...],
    reading: SnapshotReading,
    config: dict[str, str],
    one_rack: tuple[str, ...],
    page: Path | None,
    force: bool,
    weights: InputFile | None,
    rate: int | None,
    limit: int,
    output: str,
) -> None:
    """Check PLAN alone, or also against the cluster in SNAPSHOT. Print one finding per row.

    --weights adds the bytes that are copied, also to --report, and --rate with it the expected duration.

    Exit code 0: it can be executed. 1: an error was found. 2: PLAN or SNAPSHOT cannot be read.
    """
    from kframe.plans.check.report import PlanReport
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.file.read import load_plan

    *sources, plan = files
    if len(sources) > 1:
        raise click.UsageError(f"found {len(files)} files, expected [SNAPSHOT] PLAN")
    source = sources[0] if sources else None
    for option, value in (("--report", page), ("--weights", weights), ("--rate", rate)):
        if source is None and value is not None:
            raise BadInput(f"{option}: found no SNAPSHOT, expected one before PLAN")
    if page is not None:
        check_distinct([("SNAPSHOT", source), ("PLAN", plan), ("--weights", weights), ("--report", page)])
        check_page(page, force=force)
    if source is None and (reading != SnapshotReading() or config or one_rack):
        raise BadInput("found options of a SNAPSHOT without one, expected SNAPSHOT before PLAN")
    if source is None:
        report = PlanReport.of(load_plan(plan), None)
    else:
        loaded = load_plan(plan)
        comparison = resolve_plan(loaded, reading.read(source), config, one_rack)
        sizes = _sizes(weights, comparison.snapshot)
        report = PlanReport.of(comparison.plan, comparison, sizes, rate)
        if page is not None:
            _write_page(page, plan, comparison, sizes)
    _emit_report(report, output, limit)
    if not report.valid:
        click.get_current_context().exit(FAILED)


@group.command()
@_comparison_options
@_LIMIT
@output_option
def show(comparison: CheckedPlan, limit: int, output: str) -> None:
    """List every partition of PLAN: its replicas in SNAPSHOT, its target, and the replicas added and removed."""
    _emit_partitions(comparison.partition_rows(), len(comparison.plan), "kframe.plan/v1", output, limit)


@group.command()
@_comparison_options
@_LIMIT
@output_option
def diff(comparison: CheckedPlan, limit: int, output: str) -> None:
    """Print what PLAN changes in SNAPSHOT: the old and the new assignment."""
    rows = list(comparison.partition_rows(changes_only=True))
    if output not in ("table", "wide"):
        _emit_partitions(iter(rows), len(rows), "kframe.plan-diff/v1", output, limit)
        return
    for row in rows[:limit]:
        for line in _diff_lines(row):
            click.echo(line)
    echo_more(len(rows) - limit, _ALL_LISTED)
    click.echo(f"changed: {len(rows):,} of {counted(len(comparison.plan), 'partition')}")


@group.command()
@_comparison_options
def stamp(comparison: CheckedPlan) -> None:
    """Print PLAN with a stamp: the cluster, and the present assignment of the plan's partitions in SNAPSHOT.

    kframe plan execute refuses the plan once these have changed; Kafka's tools ignore the stamp.
    """
    from kframe.plans.file.write import plan_document

    click.echo(plan_document(comparison.plan, comparison.stamp()), nl=False)


def _sizes(weights: InputFile | None, snapshot: Snapshot) -> Int64 | None:
    """(n,) bytes of a replica of each row of the snapshot; None without a file. Raises InputError."""
    if weights is None:
        return None
    from kframe.plans.generate.sizes import read_weights

    return read_weights(weights, snapshot)


def _racks(mapped: dict[int, str], stated: dict[int, str]) -> dict[int, str]:
    """The racks of a rack map and of ``--add-brokers``. Raises BadInput if they contradict each other."""
    for broker_id, rack in stated.items():
        if mapped.get(broker_id, rack) != rack:
            raise BadInput(
                f"--add-brokers: found broker {broker_id} in {rack}, expected {mapped[broker_id]} (--rack-map)"
            )
    return mapped | stated


def _write_page(path: Path, plan: InputFile, checked: CheckedPlan, sizes: Int64 | None) -> None:
    """Write the page about a plan and the snapshot that it was compared with."""
    from kframe.plans.generate.page import render_page
    from kframe.plans.generate.review import PlanReview

    with plan.open("rb") as file:
        write_page(path, render_page(PlanReview.of_plan(checked, sizes), file.read()))


def _emit_report(report: PlanReport, output: str, limit: int) -> None:
    """Print the report. CSV and JSON lines have only the findings."""
    from kframe.plans.check.report import SCHEMA

    if report.checked is not None:
        emit_mode(report.checked.rules.name, output)
        emit_release(report.release, output)
    for note in report.notes:
        emit_preface(note, output)
    document = report.document()
    if emit_data(SCHEMA, document, _FINDINGS, document.findings, output):
        return
    plan = document.plan
    emit_heading(f"{plan.name}: {counted(plan.partitions, 'partition')} of {counted(plan.topics, 'topic')}", output)
    emit_record("", {_COUNTS[severity]: count for severity, count in report.counts().items()}, output)
    findings = document.findings if output == "wide" else list(report.folded_rows())
    emit_section(findings, output, _FINDINGS, limit, _ALL_LISTED)
    if document.moves is not None:
        _emit_moves(document.moves, report.rate is not None, output)


def _emit_moves(moves: PlanMoves, has_rate: bool, output: str) -> None:
    fields = dict(plain(moves))
    click.echo()
    seconds, unknown = moves.expected_seconds, "unknown"
    if not has_rate:
        unknown += " (--weights FILE with --rate RATE gives it)"
    fields["expected_seconds"] = unknown if seconds is None else duration_text(seconds)
    record = {name: value for name, value in fields.items() if name not in (*_LOADS, "brokers")}
    emit_record("", {_MOVES.get(name, name): value for name, value in record.items()}, output)
    rows = [{"load": label, **fields[name]} for name, label in _LOADS.items()]
    emit_section(rows, output)
    click.echo()
    emit_rows(OutputTable("", _BROKERS, moves.brokers), output)


def _emit_partitions(rows: Iterator[PlannedPartition], count: int, schema: str, output: str, limit: int) -> None:
    from kframe.plans.check.document import PlannedPartition

    columns = PlannedPartition.__struct_fields__
    if output not in ("table", "wide"):
        emit_rows(OutputTable(schema, columns, rows), output)
        return
    listed = [plain(row) for row in itertools.islice(rows, limit)]
    visible = [{**row, "leader": "none" if row["leader"] == -1 else row["leader"]} for row in listed]
    emit_rows(OutputTable(schema, columns, visible), output)
    echo_more(count - limit, _ALL_LISTED)


def _diff_lines(row: PlannedPartition) -> Iterator[str]:
    name = click.style(f"{row.topic}-{row.partition} ({row.change})", bold=True)
    note = "" if row.valid else "  cannot be executed: see kframe plan check"
    yield f"{name}{note}"
    if row.replicas is not None:
        yield f"- {','.join(map(str, row.replicas))}"
    yield f"+ {','.join(map(str, row.target))}"
