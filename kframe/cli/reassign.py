"""``kframe reassign``: move a few partitions of a live cluster, list running reassignments, and cancel them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.admin import EXECUTE, admin_options, bootstrap_option, emit_codes
from kframe.cli.execution import NewExecution, execution_options
from kframe.cli.exits import FAILED
from kframe.cli.inputs import INPUT
from kframe.cli.numbers import limit_option, parse_ids
from kframe.cli.output import BadInput, OutputTable, ReportingGroup, emit_rows, output_option
from kframe.cli.topics import topic_partitions
from kframe.model.texts import counted

if TYPE_CHECKING:
    from kframe.model.events import TopicPartition
    from kframe.ports.administration import Administration
    from kframe.snapshot.files import InputFile

_ASSIGNMENT: Final = "TOPIC-PARTITION=ID,ID..."


@click.group("reassign", cls=ReportingGroup)
def group() -> None:
    """Reassign partitions of a live cluster by its admin API. kframe plan execute takes plans in files."""


@group.command()
@click.argument("assignments", nargs=-1, required=True, metavar=_ASSIGNMENT)
@bootstrap_option
@execution_options("reassign-TIME.journal")
@click.pass_context
def start(ctx: click.Context, assignments: tuple[str, ...], execution: NewExecution) -> None:
    """Reassign partitions to these brokers, the preferred leader first, as kframe plan execute does.

    Ctrl-C pauses. kframe plan resume, abort and rollback take the journal. Exit code 1: not all of it was done.
    """
    from kframe.plans.execute.prepare import PreparedPlan
    from kframe.plans.file.write import plan_of

    plan = plan_of(_assignments(assignments), "reassign")
    ctx.exit(execution.run(PreparedPlan.single_stage(plan), f"reassign-{datetime.now(UTC):%Y%m%dT%H%M%S}.journal"))


@group.command("list")
@admin_options
@limit_option
@output_option
def list_(admin: Administration, limit: int | None, output: str) -> None:
    """List the reassignments in progress."""
    from kframe.cli.documents.cluster import ReassigningPartition

    rows = (
        ReassigningPartition(*partition, list(entry.replicas), list(entry.adding), list(entry.removing))
        for partition, entry in sorted(admin.reassignments().items())
    )
    emit_rows(OutputTable("kframe.reassignments/v1", ReassigningPartition.__struct_fields__, rows, limit=limit), output)


@group.command()
@click.argument("partitions", nargs=-1, metavar="TOPIC-PARTITION...")
@click.option("--plan", metavar="PLAN", type=INPUT, help="The reassignments in progress of partitions in PLAN.")
@click.option("--all", "everything", is_flag=True, help="All reassignments in progress.")
@EXECUTE
@admin_options
@limit_option
@output_option
def cancel(
    admin: Administration,
    partitions: tuple[str, ...],
    plan: InputFile | None,
    everything: bool,
    execute: bool,
    limit: int | None,
    output: str,
) -> None:
    """Cancel reassignments, whichever client began them: adding replicas are removed, the others stay."""
    from kframe.errors import ErrorCode
    from kframe.plans.execute import cancellation
    from kframe.plans.file.read import load_plan

    if [bool(partitions), plan is not None, everything].count(True) != 1:
        raise BadInput("give partitions, --plan or --all")
    chosen = topic_partitions("TOPIC-PARTITION", partitions)
    if not chosen:
        loaded = None if plan is None else load_plan(plan)
        if loaded is not None:
            loaded.refuse_directories("a plan without: cancel its moves with kafka-reassign-partitions --cancel")
        chosen = cancellation.ongoing(admin, loaded)
    codes = cancellation.cancel(admin, chosen) if execute and chosen else dict.fromkeys(chosen, ErrorCode.NONE)
    emit_codes(codes, output, limit)
    if not execute:
        click.echo(f"{counted(len(chosen), 'reassignment')} would be cancelled with --execute", err=True)
    click.get_current_context().exit(FAILED if any(code is not ErrorCode.NONE for code in codes.values()) else 0)


def _assignments(texts: tuple[str, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    """The replicas of each partition. Raises BadInput, or InputError for what is no partition."""
    names, replicas = [], []
    for text in texts:
        name, _, ids = text.partition("=")
        names.append(name)
        try:
            replicas.append(tuple(parse_ids(ids)))
        except ValueError as problem:
            raise BadInput(f"{text!r}: expected {_ASSIGNMENT}") from problem
    return dict(zip(topic_partitions(_ASSIGNMENT, names), replicas, strict=True))
