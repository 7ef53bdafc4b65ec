"""``kframe plan execute``, ``resume``, ``rollback``, ``pause``, ``abort`` and ``status``: plans on live clusters."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from kframe.cli.admin import EXECUTE, open_administration, report_errors
from kframe.cli.exits import FAILED, STALE
from kframe.cli.inputs import INPUT, NamedPath
from kframe.cli.live import COMMAND_CONFIG, awaited
from kframe.cli.numbers import ByteSize, DecimalNumber, WholeNumber
from kframe.cli.output import (
    OutputTable,
    echo_text,
    emit_data,
    emit_heading,
    emit_record,
    emit_rows,
    output_option,
    with_options,
)
from kframe.cli.plugins import PluginSettings, plugin_options
from kframe.cli.progress import progress
from kframe.cli.stop_signal import StopSignal
from kframe.cli.verbosity import is_quiet
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.plans.execute.entries import Goal, RunEnded
    from kframe.plans.execute.journal import Journal
    from kframe.plans.execute.observation import Observation
    from kframe.plans.execute.prepare import PreparedPlan
    from kframe.plans.execute.report import ExecutionProgress
    from kframe.plans.execute.state import ExecutionState
    from kframe.plans.execute.steps import Planner
    from kframe.snapshot.administration import Administration
    from kframe.snapshot.files import InputFile

_NO_CHANGES: Final[Mapping[str, int | None]] = {}
_STAGES: Final = ("stage", "partitions", "settled", "copies", "bytes")
_PROBLEMS: Final = ("topic", "partition", "error")
_PATH: Final = NamedPath(dir_okay=False)
_JOURNAL = click.argument("journal", metavar="JOURNAL", type=_PATH)
_INTERVAL = click.option("--interval", type=DecimalNumber(0.05), default=1.0, show_default=True,
                         metavar="SECONDS", help="Interval between reads of the cluster.")  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Access:
    """How a command reaches its cluster, and how it prints."""

    url: str | None
    command_config: Path | None
    interval: float
    plugins: PluginSettings
    output: str


def _cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that connects to the cluster of a journal; it takes them as ``access``."""

    @functools.wraps(command)
    def collect(
        url: str | None, command_config: Path | None, interval: float, plugins: PluginSettings, output: str,
        **arguments: Any,
    ) -> Any:  # fmt: skip
        return command(access=_Access(url, command_config, interval, plugins, output), **arguments)

    return with_options(
        collect,
        click.option("--url", metavar="URL", help="Other brokers of the cluster than those in the journal."),
        COMMAND_CONFIG, _INTERVAL, plugin_options, output_option,
    )  # fmt: skip


