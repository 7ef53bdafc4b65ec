"""Execute plans on live clusters and print reports: shared by ``kframe plan`` and ``kframe reassign start``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.admin import EXECUTE, open_administration
from kframe.cli.exits import FAILED, STALE
from kframe.cli.inputs import NamedPath
from kframe.cli.live import COMMAND_CONFIG, awaited
from kframe.cli.numbers import ByteSize, DecimalNumber, WholeNumber, limit_of
from kframe.cli.options import collected
from kframe.cli.outcome import emit_impact, emit_reassignment
from kframe.cli.output import (
    echo_text,
    emit_assumptions,
    emit_data,
    emit_heading,
    emit_record,
    emit_section,
    output_option,
    plain,
)
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress
from kframe.cli.stop_signal import StopSignal
from kframe.cli.verbosity import is_quiet
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.plans.execute.entries import ExecutionLimits, Goal
    from kframe.plans.execute.journal import Journal
    from kframe.plans.execute.prepare import PreparedPlan
    from kframe.plans.execute.report import ExecutionEffect, ExecutionProgress
    from kframe.plans.execute.state import ExecutionState
    from kframe.ports.administration import Administration

JOURNAL_PATH: Final = NamedPath(dir_okay=False)
#: Rows of replicas that go to certain log directories in tables of commands without ``--limit``.
_DIRECTORIES: Final = 50


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How a command reaches its cluster, and how it prints."""

    url: str | None
    """None: the brokers in the journal."""
    command_config: Path | None
    interval: float
    plugins: PluginSettings
    output: str


#: Adds options to a command that has a ``url``, which receives both as ``access``.
access_options: Final = collected(
    "access",
    ClusterAccess,
    COMMAND_CONFIG,
    click.option(
        "--interval",
        type=DecimalNumber(0.05),
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="Interval between reads of the cluster.",
    ),
    plugin_options,
    output_option,
)


def _execution_limits(**limits: Any) -> ExecutionLimits:
    from kframe.plans.execute.entries import ExecutionLimits

    return ExecutionLimits(**limits)


