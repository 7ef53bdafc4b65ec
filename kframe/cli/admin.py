"""Shared code of the commands that change a live cluster through its admin API. They change nothing without
``--execute``."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import FAILED, STALE
from kframe.cli.live import COMMAND_CONFIG, client_properties
from kframe.cli.outcome import emit_outcome
from kframe.cli.output import BadInput, OutputTable, emit_rows, with_options
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress
from kframe.errors import PluginError
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.errors import ErrorCode
    from kframe.model.events import TopicPartition
    from kframe.model.plan import Plan
    from kframe.plans.check.report import PlanReport
    from kframe.plans.check.resolve import CheckedPlan
    from kframe.plans.execute.batches import PlanExecution
    from kframe.plans.file.read import Stamp
    from kframe.snapshot.administration import Administration

SCHEME: Final = "kafka"
POLL_INTERVAL_S: Final = 1.0
#: A broker describes a reassignment slightly later than the controller, once it has received UpdateMetadata.
METADATA_DELAY_MAX_S: Final = 15.0
_RESULTS: Final = ("topic", "partition", "error")

EXECUTE: Final = click.option("--execute", is_flag=True, help="Execute; without it, only print what would change.")


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--bootstrap-server`` and ``--command-config`` to a command. It receives a connected ``admin``."""

    @functools.wraps(command)
    def with_admin(
        *args: Any,
        bootstrap_server: tuple[str, ...],
        command_config: Path | None,
        plugins: PluginSettings,
        **kwargs: Any,
    ) -> Any:
        with open_administration(f"{SCHEME}://{','.join(bootstrap_server)}", command_config, plugins) as admin:
            return command(*args, admin=admin, **kwargs)

    return with_options(
        plugin_options(with_admin),
        click.option("--bootstrap-server", multiple=True, required=True, metavar="HOST:PORT,...",
                     help="Brokers to bootstrap from; may be repeated."),
        COMMAND_CONFIG,
    )  # fmt: skip


@contextmanager
def open_administration(url: str, file: Path | None, plugins: PluginSettings) -> Iterator[Administration]:
    """The admin API of the cluster at a URL, with the properties of Kafka's clients in ``file``. Raises BadInput."""
    try:
        admin: Administration = plugins.registry().open_admin(url, client_properties(file))
    except PluginError as error:
        raise BadInput(str(error)) from error
    try:
        yield admin
    finally:
        admin.close()


def apply(
    admin: Administration, plan: Plan, stamp: Stamp | None, *, execute: bool, rollback: Path | None,
    batch_size: int | None, wait: bool, output: str, limit: int, how_to_cancel: str,
) -> int:  # fmt: skip
    """Print what a plan would change, or execute it. Return the exit code."""
    from kframe.plans.check.report import PlanReport
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.execute.batches import PlanExecution
    from kframe.whatif import WhatIf

    with progress("reading", awaited="a controller of the cluster"):
        checked = resolve_plan(plan, admin.capture())
    reason = None if stamp is None else stamp.stale(checked.stamp())
    if reason is not None:
        click.echo(f"error: {plan.name} is stale: {reason}", err=True)
        return STALE
    if not report_errors(PlanReport.of(plan, checked)):
        return FAILED
    if not execute:
        whatif = WhatIf(checked.snapshot)
        refused = emit_outcome(whatif.reassign(plan), whatif, output, limit)
        click.echo("nothing was changed; --execute executes it", err=True)
        return FAILED if refused else 0
    _write_rollback(
        checked, rollback or Path(f"{plan.name.replace(' ', '-')}.rollback-{datetime.now(UTC):%Y%m%dT%H%M%S}.json")
    )
    execution = PlanExecution(admin, plan, batch_size)
    try:
        _follow(execution, wait)
    except KeyboardInterrupt:
        click.echo(
            f"still in progress: {counted(len(execution.moving), 'reassignment')}; to cancel: {how_to_cancel}", err=True
        )
        return FAILED
    emit_codes(execution.refused, output, limit)
    return _exit_code(admin, plan, execution, wait)


def report_errors(report: PlanReport) -> bool:
    """Print the errors of a checked plan to stderr; return whether there are none."""
    for row in report.rows() if not report.valid else ():
        if row["severity"] == "error":
            click.echo(f"error: {row['topic']}-{row['partition']}: {row['detail']}", err=True)
    return report.valid


def emit_codes(codes: Mapping[TopicPartition, ErrorCode], output: str, limit: int | None) -> None:
    """Print one code per partition."""
    rows = (
        {"topic": topic, "partition": partition, "error": code.name}
        for (topic, partition), code in sorted(codes.items())
    )
    emit_rows(OutputTable("kframe.partition-codes/v1", _RESULTS, rows, limit=limit), output)


def _write_rollback(plan_file: CheckedPlan, path: Path) -> None:
    """Write it to disk before anything moves, and never overwrite a file."""
    from kframe.plans.execute.batches import rollback_document

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(rollback_document(plan_file))
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise BadInput(f"--rollback {path}: {problem.strerror or problem}; nothing was changed") from problem
    click.echo(f"to revert it: kframe plan apply {path} --execute", err=True)


def _follow(execution: PlanExecution, wait: bool) -> None:
    """Start batch after batch. Print the progress whenever it changes."""
    begun_s, reported = time.monotonic(), -1
    while execution.begin():
        while wait and execution.refresh():
            if execution.done != reported:
                reported = execution.done
                _print_progress(execution, time.monotonic() - begun_s)
            time.sleep(POLL_INTERVAL_S)
    if wait:
        _print_progress(execution, time.monotonic() - begun_s)


def _print_progress(execution: PlanExecution, spent_s: float) -> None:
    remaining = execution.total - execution.done
    estimate = (
        f", about {spent_s / execution.done * remaining:,.0f} s remaining" if execution.done and remaining else ""
    )
    click.echo(
        f"{execution.done:,} of {counted(execution.total, 'partition')}, {len(execution.moving):,} moving{estimate}",
        err=True,
    )


def _exit_code(admin: Administration, plan: Plan, execution: PlanExecution, wait: bool) -> int:
    """Check whether every partition has its planned assignment."""
    from kframe.plans.check.resolve import resolve_plan
    from kframe.plans.execute.batches import unassigned_partitions

    if not wait:
        click.echo(f"{counted(execution.total - len(execution.refused), 'partition')} begun", err=True)
        return FAILED if execution.refused else 0
    missing = list(unassigned_partitions(plan, resolve_plan(plan, admin.capture())))
    end_s = time.monotonic() + METADATA_DELAY_MAX_S
    while not set(missing) <= execution.refused.keys() and time.monotonic() < end_s:
        time.sleep(POLL_INTERVAL_S)
        missing = list(unassigned_partitions(plan, resolve_plan(plan, admin.capture())))
    for topic, partition in missing[:20]:
        if (topic, partition) not in execution.refused:
            click.echo(f"error: {topic}-{partition} is not assigned as planned: another client reassigned it", err=True)
    click.echo(f"as planned: {execution.total - len(missing):,} of {counted(execution.total, 'partition')}", err=True)
    return FAILED if missing else 0
