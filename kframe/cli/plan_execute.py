"""``kframe plan execute``, ``resume``, ``rollback``, ``pause``, ``abort`` and ``status``: plans on live clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.admin import EXECUTE
from kframe.cli.execution import (
    JOURNAL_PATH,
    ClusterAccess,
    NewExecution,
    access_options,
    continue_execution,
    emit_execution,
    execution_options,
    stop_execution,
)
from kframe.cli.inputs import INPUT
from kframe.cli.numbers import ByteSize, WholeNumber
from kframe.cli.options import collected, with_options
from kframe.cli.output import output_option

if TYPE_CHECKING:
    from kframe.snapshot.files import InputFile

_JOURNAL: Final = click.argument("journal", metavar="JOURNAL", type=JOURNAL_PATH)


def _journal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the journal and the options of a command that connects to its cluster, as ``journal`` and ``access``."""
    url = click.option("--url", metavar="URL", help="Other brokers of the cluster than those in the journal.")
    return with_options(access_options(command), _JOURNAL, url)


def _limits(throttle: int | None, no_throttle: bool, concurrency: int | None) -> dict[str, int | None]:
    """The limits of the journal that options replace."""
    if no_throttle and throttle is not None:
        raise click.UsageError("--throttle and --no-throttle exclude each other")
    changes: dict[str, int | None] = {"throttle": throttle} if throttle or no_throttle else {}
    return changes if concurrency is None else {**changes, "concurrency": concurrency}


_new_limits: Final = collected(
    "limits",
    _limits,
    click.option(
        "--throttle",
        type=ByteSize(per_second=True),
        metavar="RATE",
        help="Bytes per second, such as 50MB/s, that each broker copies at most from now on.",
    ),
    click.option("--no-throttle", is_flag=True, help="Copy without a limit from now on."),
    click.option("--concurrency", type=WholeNumber(1), metavar="N", help="The most partitions in flight from now on."),
)


@click.command()
@click.argument("url", metavar="URL")
@click.argument("plan", metavar="PLAN", type=INPUT)
@execution_options("PLAN.journal")
@click.pass_context
def execute(ctx: click.Context, plan: InputFile, execution: NewExecution) -> None:
    """Execute PLAN on the cluster at URL, stage after stage, recorded in a journal.

    PLAN is a reassignment JSON, which may name log directories, or the folder of a staged plan. URL is
    kafka://HOST:PORT,... Ctrl-C pauses; after a crash, kframe plan resume or rollback continues. Exit code 1: not all
    of it was done. 4: the plan is stale.
    """
    from kframe.plans.execute.prepare import read_staged_plan

    staged = read_staged_plan(plan)
    ctx.exit(execution.run(staged, f"{staged.plan.name}.journal"))


@click.command()
@click.option(
    "--accept-health",
    is_flag=True,
    help="Take the present health of the cluster as the baseline, not that of the start.",
)
@_new_limits
@EXECUTE
@_journal_options
def resume(
    journal: Path, accept_health: bool, limits: Mapping[str, int | None], execute: bool, access: ClusterAccess
) -> None:
    """Continue an execution or rollback that was paused, aborted or killed."""
    click.get_current_context().exit(
        continue_execution(journal, access, "resume", execute, limits, accept_health=accept_health)
    )


@click.command()
@_new_limits
@EXECUTE
@_journal_options
def rollback(journal: Path, limits: Mapping[str, int | None], execute: bool, access: ClusterAccess) -> None:
    """Move all started partitions back, with their order and leaders as before the plan."""
    click.get_current_context().exit(continue_execution(journal, access, "rollback", execute, limits))


@click.command()
@_journal_options
def pause(journal: Path, access: ClusterAccess) -> None:
    """Start no further partition, wait for those in flight, and restore throttles.

    Asks the process that executes the plan. If there is none, this command does it itself.
    """
    click.get_current_context().exit(stop_execution(journal, access, "pause"))


@click.command()
@_journal_options
def abort(journal: Path, access: ClusterAccess) -> None:
    """Cancel reassignments in progress, and restore throttles.

    Asks the process that executes the plan. If there is none, this command does it itself.
    """
    click.get_current_context().exit(stop_execution(journal, access, "abort"))


@click.command()
@_JOURNAL
@output_option
def status(journal: Path, output: str) -> None:
    """Print the progress of an execution from its journal. No cluster is read."""
    from kframe.plans.execute.journal import read_journal
    from kframe.plans.execute.state import ExecutionState

    state = ExecutionState(read_journal(journal))
    emit_execution(state, journal, state.refused, output, executed=True)


COMMANDS: Final = (execute, resume, rollback, pause, abort, status)