#: Adds the options of ``ExecutionLimits`` to a command, which receives them as ``limits``.
execution_limit_options: Final = collected(
    "limits",
    _execution_limits,
    click.option("--throttle", type=ByteSize(per_second=True), metavar="RATE",
                 help="Bytes per second, such as 50MB/s, that each broker copies at most."),
    click.option("--concurrency", type=WholeNumber(1), default=50, show_default=True, metavar="N",
                 help="The most partitions in flight."),
    click.option("--max-under-replicated", type=WholeNumber(), default=0, show_default=True, metavar="N",
                 help="New under-replicated partitions that do not pause it."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NewExecution:
    """How a command executes a plan."""

    access: ClusterAccess
    journal: Path | None
    limits: ExecutionLimits
    execute: bool
    limit: int
    """Rows of tables."""

    def run(self, staged: PreparedPlan, default_journal: str) -> int:
        """Execute a plan, continue by the journal of it, or print what would change. Returns the exit code."""
        path = self.journal or Path(default_journal)
        if path.exists():
            _check_journal(path, staged)
            return continue_execution(path, self.access, "execute", self.execute)
        url = self.access.url
        assert url is not None, "the command has a URL"
        with open_administration(url, self.access.command_config, self.access.plugins) as admin:
            return self._start(staged, path, url, admin)

    def _start(self, staged: PreparedPlan, path: Path, url: str, admin: Administration) -> int:
        from kframe.plans.execute.entries import Goal
        from kframe.plans.execute.journal import Journal
        from kframe.plans.execute.prepare import StalePlan, check_execution
        from kframe.plans.execute.report import ExecutionEffect
        from kframe.plans.execute.state import ExecutionState

        try:
            with progress("reading", awaited=awaited(url)):
                result = check_execution(staged, admin, url, self.limits)
        except StalePlan as stale:
            click.echo(f"error: {stale}", err=True)
            return STALE
        for problem in result.problems:
            click.echo(f"error: {problem}", err=True)
        if result.problems or result.start is None:
            return FAILED
        state, access = ExecutionState([result.start]), self.access
        if self.execute:
            with Journal.create(path, result.start) as opened:
                return _execute(admin, opened, state, Goal.EXECUTE, access)
        effect = ExecutionEffect.of(result.checked)
        emit_execution(state, path, {}, access.output, executed=False, effect=effect, row_limit=self.limit)
        click.echo("nothing was changed; --execute executes it", err=True)
        return FAILED if effect.reassignment.refused else 0


def execution_options(default_journal: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options of a command that has a ``url`` and executes a plan. It receives them as ``execution``, a
    ``NewExecution``. The help names the ``default_journal``."""
    return collected(
        "execution",
        NewExecution,
        click.option("--journal", type=JOURNAL_PATH,
                     help=f"Where the execution is recorded.  [default: {default_journal}]"),
        execution_limit_options,
        limit_of(50),
        EXECUTE,
        access_options,
    )  # fmt: skip


def _check_journal(path: Path, staged: PreparedPlan) -> None:
    """Raise JournalError for the journal of another plan."""
    from kframe.plans.execute.entries import ExecutionStarted
    from kframe.plans.execute.journal import JournalError, read_journal

    start = read_journal(path)[0]
    assert isinstance(start, ExecutionStarted)
    if start.plan_digest != staged.digest:
        raise JournalError(str(path), f"the journal of another plan ({start.plan})", "that of this plan, or a new file")


def continue_execution(
    path: Path,
    access: ClusterAccess,
    command: str,
    execute: bool,
    changes: Mapping[str, int | None] = {},
    *,
    accept_health: bool = False,
) -> int:
    """Continue by an existing journal. ``changes`` replace some of its limits. Returns the exit code."""
    import msgspec

    from kframe.plans.execute.entries import Goal, GoalChanged
    from kframe.plans.execute.executor import check_cluster
    from kframe.plans.execute.journal import Journal
    from kframe.plans.execute.observation import Observation
    from kframe.plans.execute.state import ExecutionState

    opened, entries = Journal.resume(path)
    with opened:
        state = ExecutionState(entries)
        goal = (Goal.ROLLBACK if state.rolls_back else Goal.EXECUTE) if command == "resume" else Goal(command)
        is_same = (goal is Goal.ROLLBACK) == state.rolls_back or goal in (Goal.PAUSE, Goal.ABORT)
        if is_same and state.is_finished and state.goal in (Goal.EXECUTE, Goal.ROLLBACK):
            emit_execution(state, path, {}, access.output, executed=True)
            click.echo("nothing to do", err=True)
            return 0
        cluster_url = access.url or state.start.url
        with open_administration(cluster_url, access.command_config, access.plugins) as admin:
            with progress("reading", awaited=awaited(cluster_url)):
                description = admin.describe()
            check_cluster(state, description.cluster_id)
            unhealthy = Observation.of(description).unhealthy(frozenset()) if accept_health else None
            limits = msgspec.structs.replace(state.limits, **changes) if changes else None
            entry = GoalChanged(goal, command, unhealthy, limits)
            if not execute:
                state.apply(entry)
                emit_execution(state, path, {}, access.output, executed=False)
                click.echo("nothing was changed; --execute executes it", err=True)
                return 0
            opened.append(entry)
            state.apply(entry)
            return _execute(admin, opened, state, goal, access)


def stop_execution(path: Path, access: ClusterAccess, command: str) -> int:
    """Ask the process that executes to pause or abort, or do it here. Returns the exit code."""
    from kframe.plans.execute.journal import is_locked, read_journal
    from kframe.plans.execute.requests import request_path
    from kframe.plans.execute.state import ExecutionState

    read_journal(path)
    if not is_locked(path):
        return continue_execution(path, access, command, execute=True)
    request_path(path).write_text(command)
    while is_locked(path):
        time.sleep(access.interval)
    state = ExecutionState(read_journal(path))
    emit_execution(state, path, state.refused, access.output, executed=True)
    return 0 if state.result is not None and not state.originals else FAILED


def _requested_goal(stop: StopSignal, path: Path) -> Goal | None:
    """What users request of this process: by a signal, or by a file of ``kframe plan pause`` or ``abort``."""
    from kframe.plans.execute.entries import Goal
    from kframe.plans.execute.requests import take_request

    return take_request(path) or (Goal.PAUSE if stop else None)


def _execute(admin: Administration, journal: Journal, state: ExecutionState, goal: Goal, access: ClusterAccess) -> int:
    """Run until the end. Returns the exit code."""
    from kframe.plans.execute.executor import Executor, succeeded
    from kframe.plans.execute.report import ExecutionProgress
    from kframe.plans.execute.requests import request_path

    request_path(journal.path).unlink(missing_ok=True)
    tracker = ExecutionProgress(admin, state, time.monotonic)
    executor = Executor(admin, journal, state)
    last: list[object] = []
    with StopSignal() as stop, progress("executing") as line:
        while True:
            executor.observe(admin.describe(), _requested_goal(stop, journal.path))
            tracker.observe(executor.planner)
            unmoved = executor.planner.unmoved()
            # A bar on a terminal, otherwise a line on stderr for each change.
            if tracker.total_bytes:
                line(tracker.bytes, tracker.total_bytes)
            else:
                line(tracker.partitions, tracker.total)
            current = [tracker.partitions, tracker.in_flight, state.goal]
            if current != last and not is_quiet():
                last = current
                click.echo(_progress_text(tracker, state), err=True)
            if (ended := executor.step()) is not None:
                break
            time.sleep(access.interval)
    emit_execution(state, journal.path, unmoved, access.output, executed=True)
    if succeeded(ended, state, goal):
        return 0
    click.echo(f"error: {ended.result.value}: {ended.reason or 'by request'}", err=True)
    click.echo(f"kframe plan resume {journal.path} --execute continues, kframe plan rollback reverts it", err=True)
    return FAILED


def _progress_text(tracker: ExecutionProgress, state: ExecutionState) -> str:
    copied = f", {tracker.bytes:,} of {counted(tracker.total_bytes, 'byte')}" if tracker.total_bytes else ""
    remaining = tracker.remaining_s()
    estimate = "" if remaining is None else f", about {remaining:,.0f} s remaining"
    return (
        f"{state.goal}: {tracker.partitions:,} of {counted(tracker.total, 'partition')}{copied}, "
        f"{tracker.in_flight:,} in flight{estimate}"
    )


def emit_execution(
    state: ExecutionState,
    path: Path,
    unmoved: dict[tuple[str, int], str],
    output: str,
    *,
    executed: bool,
    effect: ExecutionEffect | None = None,
    row_limit: int = 0,
) -> None:
    """Print the report to stdout. CSV and JSON lines have its stages. ``row_limit`` is for tables of the effect."""
    from kframe.plans.execute.report import SCHEMA, ExecutionStage, execution_document

    document = execution_document(state, path, unmoved, executed=executed, effect=effect)
    if emit_data(SCHEMA, document, ExecutionStage.__struct_fields__, document.stages, output):
        return
    emit_heading(f"{document.plan}: {document.goal}, {document.result or 'not ended'}", output)
    fields = {key: value for key, value in plain(document).items() if key != "effect" and not isinstance(value, list)}
    emit_record("", fields, output)
    emit_section(document.stages, output)
    emit_section(document.directories, output, limit=row_limit or _DIRECTORIES)
    emit_section(document.problems, output)
    for text in document.not_restored:
        echo_text(f"not restored: {text}", output)
    if effect is not None:
        click.echo()
        emit_heading(f"expected effect by the rules of {effect.rules}", output)
        emit_impact(effect.impact, output)
        emit_reassignment(effect.reassignment, output, row_limit)
        emit_assumptions(effect.assumptions, output)