def _new_limits(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that replace limits of the journal; the command takes them as ``limits``."""

    @functools.wraps(command)
    def collect(throttle: int | None, no_throttle: bool, concurrency: int | None, **arguments: Any) -> Any:
        if no_throttle and throttle is not None:
            raise click.UsageError("--throttle and --no-throttle exclude each other")
        changes: dict[str, int | None] = {"throttle": throttle} if throttle or no_throttle else {}
        if concurrency is not None:
            changes["concurrency"] = concurrency
        return command(limits=changes, **arguments)

    return with_options(
        collect,
        click.option("--throttle", type=ByteSize(per_second=True), metavar="RATE",
                     help="Bytes per second, such as 50MB/s, that each broker copies at most from now on."),
        click.option("--no-throttle", is_flag=True, help="Copy without a limit from now on."),
        click.option("--concurrency", type=WholeNumber(1), metavar="N",
                     help="The most partitions in flight from now on."),
    )  # fmt: skip


@click.command()
@click.argument("url", metavar="URL")
@click.argument("plan", metavar="PLAN", type=INPUT)
@click.option("--journal", type=_PATH, help="Where the execution is recorded.  [default: PLAN.journal]")
@click.option("--throttle", type=ByteSize(per_second=True), metavar="RATE",
              help="Bytes per second, such as 50MB/s, that each broker copies at most.")  # fmt: skip
@click.option("--concurrency", type=WholeNumber(1), default=50, show_default=True, metavar="N",
              help="The most partitions in flight.")  # fmt: skip
@click.option("--max-under-replicated", type=WholeNumber(), default=0, show_default=True, metavar="N",
              help="New under-replicated partitions that do not pause it.")  # fmt: skip
@EXECUTE
@COMMAND_CONFIG
@_INTERVAL
@plugin_options
@output_option
def execute(
    url: str, plan: InputFile, journal: Path | None, throttle: int | None, concurrency: int, max_under_replicated: int,
    execute: bool, command_config: Path | None, interval: float, plugins: PluginSettings, output: str,
) -> None:  # fmt: skip
    """Execute PLAN on the cluster at URL, stage after stage, recorded in a journal.

    PLAN is a reassignment JSON or the folder of a staged plan. URL is kafka://HOST:PORT,... Ctrl-C pauses; after a
    crash, kframe plan resume or rollback continues. Exit code 1: not all of it was done. 4: the plan is stale.
    """
    from kframe.plans.execute.entries import ExecutionLimits, Goal
    from kframe.plans.execute.journal import Journal
    from kframe.plans.execute.prepare import StalePlan, read_staged_plan, start_of
    from kframe.plans.execute.state import ExecutionState

    staged = read_staged_plan(plan)
    path = journal or Path(f"{staged.plan.name}.journal")
    if path.exists():
        _check_journal(path, staged)
        _exit(_run(path, _Access(url, command_config, interval, plugins, output), "execute", execute))
    with open_administration(url, command_config, plugins) as admin:
        try:
            with progress("reading", awaited=awaited(url)):
                checked = _checked(staged, admin)
        except StalePlan as stale:
            click.echo(f"error: {stale}", err=True)
            _exit(STALE)
        if checked is None:
            _exit(FAILED)
        start = start_of(staged, checked, admin, url, ExecutionLimits(throttle, concurrency, max_under_replicated))
        if not execute:
            _emit(ExecutionState([start]), path, {}, output, executed=False)
            click.echo("nothing was changed; --execute executes it", err=True)
            return
        with Journal.create(path, start) as opened:
            code = _execute(admin, opened, ExecutionState([start]), Goal.EXECUTE, interval, output)
    _exit(code)


@click.command()
@_JOURNAL
@click.option(
    "--accept-health",
    is_flag=True,
    help="Take the present health of the cluster as the baseline, not that of the start.",
)
@_new_limits
@EXECUTE
@_cluster_options
def resume(
    journal: Path, accept_health: bool, limits: Mapping[str, int | None], execute: bool, access: _Access
) -> None:
    """Continue an execution or rollback that was paused, aborted or killed."""
    _exit(_run(journal, access, "resume", execute, limits, accept_health=accept_health))


@click.command()
@_JOURNAL
@_new_limits
@EXECUTE
@_cluster_options
def rollback(journal: Path, limits: Mapping[str, int | None], execute: bool, access: _Access) -> None:
    """Move all started partitions back, with their order and leaders as before the plan."""
    _exit(_run(journal, access, "rollback", execute, limits))


@click.command()
@_JOURNAL
@_cluster_options
def pause(journal: Path, access: _Access) -> None:
    """Start no further partition, wait for those in flight, and restore throttles.

    Asks the process that executes the plan. If there is none, this command does it itself.
    """
    _exit(_stop(journal, access, "pause"))


@click.command()
@_JOURNAL
@_cluster_options
def abort(journal: Path, access: _Access) -> None:
    """Cancel reassignments in progress, and restore throttles.

    Asks the process that executes the plan. If there is none, this command does it itself.
    """
    _exit(_stop(journal, access, "abort"))


@click.command()
@_JOURNAL
@output_option
def status(journal: Path, output: str) -> None:
    """Print the progress of an execution from its journal. No cluster is read."""
    from kframe.plans.execute.journal import read_journal
    from kframe.plans.execute.state import ExecutionState

    state = ExecutionState(read_journal(journal))
    _emit(state, journal, state.refused, output, executed=True)


COMMANDS: Final = (execute, resume, rollback, pause, abort, status)


def _checked(staged: PreparedPlan, admin: Administration) -> Any:
    """The checked plan; None if it has errors, which are printed. Raises StalePlan."""
    from kframe.plans.check.report import PlanReport
    from kframe.plans.execute.prepare import check_plan

    checked = check_plan(staged, admin)
    return checked if report_errors(PlanReport.of(staged.plan, checked)) else None


def _check_journal(path: Path, staged: PreparedPlan) -> None:
    """Raise JournalError for the journal of another plan."""
    from kframe.plans.execute.entries import ExecutionStarted
    from kframe.plans.execute.journal import JournalError, read_journal

    start = read_journal(path)[0]
    assert isinstance(start, ExecutionStarted)
    if start.plan_digest != staged.digest:
        raise JournalError(str(path), f"the journal of another plan ({start.plan})", "that of this plan, or a new file")


def _exit(code: int) -> NoReturn:
    """End the command."""
    click.get_current_context().exit(code)


def _run(
    path: Path, access: _Access, command: str, act: bool, changes: Mapping[str, int | None] = _NO_CHANGES,
    *, accept_health: bool = False,
) -> int:  # fmt: skip
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
            _emit(state, path, {}, access.output, executed=True)
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
            if not act:
                state.apply(entry)
                _emit(state, path, {}, access.output, executed=False)
                click.echo("nothing was changed; --execute executes it", err=True)
                return 0
            opened.append(entry)
            state.apply(entry)
            return _execute(admin, opened, state, goal, access.interval, access.output)


def _stop(path: Path, access: _Access, command: str) -> int:
    """Ask the process that executes to pause or abort, or do it here. Returns the exit code."""
    from kframe.plans.execute.journal import is_locked, read_journal
    from kframe.plans.execute.state import ExecutionState

    read_journal(path)
    if not is_locked(path):
        return _run(path, access, command, act=True)
    _request_path(path).write_text(command)
    while is_locked(path):
        time.sleep(access.interval)
    state = ExecutionState(read_journal(path))
    _emit(state, path, state.refused, access.output, executed=True)
    return 0 if state.result is not None and not state.originals else FAILED


def _request_path(journal: Path) -> Path:
    return journal.with_name(f"{journal.name}.request")


def _requests(stop: StopSignal, path: Path) -> Callable[[], Goal | None]:
    """What users request of this process: by a signal, or by a file of ``kframe plan pause`` or ``abort``."""
    from kframe.plans.execute.entries import Goal

    def requested() -> Goal | None:
        try:
            text = _request_path(path).read_text()
            _request_path(path).unlink()
        except OSError:
            text = ""
        if text == Goal.ABORT:
            return Goal.ABORT
        return Goal.PAUSE if stop or text == Goal.PAUSE else None

    return requested


def _execute(
    admin: Administration, journal: Journal, state: ExecutionState, goal: Goal, interval: float, output: str
) -> int:
    """Run until the end. Returns the exit code."""
    from kframe.plans.execute.executor import Executor, ExecutorHooks, succeeded
    from kframe.plans.execute.report import ExecutionProgress

    _request_path(journal.path).unlink(missing_ok=True)
    tracker = ExecutionProgress(admin, state, time.monotonic)
    unmoved: dict[tuple[str, int], str] = {}
    with StopSignal() as stop, _reporting(tracker, state) as show:

        def report(planner: Planner, observation: Observation) -> None:
            tracker.observe(planner, observation)
            unmoved.clear()
            unmoved.update(planner.unmoved())
            show()

        hooks = ExecutorHooks(lambda: time.sleep(interval), _requests(stop, journal.path), report)
        ended: RunEnded = Executor(admin, journal, state, hooks).run()
    _emit(state, journal.path, unmoved, output, executed=True)
    if succeeded(ended, state, goal):
        return 0
    click.echo(f"error: {ended.result.value}: {ended.reason or 'by request'}", err=True)
    click.echo(f"kframe plan resume {journal.path} --execute continues, kframe plan rollback reverts it", err=True)
    return FAILED


@contextmanager
def _reporting(tracker: ExecutionProgress, state: ExecutionState) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, otherwise a line on stderr for each change."""
    with progress("executing") as line:
        last: list[object] = []

        def show() -> None:
            if tracker.total_bytes:
                line(tracker.bytes, tracker.total_bytes)
            else:
                line(tracker.partitions, tracker.total)
            if is_quiet():
                return
            current = [tracker.partitions, tracker.in_flight, state.goal]
            if current != last:
                last[:] = current
                click.echo(_progress_text(tracker, state), err=True)

        yield show


def _progress_text(tracker: ExecutionProgress, state: ExecutionState) -> str:
    copied = f", {tracker.bytes:,} of {counted(tracker.total_bytes, 'byte')}" if tracker.total_bytes else ""
    remaining = tracker.remaining_s()
    estimate = "" if remaining is None else f", about {remaining:,.0f} s remaining"
    return (
        f"{state.goal}: {tracker.partitions:,} of {counted(tracker.total, 'partition')}{copied}, "
        f"{tracker.in_flight:,} in flight{estimate}"
    )


def _emit(
    state: ExecutionState, path: Path, unmoved: dict[tuple[str, int], str], output: str, *, executed: bool
) -> None:
    """Print the report to stdout. CSV and JSON lines have its stages."""
    from kframe.plans.execute.report import SCHEMA, execution_document

    document = execution_document(state, path, unmoved, executed=executed)
    if emit_data(SCHEMA, document, _STAGES, document["stages"], output):
        return
    emit_heading(f"{document['plan']}: {document['goal']}, {document['result'] or 'not ended'}", output)
    emit_record("", {key: value for key, value in document.items() if not isinstance(value, list)}, output)
    for name, columns in (("stages", _STAGES), ("problems", _PROBLEMS)):
        if document[name]:
            click.echo()
            emit_rows(OutputTable("", columns, document[name]), output)
    for text in document["not_restored"]:
        echo_text(f"not restored: {text}", output)
